"""What Slurm's accounting has missed, filled in from the nodes' records; for a cron line.

Of the jobs that ended lately those that lack Steelyard's part of AdminComment, or have less of it
than their records (a partial one, fewer joules), get it; what others wrote stays. slurmdbd is asked once. Again: nothing is done
twice. Needs the rights of Slurm's administrator or operator.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.publish.publish import Found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard publish`."""
    parser.add_argument(
        "--hours",
        type=float,
        default=24.0,
        metavar="N",
        help="of jobs that ended in the last N hours (default: 24), except the last minute",
    )
    parser.add_argument(
        "--most", type=int, default=10_000, metavar="N", help="write to N jobs at most (10000)"
    )
    parser.add_argument(
        "--energy",
        action="store_true",
        help="also set the jobs' joules, so that sacct -o ConsumedEnergy shows Steelyard's (Slurm 25.11)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be written, and write nothing"
    )
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Look, write, and tell; 3 when something could not be written."""
    import time

    from steelyard.analysis.collect.record_import import default_record_dirs
    from steelyard.analysis.sources.sacct import Sacct
    from steelyard.wrappers.publish import publish

    if not 0 < args.hours <= 24 * 366 or args.most < 1:
        raise errors.UsageError("--hours and --most: expected more than 0, and a year at most")
    asked = publish.Asked(
        since_s=args.hours * 3600,
        record_dirs=args.record_dir or default_record_dirs(),
        energy=args.energy,
        most=args.most,
    )
    found = publish.look(asked, Sacct(tries=1), time.time())
    if not args.dry_run:
        publish.write(found)
    if args.json:
        console.print_json(as_json(found, args.dry_run))
    else:
        print_found(found, args)
    return errors.MISSING if found.failed else errors.DONE


def as_json(found: Found, is_dry: bool) -> dict[str, object]:
    """The pass as a document."""
    return {
        "jobs": found.jobs,
        "written": found.written,
        "wishes": [wish.document for wish in found.wishes] if is_dry else [],
        "had": found.had,
        "no_record": found.no_record,
        "later": found.later,
        "left": found.left,
        "failed": found.failed,
    }


def print_found(found: Found, args: argparse.Namespace) -> None:
    """A line for cron's mail, and one for each job that somebody may want to look at."""
    if args.dry_run:
        for wish in found.wishes:
            parts = [str(wish.document[n]) for n in ("own", "energy_j") if n in wish.document]
            console.print_line(f"job {wish.job_id}: {' '.join(parts)}")
    word = "to write" if args.dry_run else "written"
    console.print_line(
        f"{found.jobs} jobs that ended in the last {args.hours:g} h: "
        f"{len(found.wishes) if args.dry_run else found.written} {word}, {found.had} had it, "
        f"{found.no_record} without a whole record, {len(found.left)} left as they are, "
        f"{len(found.failed)} failed, {found.later} left to the next pass"
    )
    for job, why in found.left.items():
        console.print_line(f"job {job}: AdminComment left as it is: {why}")
    for job, why in found.failed.items():
        print(f"steelyard publish: job {job}: not written: {why}", file=sys.stderr)
