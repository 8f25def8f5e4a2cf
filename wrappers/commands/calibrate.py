"""Does Steelyard measure right here? Runs known loads with every launch method and compares.

Each load is a small program that counts itself what it does. A table compares that truth with what
`steelyard run` prints, and with a job's record and the accounting: equal, within a limit that has a
reason, stated as not measured, or WRONG, which is exit code 5. docs/calibrate.md explains it.

It needs what an ordinary user may do on this installation; what cannot be tried here is listed with
the reason. It submits some 25 short jobs. Ctrl-C cancels them and prints what is known so far.
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
    """Add the options of `steelyard calibrate`."""
    from steelyard.wrappers.calibrate.calibration import SCHEDULERS

    add = parser.add_argument
    add(
        "--scheduler",
        choices=SCHEDULERS,
        help="jobs of Slurm or of PBS, or `steelyard run` alone (default: all that exist here)",
    )
    add("--quick", action="store_true", help="leave out loads that other loads cover")
    add("--only", default="", metavar="TEXT", help="only launch methods with this in their name")
    add("--details", action="store_true", help="print every number, not only wrong ones")
    add(
        "--in",
        dest="containers",
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
        help="a folder that the nodes see, too; a new folder in it is used (default: the current folder)",
    )
    add(
        "--wait",
        type=float,
        default=600,
        metavar="S",
        help="seconds to wait for jobs to end (default: 600)",
    )
    add("--keep", action="store_true", help="keep the loads' results and the job scripts")
    add("--html", type=Path, metavar="FILE", help="also write all of it as a page")
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Measure, judge and print. Exit code 5 unless something was measured and nothing is wrong."""
    import tempfile

    from steelyard.wrappers.base import console
    from steelyard.wrappers.calibrate import calibration
    from steelyard.wrappers.calibrate.table import Table, as_json, print_table, render_page

    if args.html is not None and args.html.is_dir():
        raise errors.UsageError(f"--html {args.html}: that is a folder; name a file in it")
    table = Table()
    folder = Path(tempfile.mkdtemp(prefix="steelyard-calibrate-", dir=args.dir.absolute()))
    try:
        folder.chmod(0o755)
        facts = calibration.fill_table(read_request(args), folder, table, print_progress(args))
    finally:
        keep_or_remove(folder, args.keep, table)
    if args.html is not None:
        args.html.write_text(render_page(table, facts), encoding="utf-8")
    if args.json:
        console.print_json(as_json(table, facts))
    else:
        print_table(table, args.details)
    if table.interrupted:
        return errors.INTERRUPTED
    return errors.DONE if table.is_right else errors.RUNS_FAILED


def read_request(args: argparse.Namespace) -> Any:
    """Return the options, for calibration.py."""
    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.wrappers.calibrate.calibration import Request

    return Request(
        scheduler=args.scheduler,
        quick=args.quick,
        only=args.only,
        containers=args.containers,
        options=tuple(args.option),
        record_dirs=tuple(args.record_dir or find_default_record_dirs()),
        patience_s=args.wait,
    )


def print_progress(args: argparse.Namespace) -> Any:
    """Return a function that prints what is being done, on a terminal."""
    if args.json or not sys.stderr.isatty():
        return lambda text: None
    return lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def keep_or_remove(folder: Path, always: bool, table: Table) -> None:
    """Keep the folder on request, or if something is wrong, as it shows the cause; else remove
    it."""
    import shutil

    if always or (table.cells and not table.is_right and not table.interrupted):
        print(f"steelyard calibrate: the loads' results: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder, ignore_errors=True)
