"""Cancel a study's jobs, waiting and running ones. Completed runs keep their results.

In a study with sessions it cancels the jobs of all sessions; NAME@SESSION names one session.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import options

if TYPE_CHECKING:
    from steelyard.wrappers.study.folder import StudyDir


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard cancel`."""
    options.add_study(parser)


def main(args: argparse.Namespace) -> int:
    """Cancel; exit code 0 also if there is nothing to cancel."""
    from steelyard.wrappers.base import errors
    from steelyard.wrappers.study import folder as studydir
    from steelyard.wrappers.submit.collected_sessions import list_waiting_sessions

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
    from steelyard.wrappers.submit import run_state

    folder = StudyDir(path)
    record_unrecorded(folder)
    active: set[str] = set()
    for scheduler, submissions in registry.group_by_scheduler(
        ledger.read_submissions(folder), folder.path
    ):
        mine = scheduler.active_runs(submissions).keys()
        scheduler.cancel(submissions)
        if mine:
            ledger.record_cancelled(folder, mine)
        active |= mine
    if active:  # some may have completed before they could be stopped
        states = run_state.read_file_states(folder)
        active -= {entry.run.run_id for entry in states if entry.state == "completed"}
    return len(active)


def record_unrecorded(folder: StudyDir) -> None:
    """Record what the scheduler accepted before a submit broke off: these jobs are cancelled,
    too."""
    from steelyard.wrappers.base.errors import UsageError
    from steelyard.wrappers.study.folder import lock_study
    from steelyard.wrappers.submit import batch_submission

    schedulers = batch_submission.find_schedulers_of_orphans(folder)
    if not schedulers:
        return
    name = batch_submission.read_study_name(folder)
    try:
        with lock_study(folder):
            for scheduler in schedulers:
                batch_submission.recover_submissions(folder, name, scheduler)
    except UsageError as error:
        batch_submission.print_message(
            f"{error}: what it submits from now on is not cancelled; end it, then cancel again",
            "cancel",
        )
