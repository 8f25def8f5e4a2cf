"""Progress of a study: runs done, running, waiting and failed, and the time left.

On a terminal --watch fills the screen (each condition, the latest failures); elsewhere it prints a
line for each change. It ends when all runs have ended, or when no waiting run can ever start. The
exit code is 5 if some runs failed, and 3 if --watch ended with runs that cannot start.

A study with sessions has a line for each session, the latest last; --watch and the exit code are of
the latest. NAME@SESSION names one session."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.analysis.sources.study_sessions import Session
    from steelyard.wrappers.submit.status import Progress

MOST_FAILURES = 20
MOST_SESSIONS = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard status`."""
    options.add_study(parser, optional=True)
    parser.add_argument("--watch", action="store_true", help="repeat until all runs have ended")
    parser.add_argument(
        "--interval",
        type=float,
        default=2.0,
        metavar="SECONDS",
        help="between two readings (default: 2)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help=f"of sessions: all of them, not only the last {MOST_SESSIONS}",
    )
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Show the state, once or until the end. Exit code 5 if runs failed, 3 if --watch ended with
    runs that cannot start."""
    from dataclasses import asdict

    from steelyard.analysis.base.process_tuning import collect_garbage_rarely
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.study import folder as studydir
    from steelyard.wrappers.submit import status

    collect_garbage_rarely()
    if not args.watch and (sessions := studydir.find_sessions(args.study)):
        return show_sessions(sessions, args)
    if args.all:
        raise errors.UsageError(
            "--all is of the sessions of a study, all at one moment: expected a study that is run as "
            "sessions, and no --watch; leave --all out",
            "--all",
        )
    folder = studydir.resolve_study(args.study)
    if args.watch:
        from steelyard.wrappers.submit import status_watch

        progress = status_watch.watch(folder, max(args.interval, 0.2), quiet=args.json)
    else:
        progress = status.read_progress(folder)
    if args.json:
        console.print_json(asdict(progress))
    else:
        print_end(progress, with_counts=not args.watch)
    if progress.failed:
        return errors.RUNS_FAILED
    return errors.MISSING if args.watch and progress.stuck else errors.DONE


def show_sessions(sessions: Sequence[Session], args: argparse.Namespace) -> int:
    """Print a line for each of the last sessions; exit code 5 if runs of the latest failed."""
    import time
    from dataclasses import asdict

    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.submit import status

    chosen = sessions if args.all else sessions[-MOST_SESSIONS:]
    found = [(one, status.read_progress(one.folder)) for one in chosen]
    if args.json:
        heads = ({"session": one.name, "number": one.number, "began_unix_s": one.began_unix_s}
                 for one in chosen)  # fmt: skip
        console.print_json([head | asdict(p) for head, (_, p) in zip(heads, found, strict=True)])
    else:
        console.print_table(
            ("session", "began", "done", "running", "waiting", "failed", "cancelled",
             "not submitted", "of", ""),
            [
                (one.name, time.strftime("%Y-%m-%d %H:%M", time.localtime(one.began_unix_s)),
                 p.done, p.running, p.waiting, p.failed, p.cancelled, p.planned, p.total,
                 "" if p.ended else status.format_time_left(p))
                for one, p in found
            ],
            title=f"{found[-1][1].study}: {counted(len(sessions), 'session')}",
        )  # fmt: skip
        if len(chosen) < len(sessions):
            print(f"{len(sessions) - len(chosen)} earlier ones: --all")
        for note in dict.fromkeys(p.note for _, p in found if p.note):
            print(f"note: {note}")
    return errors.RUNS_FAILED if found[-1][1].failed else errors.DONE


def print_end(progress: Progress, with_counts: bool) -> None:
    """Print the counts, and the failed runs with their reasons."""
    from steelyard.wrappers.base import console
    from steelyard.wrappers.submit import status

    if with_counts:
        print(status.format_progress(progress))
    if progress.note:
        print(f"note: {progress.note}")
    if stuck := status.format_stuck_runs(progress):
        console.print_line(stuck)
    failures = progress.failed_runs
    for failure in failures[:MOST_FAILURES]:
        reason = f": {failure.reason}" if failure.reason else ""
        print(f"{failure.state}: {failure.run_id} ({failure.condition_label}){reason}")
    if len(failures) > MOST_FAILURES:
        print(f"… and {len(failures) - MOST_FAILURES} more: --json lists all")
    if progress.planned:
        them = inflect(progress.planned, "is", "are")
        print(
            f"{counted(progress.planned, 'run')} {them} not submitted: `steelyard submit` adds them"
        )
