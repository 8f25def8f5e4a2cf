"""The accounting of each scheduler: a reader beside this file, a line here, and nothing else."""

from __future__ import annotations

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import Accounting
from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.analysis.sources.sacct import Sacct

READERS: dict[str, type[Accounting]] = {"slurm": Sacct, "pbs": Pbs}


def all_readers() -> dict[str, Accounting]:
    """Their accounting by the schedulers' names; nothing is asked yet."""
    return {name: reader() for name, reader in READERS.items()}


def detect_reader() -> type[Accounting]:
    """The reader of the scheduler that this machine has; where none is, the first."""
    readers = list(READERS.values())
    return next((reader for reader in readers if reader.is_installed()), readers[0])


def list_recent_jobs(user: str, since_unix_s: float) -> tuple[Accounting, list[str]]:
    """The first scheduler here that answers, and the user's jobs there. sacct may be installed where
    PBS runs: what it reports is raised where no other answers."""
    here = [reader for reader in READERS.values() if reader.is_installed()] or [detect_reader()]
    faults = []
    for reader in (one.without_retries() for one in here):
        try:
            return reader, reader.list_recent_jobs(user, since_unix_s)
        except MissingError as error:
            faults.append(error)
    raise faults[0]


def scheduler_of_job(job_id: str) -> str:
    """The scheduler that gives such ids; the first where none says so."""
    fitting = (name for name, one in READERS.items() if one.job_ids.fullmatch(job_id))
    return next(fitting, next(iter(READERS)))


def readers_of_job_id(job_id: str) -> list[type[Accounting]]:
    """Whose job a person can mean by this id: who gives such ids, of them those that are here."""
    fitting = [reader for reader in READERS.values() if reader.job_ids.fullmatch(job_id)]
    return (
        [reader for reader in fitting if reader.is_installed()] or fitting[:1] or [detect_reader()]
    )
