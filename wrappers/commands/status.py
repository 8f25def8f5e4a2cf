"""How far a study is: runs done, running, waiting, failed, and the time that is left.

--watch fills the screen of a terminal (each condition, the last failures) and prints a line for
each change elsewhere. It ends when all runs have ended, or when those that wait never will run.
Exit code 5 if some runs failed, 3 if --watch ended with runs that wait for what does not come.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from steelyard.wrappers.base import options

if TYPE_CHECKING:
    from steelyard.wrappers.submit.status import Progress

MOST_FAILURES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard status`."""
    options.add_study(parser, optional=True)
    parser.add_argument("--watch", action="store_true", help="look again until all runs have ended")
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="SECONDS", help="between looks, default 2"
    )
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Show the state, once or until the end."""
    from dataclasses import asdict

    from steelyard.analysis.base.process_tuning import seldom_look_for_garbage
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.study import folder as studydir
    from steelyard.wrappers.submit import status, status_watch

    seldom_look_for_garbage()
    folder = studydir.resolve(args.study)
    if args.watch:
        progress = status_watch.watch(folder, max(args.interval, 0.2), quiet=args.json)
    else:
        progress = status.snapshot(folder)
    if args.json:
        console.print_json(asdict(progress))
    else:
        print_end(progress, with_counts=not args.watch)
    if progress.failed:
        return errors.RUNS_FAILED
    return errors.MISSING if args.watch and progress.stuck else errors.DONE


def print_end(progress: Progress, with_counts: bool) -> None:
    """The counts, and the runs that failed with their reasons."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.submit import status

    if with_counts:
        print(status.format_progress(progress))
    if progress.note:
        print(f"note: {progress.note}")
    if words := status.format_stuck_runs(progress):
        console.print_line(words)
    failures = progress.failed_runs
    for failure in failures[:MOST_FAILURES]:
        reason = f": {failure.reason}" if failure.reason else ""
        print(f"{failure.state}: {failure.run_id} ({failure.condition_label}){reason}")
    if len(failures) > MOST_FAILURES:
        print(f"… and {len(failures) - MOST_FAILURES} more: --json lists all")
    if progress.planned:
        print(f"{progress.planned} runs are not submitted: `steelyard submit` adds them")
