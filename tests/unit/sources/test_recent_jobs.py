"""`show --mine` where sacct is installed and PBS runs."""

from __future__ import annotations

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import accounting_readers
from steelyard.analysis.sources.pbs.accounting import Pbs
from steelyard.analysis.sources.sacct import Sacct

# sacct of a host that has Slurm's client and no slurm.conf; the server there was OpenPBS 23.06.06.
NO_SLURM = "sacct does not answer: Could not establish a configuration source"


@pytest.fixture(autouse=True)
def both_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> list[str]:
        raise MissingError(NO_SLURM)

    for reader in (Sacct, Pbs):
        monkeypatch.setattr(reader, "is_installed", classmethod(lambda _: True))
        monkeypatch.setattr(reader, "list_recent_jobs", fail)


def test_the_scheduler_that_answers_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pbs, "list_recent_jobs", lambda *_: ["7.srv"])
    reader, ids = accounting_readers.list_recent_jobs("lab", 0.0)
    assert (type(reader), ids) == (Pbs, ["7.srv"])


def test_where_none_answers_the_first_says_why() -> None:
    with pytest.raises(MissingError, match="sacct does not answer"):
        accounting_readers.list_recent_jobs("lab", 0.0)
