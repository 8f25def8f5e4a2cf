"""Is this scale right? Known loads are run in every way a job can run here, and weighed.

Each load is a small program that counts itself what it does. A table sets beside that truth what
`steelyard run` says, and what a job's record and the accounting say: equal, within a limit that has
a reason, told as not weighed, or WRONG, which is exit code 5. docs/calibrate.md tells how to read it.

It takes what an ordinary user may do on this installation; what cannot be tried here is listed with
the reason. Jobs are short, and their number is some 25. Ctrl-C cancels them and tells what is known.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.wrappers.base import errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.calibrate.table import Table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard calibrate`."""
    from steelyard.wrappers.calibrate.calibrate import WAYS

    add = parser.add_argument
    add(
        "--scheduler",
        choices=tuple(WAYS),
        help="jobs of Slurm or of PBS, or `steelyard run` alone (default: all that are here)",
    )
    add("--quick", action="store_true", help="leave out loads that others stand for")
    add("--only", default="", metavar="TEXT", help="ways that have this in their name")
    add("--details", action="store_true", help="every number, not only those that are wrong")
    add(
        "--in",
        dest="launchers",
        action="append",
        metavar="LAUNCHER",
        help="`steelyard run` in this container, too; repeatable (default: those that are here)",
    )
    add(
        "--option",
        action="append",
        default=[],
        metavar="OPTION",
        help="of sbatch, srun and salloc, such as --option=--partition=short; of qsub: --option=-qshort; "
        "repeatable",
    )
    add(
        "--dir",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="a folder that the nodes see, too; all is done in a new one in it (here)",
    )
    add("--wait", type=float, default=600, metavar="S", help="for jobs to end, in seconds (600)")
    add("--keep", action="store_true", help="keep the loads' results, and how jobs were submitted")
    add("--html", type=Path, metavar="FILE", help="also a page with all of it")
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Weigh, judge, tell."""
    import tempfile

    from steelyard.wrappers.base import console
    from steelyard.wrappers.calibrate import calibrate
    from steelyard.wrappers.calibrate import words as calibrate_words
    from steelyard.wrappers.calibrate.table import Table

    if args.html is not None and args.html.is_dir():
        raise errors.UsageError(f"--html {args.html}: that is a folder; name a file in it")
    table = Table()
    place = Path(tempfile.mkdtemp(prefix="steelyard-calibrate-", dir=args.dir.absolute()))
    try:
        place.chmod(0o755)
        meta = calibrate.fill(asked(args), place, table, progress(args))
    finally:
        keep(place, args.keep, table)
    if args.html is not None:
        args.html.write_text(calibrate_words.as_page(table, meta), encoding="utf-8")
    if args.json:
        console.print_json(calibrate_words.as_json(table, meta))
    else:
        calibrate_words.show(table, args.details)
    if table.interrupted:
        return errors.INTERRUPTED
    return errors.DONE if table.is_right else errors.RUNS_FAILED


def asked(args: argparse.Namespace) -> Any:
    """The options, for calibrate.py."""
    from steelyard.analysis.collect.records_in import default_record_dirs
    from steelyard.wrappers.calibrate.calibrate import WAYS, Asked

    return Asked(
        schedulers=tuple(WAYS) if args.scheduler is None else (args.scheduler,),
        insists=args.scheduler is not None,
        quick=args.quick,
        only=args.only,
        launchers=args.launchers,
        options=tuple(args.option),
        record_dirs=tuple(args.record_dir or default_record_dirs()),
        patience_s=args.wait,
    )


def progress(args: argparse.Namespace) -> Any:
    """Says what is being done, to a person who waits."""
    if args.json or not sys.stderr.isatty():
        return lambda text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def keep(place: Path, always: bool, table: Table) -> None:
    """What shows how something wrong came about stays."""
    import shutil

    if always or (table.cells and not table.is_right and not table.interrupted):
        print(f"steelyard calibrate: the loads' results: {place}", file=sys.stderr)
    else:
        shutil.rmtree(place, ignore_errors=True)
