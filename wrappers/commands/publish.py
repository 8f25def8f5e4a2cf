"""Complete AdminComment in Slurm's accounting from the nodes' records; for a cron line.

The plugin writes each job's totals into AdminComment. For recent jobs where they are missing, partial
or have fewer joules than the records, this command writes them. Text from others is never changed.
Run it as often as you like: complete jobs are skipped. It needs the rights of a Slurm administrator
or operator.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.publish.publish import PublishResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard publish`."""
    parser.add_argument(
        "--hours",
        type=float,
        default=24.0,
        metavar="N",
        help="look at jobs that ended in the last N hours (default: 24), except the last minute",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=10_000,
        metavar="N",
        help="write at most N jobs per call (default: 10000)",
    )
    parser.add_argument(
        "--energy",
        action="store_true",
        help="also set ConsumedEnergy of the jobs, so that sacct shows Steelyard's joules (Slurm 25.11)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be written and write nothing"
    )
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Read, write and report; exit code 3 if a job could not be written, or another call runs."""
    import time

    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.analysis.sources.sacct import Sacct
    from steelyard.wrappers.base.cron_command_lock import hold_command_lock
    from steelyard.wrappers.publish import publish

    if not 0 < args.hours <= 24 * 366 or args.most < 1:
        raise errors.UsageError(
            f"--hours {args.hours:g} --most {args.most}: expected hours above 0, at most a year (8784), and at least 1 job"
        )
    request = publish.PublishRequest(
        since_s=args.hours * 3600,
        record_dirs=args.record_dir or find_default_record_dirs(),
        energy=args.energy,
        most=args.most,
    )
    with hold_command_lock("publish", request.record_dirs):
        found = publish.find_comments(request, Sacct(tries=1), time.time())
        if not args.dry_run:
            publish.write_comments(found)
    if args.json:
        console.print_json(as_json(found, args.dry_run))
    else:
        print_found(found, args)
    return errors.MISSING if found.failed else errors.DONE


def as_json(found: PublishResult, is_dry: bool) -> dict[str, object]:
    """Return the document of --json."""
    return {
        "jobs": found.jobs,
        "written": found.written,
        "planned": [comment.document for comment in found.planned] if is_dry else [],
        "complete": found.complete,
        "no_record": found.no_record,
        "deferred": found.deferred,
        "unchanged": found.unchanged,
        "failed": found.failed,
    }


def print_found(found: PublishResult, args: argparse.Namespace) -> None:
    """Print a line for cron's mail, and one for each job that may need attention."""
    if args.dry_run:
        for comment in found.planned:
            parts = [str(comment.document[n]) for n in ("own", "energy_j") if n in comment.document]
            console.print_line(f"job {comment.job_id}: {' '.join(parts)}")
    word = "to write" if args.dry_run else "written"
    console.print_line(
        f"{counted(found.jobs, 'job')} that ended in the last {args.hours:g} h: "
        f"{len(found.planned) if args.dry_run else found.written} {word}, {found.complete} complete, "
        f"{found.no_record} without a complete record, {len(found.unchanged)} not changed, "
        f"{len(found.failed)} failed, {found.deferred} left for the next call"
    )
    for job, why in found.unchanged.items():
        console.print_line(f"job {job}: AdminComment not changed: {why}")
    for job, why in found.failed.items():
        print(f"steelyard publish: job {job}: not written: {why}", file=sys.stderr)
