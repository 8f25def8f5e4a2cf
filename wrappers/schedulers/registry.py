"""The schedulers that exist. Each has a module in this room and a line here, and nothing else."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base.errors import UsageError

if TYPE_CHECKING:
    from steelyard.analysis.sources.study_files import Submission
    from steelyard.wrappers.schedulers.base import Scheduler
    from steelyard.wrappers.study.study import Study

# Module and class by name. The first is the default if the user names none and none is installed.
CLASSES = {"slurm": "Slurm", "pbs": "Pbs", "local": "Local"}
# Schedulers that kill a job's children before its shell, which may then record the run as
# completed. The set is in this module so that the status of a finished study imports no scheduler.
ENDS_CHILDREN_FIRST = frozenset({"pbs"})


def find_class(name: str) -> type[Scheduler]:
    """Return the class of that name. Raises UsageError for an unknown name."""
    if name not in CLASSES:
        raise UsageError(f"--scheduler {name}: allowed is {' or '.join(CLASSES)}")
    module = importlib.import_module(f"{__package__}.{name}")
    found: type[Scheduler] = getattr(module, CLASSES[name])
    return found


def list_classes() -> Iterator[type[Scheduler]]:
    """Return all scheduler classes."""
    return map(find_class, CLASSES)


def make_scheduler(name: str, study_dir: Path, patient: bool = True) -> Scheduler:
    """Return the scheduler of that name for a study. Raises UsageError for an unknown name."""
    return find_class(name)(study_dir, patient)


def group_by_scheduler(
    submissions: Iterable[Submission], study_dir: Path, patient: bool = True
) -> Iterator[tuple[Scheduler, list[Submission]]]:
    """Yield each scheduler of these submissions, with its submissions."""
    groups: dict[str, list[Submission]] = {}
    for submission in submissions:
        groups.setdefault(submission.scheduler, []).append(submission)
    for name, group in groups.items():
        yield make_scheduler(name, study_dir, patient), group


def list_installed() -> list[type[Scheduler]]:
    """Return the batch systems whose commands are installed here; if none are, the first one."""
    systems = [one for one in list_classes() if not one.runs_here]
    return [one for one in systems if one.is_installed()] or systems[:1]


def detect_scheduler() -> str:
    """Return the name of the batch system to use when the user names none."""
    return list_installed()[0].name


def check_options(study: Study, scheduler: type[Scheduler]) -> None:
    """Raise UsageError for options that a scheduler does not accept, or for an unknown scheduler.

    Options of [job] are for the given scheduler; those of [place.LEVEL] are for each scheduler by
    name."""
    from steelyard.wrappers.study.table_reader import Table

    top = Table(study.file, {"job": {}, "place": {level: {} for level in study.place}})
    scheduler.check_options(top.table("job"), "options", study.job.options)
    owners = {one.name: one for one in list_classes() if not one.runs_here}
    for level, lines in study.place.items():
        entry = Table(study.file, lines, f"place.{level}.")
        entry.only(owners)
        for name, options in lines.items():
            owners[name].check_options(entry, name, options)
