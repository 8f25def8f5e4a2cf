"""The accounting readers. A scheduler needs a module in this folder and one line here."""

from __future__ import annotations

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import Accounting
from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.analysis.sources.sacct import Sacct

READERS: dict[str, type[Accounting]] = {"slurm": Sacct, "pbs": Pbs}


def all_readers() -> dict[str, Accounting]:
    """Return a reader for each scheduler, by name, without a query."""
    return {name: reader() for name, reader in READERS.items()}


def detect_reader() -> type[Accounting]:
    """Return the reader of the scheduler on this machine, or the first one."""
    readers = list(READERS.values())
    return next((reader for reader in readers if reader.is_installed()), readers[0])


def list_recent_jobs(user: str, since_unix_s: float) -> tuple[Accounting, list[str]]:
    """Return the first installed reader that answers, and the user's jobs there.

    sacct may be installed where PBS runs. Its error is raised only if no reader answers.
    """
    installed = [reader for reader in READERS.values() if reader.is_installed()] or [
        detect_reader()
    ]
    faults = []
    for reader in (one.without_retries() for one in installed):
        try:
            return reader, reader.list_recent_jobs(user, since_unix_s)
        except MissingError as error:
            faults.append(error)
    raise faults[0]


def scheduler_of_job(job_id: str) -> str:
    """Return the scheduler whose ids have this form, or the first one."""
    fitting = (name for name, one in READERS.items() if one.job_ids.fullmatch(job_id))
    return next(fitting, next(iter(READERS)))


def readers_of_job_id(job_id: str) -> list[type[Accounting]]:
    """Return the readers whose ids have this form: the installed ones, if there are any."""
    fitting = [reader for reader in READERS.values() if reader.job_ids.fullmatch(job_id)]
    return (
        [reader for reader in fitting if reader.is_installed()] or fitting[:1] or [detect_reader()]
    )
