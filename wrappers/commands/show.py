"""One job on one screen: what it was, what it was allocated and used, where it ran, what is
missing.

Several jobs are a table, and so are the tasks of an array, with their sum and advice. Needs no
study: it reads the scheduler's accounting and the records of the nodes; either alone is enough."""

from __future__ import annotations

import argparse
import getpass
import re
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.analysis.job.job_view import JobView

SINCE = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
SINCE_WORDS = "expected a time such as 90m, 12h, 7d or 2w"
DEFAULT_SINCE = "1d"
# docs/formats.md part 8.
STATES = ("pending", "running", "completed", "failed", "timeout", "cancelled", "node_fail",
          "out_of_memory", "requeued", "lost")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard show`."""
    parser.add_argument(
        "job_ids",
        metavar="JOBID",
        nargs="*",
        help="4711, or an array task: 4711_3 (Slurm), 4711[3] (PBS)",
    )
    parser.add_argument("--mine", action="store_true", help="all your jobs")
    parser.add_argument(
        "--since",
        metavar="TIME",
        help=f"with --mine: of the last 90m, 12h, 7d, 2w (default: {DEFAULT_SINCE})",
    )
    parser.add_argument(
        "--tag",
        metavar="KEY[=VALUE]",
        action="append",
        help="with --mine: jobs with this tag; repeatable: with all of them",
    )
    parser.add_argument(
        "--state",
        metavar="STATE",
        choices=STATES,
        help=f"with --mine: jobs in this state: {', '.join(STATES)}",
    )
    options.add_record_dir(parser)
    options.add_database(
        parser,
        "the database of `collect --cluster`, for jobs that accounting or records do not have",
    )
    options.add_idle_power(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Look up the jobs and print them."""
    idle = options.idle_power(args.idle_power)
    check_arguments(args)
    if args.mine or len(args.job_ids) > 1:
        return show_several(args)
    from steelyard.wrappers.show import job_data, job_document, job_text

    try:
        view = job_data.find_job(args.job_ids[0], args.record_dir, args.database)
    except errors.UsageError as error:
        from steelyard.analysis.job.job_lookup import ArrayError

        if not isinstance(error, ArrayError):
            raise
        return show_several(args, is_array=True)
    found = job_data.read_details(view, idle)
    if args.json:
        console.print_json(job_document.as_json(found))
    else:
        job_text.print_job(found)
    return errors.DONE


def check_arguments(args: argparse.Namespace) -> None:
    """Raise UsageError for options that exclude each other."""
    if args.mine and args.job_ids:
        raise errors.UsageError("--mine names the jobs itself: leave out the job ids", "--mine")
    for option in ("since", "tag", "state"):
        if getattr(args, option) is not None and not args.mine:
            raise errors.UsageError(f"--{option} goes with --mine: add it", f"--{option}")
    if not args.mine and not args.job_ids:
        raise errors.UsageError("which job? Expected a job id, several, or --mine", "JOBID")


def parse_since(text: str) -> float:
    """Return seconds, for example 604800.0 for `7d`."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text, re.ASCII)
    if match is None:
        raise errors.UsageError(f"--since '{text}': {SINCE_WORDS}", text)
    return float(match[1]) * SINCE[match[2]]


def show_several(args: argparse.Namespace, is_array: bool = False) -> int:
    """Print a line per job, and the sum of an array; exit code 3 if a job is unknown."""
    from steelyard.wrappers.show import job_data

    if args.mine:
        views, unknown = find_own_jobs(args)
    else:
        views, unknown = job_data.find_jobs(args.job_ids, args.record_dir, args.database)
    if args.json:
        from steelyard.wrappers.show import job_document

        jobs = [job_document.as_json(one) for one in job_data.read_several(views)]
        array = {"array": job_document.array_json(views)} if is_array else {}
        console.print_json({"jobs": jobs, "unknown": unknown, **array})
    elif views:
        from steelyard.wrappers.show import job_table

        job_table.print_jobs(views, is_array)
    else:
        which = " like that" if args.tag or args.state else ""
        last = f" in the last {args.since or DEFAULT_SINCE}" if args.mine else ""
        print(f"no jobs{which}{last}")
    for line in unknown:
        print(f"steelyard show: {line}", file=sys.stderr)
    return errors.MISSING if unknown else errors.DONE


def find_own_jobs(args: argparse.Namespace) -> tuple[list[JobView], list[str]]:
    """Return the user's jobs, from the first scheduler of this machine that answers."""
    from steelyard.analysis.sources import accounting_readers

    since = time.time() - parse_since(args.since or DEFAULT_SINCE)
    reader, ids = accounting_readers.list_recent_jobs(getpass.getuser(), since)
    if not ids:
        return [], []
    from steelyard.analysis.job.job_lookup import look_up_jobs
    from steelyard.wrappers.show import job_data

    views, unknown = look_up_jobs(ids, job_data.choose_record_dirs(args.record_dir), reader)
    return [view for view in views if is_requested(view, args.tag or (), args.state)], unknown


def is_requested(view: JobView, tags: Sequence[str], state: str | None) -> bool:
    """Return whether the job has this state, and each tag: `KEY=VALUE`, or any value of `KEY`."""
    from steelyard.wrappers.show.job_table import find_tags

    if state is not None and (view.row is None or view.row.state != state):
        return False
    found = find_tags(view)
    for tag in tags:
        key, equals, value = tag.partition("=")
        if key not in found or (equals and found[key] != value):
            return False
    return True
