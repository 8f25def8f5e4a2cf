"""The accounting of each scheduler: a reader beside this file, a line here, and nothing else."""

from __future__ import annotations

from steelyard.analysis.sources.accounting import Accounting
from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.analysis.sources.sacct import Sacct
from steelyard.analysis.sources.sacct_json import SacctJson
from steelyard.analysis.sources.slurm_library import PySlurm

READERS: dict[str, type[Accounting]] = {"slurm": Sacct, "pbs": Pbs}
# Other ways to the same accounting, by the names that a person chooses them by, and whose it is.
OTHER_WAYS: dict[str, tuple[str, type[Accounting]]] = {
    "sacct-json": ("slurm", SacctJson),
    "pyslurm": ("slurm", PySlurm),
}


def every(way: str | None = None) -> dict[str, Accounting]:
    """Their accounting by the schedulers' names, one of them in this way; nothing is asked yet."""
    readers = READERS | dict([OTHER_WAYS[way]] if way is not None else [])
    return {name: reader() for name, reader in readers.items()}


def here() -> type[Accounting]:
    """The reader of the scheduler that this machine has; where none is, the first."""
    readers = list(READERS.values())
    return next((reader for reader in readers if reader.is_here()), readers[0])


def of_job(job_id: str) -> str:
    """The scheduler that gives such ids; the first where none says so."""
    fitting = (name for name, one in READERS.items() if one.job_ids.fullmatch(job_id))
    return next(fitting, next(iter(READERS)))


def meant(job_id: str) -> list[type[Accounting]]:
    """Whose job a person can mean by this id: who gives such ids, of them those that are here."""
    fitting = [reader for reader in READERS.values() if reader.job_ids.fullmatch(job_id)]
    return [reader for reader in fitting if reader.is_here()] or fitting[:1] or [here()]
