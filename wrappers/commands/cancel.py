"""Cancel a study's jobs, waiting and running ones. Completed runs keep their results.

In a study with sessions it cancels the jobs of all sessions; NAME@SESSION names one session.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard cancel`."""
    options.add_study(parser)


def main(args: argparse.Namespace) -> int:
    """Cancel; exit code 0 also if there is nothing to cancel."""
    from steelyard.wrappers.base import errors
    from steelyard.wrappers.study import folder as studydir
    from steelyard.wrappers.submit.settled_sessions import list_waiting_sessions

    if sessions := studydir.find_sessions(args.study):
        count = sum(cancel(session.folder) for session in list_waiting_sessions(sessions))
    else:
        count = cancel(studydir.resolve_study(args.study).absolute())
    if not count:
        print("nothing to cancel: no run waits or runs")
        return errors.DONE
    print(
        f"{counted(count, 'run')} cancelled. `steelyard submit` takes up what "
        "had not begun, with --retry-failed what was stopped, too"
    )
    return errors.DONE


def cancel(path: Path) -> int:
    """Stop the jobs of one study or session; return how many runs were stopped."""
    from steelyard.wrappers.schedulers import ledger, registry
    from steelyard.wrappers.study.folder import StudyDir
    from steelyard.wrappers.submit import status

    folder = StudyDir(path)
    active: set[str] = set()
    for scheduler, submissions in registry.group_by_scheduler(
        ledger.read_submissions(folder), folder.path
    ):
        mine = scheduler.active_runs(submissions).keys()
        scheduler.cancel(submissions)
        ledger.record_cancelled(folder, mine)
        active |= mine
    if active:  # some may have completed before they could be stopped
        states = status.read_file_states(folder)
        active -= {entry.run.run_id for entry in states if entry.state == "completed"}
    return len(active)
