"""Slurm's accounting by pyslurm: the conversion of a job, and the jobs that need sacct."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import pyslurm_accounting
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.sacct import FIELDS, Sacct


class Resources(SimpleNamespace):
    """The object resembles the library's: it has an attribute each, and a dictionary for several kinds."""

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def resource(name: str, count: int) -> SimpleNamespace:
    return SimpleNamespace(type_and_name=name, count=count)


def job(**more: Any) -> SimpleNamespace:
    had = Resources(
        cpu=resource("cpu", 2), mem=resource("mem", 1000), node=resource("node", 1),
        gres={"gpu": resource("gres/gpu", 1)}, billing=None,
    )  # fmt: skip
    given: dict[str, Any] = {
        "id": 7, "name": "a", "user_name": "u", "state": "COMPLETED", "partition": "p",
        "state_reason": None, "submit_time": 100, "eligible_time": 100, "start_time": 110,
        "end_time": 120, "nodelist": "n1", "working_directory": "/w", "admin_comment": None,
        "cluster": "c", "account": "x", "cpus": 2, "elapsed_time": 10, "requested_tres": had,
        "allocated_tres": had, "constraints": [], "time_limit": 60, "db_index": 5,
        "array_id": None, "heterogeneous_id": None, "requeue_count": 0,
        "steps": {"batch": SimpleNamespace(state="COMPLETED")},
    }  # fmt: skip
    return SimpleNamespace(**given | more)


def test_a_job_has_the_fields_of_sacct() -> None:
    row = pyslurm_accounting.build_row(job())
    cells = dict(zip(FIELDS, row.fields, strict=True))
    assert (row.job_id, row.state, row.exit_code, row.nodes) == ("7", "completed", 0, ("n1",))
    assert cells["AllocTRES"] == "cpu=2,gres/gpu=1,mem=1000M,node=1"
    assert (cells["CPUTimeRAW"], cells["TimelimitRaw"], cells["SLUID"]) == (
        "20",
        "60",
        "s0000000000005",
    )
    assert {cells[name] for name in pyslurm_accounting.EMPTY} == {""}


@pytest.mark.parametrize(
    "more",
    [
        {"state": "FAILED"},
        {"requeue_count": 1},
        {"array_id": 7},
        {"heterogeneous_id": 7},
        {"steps": {"0": SimpleNamespace(state="CANCELLED")}},
    ],
)
def test_sacct_is_asked_for_other_jobs(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    jobs = SimpleNamespace(load=lambda ids: {8: job(id=8, **more), 7: job()})
    module = SimpleNamespace(
        db=SimpleNamespace(Jobs=jobs, JobFilter=lambda ids: ids), RPCError=OSError
    )
    monkeypatch.setattr(pyslurm_accounting, "load_library", lambda program: module)

    def rows_of_sacct(self: Sacct, job_ids: list[str]) -> Iterator[AccountingRow]:
        asked.append(job_ids)
        return iter(())

    monkeypatch.setattr(Sacct, "rows", rows_of_sacct)
    rows = list(pyslurm_accounting.PySlurm().rows(["7", "8", "9_1"]))
    assert [row.job_id for row in rows] == ["7"]
    assert asked == [["8", "9_1"]]


def test_without_the_library_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyslurm", None)
    with pytest.raises(MissingError, match="pyslurm cannot be used .*: use Sacct"):
        pyslurm_accounting.load_library()
