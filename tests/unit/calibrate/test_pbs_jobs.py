"""`steelyard calibrate` on Torque and OpenPBS: what is submitted, and what becomes of the answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.calibrate.test_table import MIB, result

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import job_system, known_loads, limits, pbs_jobs, table
from steelyard.wrappers.calibrate.known_loads import KnownLoad, Result
from steelyard.wrappers.calibrate.table import Cell
from steelyard.wrappers.calibrate.truth_comparison import StartCells
from steelyard.wrappers.schedulers.pbs import command, script
from steelyard.wrappers.schedulers.pbs.dialects import OpenPbs, Torque
from steelyard.wrappers.schedulers.retries import CommandError


def test_arrays_and_nodes_in_each_dialects_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "encode_request", ",".join)
    system = pbs_jobs.PbsJobs(Path("/load"))
    methods = {method.name: method for method in system.list_methods(quick=False)}

    def words(name: str, node: str = "") -> str:
        return " ".join(system.command(methods[name], "load", Path("/f"), node)[0])

    system.dialect = Torque()
    assert "-t 0-1" in words("array") and "-l nodes=2" in words("two nodes, pbsdsh")
    assert "-l nodes=n1" in words("shared node", "n1")
    system.dialect = OpenPbs()
    assert "-J 0-1" in words("array")
    assert "-l select=2 -l place=scatter" in words("two nodes, pbsdsh")


def record(node: str = "vm", start: float = 100.0, **more: Any) -> dict[str, Any]:
    """Of a job with one load of 0.3 s, and 5 and 4 MB."""
    totals: dict[str, Any] = {
        "node": node, "start_unix_s": start, "complete": True, "missing": {},
        "cpu": {"cpu_s": 0.3}, "io": {"rchar_bytes": 5_000_000, "wchar_bytes": 4_000_000},
    }  # fmt: skip
    return totals | more


def cells(
    results: Sequence[Result],
    records: Sequence[Any],
    about: dict[str, str],
    quantities: Sequence[table.Quantity] = known_loads.CALLS,
    is_restarted: bool = False,
) -> list[Cell]:
    system = pbs_jobs.PbsJobs(Path("/load"))
    method = system.script_method("qsub", KnownLoad("load", (), tuple(quantities)))
    starts = job_system.list_starts(
        results, records, [pbs_jobs.parse_report(about)], system.no_report, is_restarted
    )
    return [cell for start in starts for cell in StartCells(system, method, start).list_cells()]


def verdicts(found: Sequence[Cell]) -> list[str]:
    return [cell.verdict for cell in found]


def test_a_shell_around_the_script_may_be_in_it_as_far_as_it_had_used() -> None:
    """Of 5,000,000 bytes none may be missing, and no more be there than the shell had read."""
    mine = result("1.vm", "0", parent_read_calls_bytes=30_000)
    about = {"exec_host": "vm/0"}
    for rchar, verdict in ((5_000_000, "=="), (5_030_000, "ok"), (5_060_000, "WRONG"),
                           (4_999_999, "WRONG")):  # fmt: skip
        io = {"rchar_bytes": rchar, "wchar_bytes": 4_000_000}
        found = cells([mine], [record(io=io)], about)
        assert verdicts(found) == ["==", verdict, "=="]


def test_nodes_are_known_by_their_number_in_the_job() -> None:
    """Torque's first is not the first by name; what was measured twice is wrong."""
    about = {"exec_host": "vmb/0+vm/0-1"}
    mine = [result("1.vm", "0"), result("1.vm", "1", cpu_us=100_000)]
    measured = [record("vm", cpu={"cpu_s": 0.1}), record("vmb")]
    assert set(verdicts(cells(mine, measured, about))) == {"=="}
    twice = [record("vm"), record("vmb")]
    found = cells(mine, twice, about)
    assert [cell.node for cell in found if cell.verdict == "WRONG"] == ["vm"]


def test_starts_of_a_job_are_known_by_their_time() -> None:
    """PBS gives a job no number of its start, and exec_host is the last one's."""
    mine = [result("1.vm", "0", start_unix_s=100.0, cpu_us=900_000),
            result("1.vm", "0", start_unix_s=150.0)]  # fmt: skip
    for first in ("vm", "vmb"):
        measured = [record("vm", 149.9), record(first, 100.01, cpu={"cpu_s": 0.9})]
        found = cells(mine, measured, {"exec_host": "vm/0"}, is_restarted=True)
        assert [cell.node for cell in found] == [first] * 3 + ["vm"] * 3
        assert set(verdicts(found)) == {"=="}


TOTALS = {"cpu_s": 0.3, "rchar_bytes": 5_000_000, "wchar_bytes": None,
        "missing": {"wchar_bytes": "not readable"}}  # fmt: skip


@pytest.mark.parametrize("quote", ["", "'"])
def test_what_openpbs_has_of_each_host(quote: str) -> None:
    """As its qstat prints it, with a host of two in it."""
    text = quote + json.dumps({"n1": TOTALS, "n2": TOTALS | {"cpu_s": 7.0}}) + quote
    about = {"exec_host": "n1/0+n2/0", pbs_jobs.HOOK: text}
    mine = [result("1.vm", "0"), result("1.vm", "1")]
    found = cells(mine, [record("n1"), record("n2")], about)
    totals = [cell for cell in found if cell.where == "qstat"]
    assert [(cell.node, cell.quantity, cell.verdict) for cell in totals] == [
        ("n1", "CPU", "=="), ("n2", "CPU", "WRONG"), ("n1", "read calls", "=="),
        ("n2", "read calls", "=="), ("n1", "write calls", "stated"), ("n2", "write calls", "stated"),
    ]  # fmt: skip


def test_the_ends_of_counted_processes_are_in_the_servers_totals_too() -> None:
    """OpenPBS 23.06.06, 500 processes that nobody waits for: the record and resources_used had the
    same 0.6351 s of 0.5953 s, and only one of the two was judged right."""
    system = pbs_jobs.PbsJobs(Path("/load"))
    load = KnownLoad("500 processes", (), (table.CPU,), unwaited=500)
    totals = {"cpu_s": 0.6351, "missing": {}}
    about = {"exec_host": "n1/0", pbs_jobs.HOOK: json.dumps({"n1": totals})}
    io = {"source": "bpf", "rchar_bytes": 1_112_145, "wchar_bytes": 1_001_303}
    measured = record("n1", cpu={"cpu_s": 0.6351}, io=io, bpf={"missed_ends": 0})
    mine = result("1.vm", "0", cpu_us=595_300)
    (start,) = job_system.list_starts(
        [mine], [measured], [pbs_jobs.parse_report(about)], system.no_report, is_restarted=False
    )
    found = list(StartCells(system, system.script_method("qsub", load), start).list_cells())
    assert [(cell.where, cell.verdict) for cell in found] == [("record", "ok"), ("qstat", "ok")]


def test_the_ends_of_processes_are_in_a_cgroups_count_too() -> None:
    """Slurm's cgroup, 500 processes that nobody waits for: 0.7267 s of 0.6621 s was judged wrong."""
    system = pbs_jobs.PbsJobs(Path("/load"))
    load = KnownLoad("500 processes", (), (table.CPU,), unwaited=500)
    cpu = {"cpu_s": 0.7267, "source": "cgroup1"}
    measured = record("n1", cpu=cpu, io={"source": "reaped"})
    mine = result("1.vm", "0", cpu_us=662_100)
    (start,) = job_system.list_starts(
        [mine], [measured], [pbs_jobs.parse_report({"exec_host": "n1/0"})], system.no_report,
        is_restarted=False,
    )  # fmt: skip
    (cell,) = StartCells(system, system.script_method("qsub", load), start).list_cells()
    assert (cell.where, cell.verdict) == ("record", "ok")


@pytest.mark.parametrize(("written", "verdict"), [(4_049_874, "ok"), (4_049_300, "WRONG")])
def test_what_pbs_mom_did_before_a_task_may_be_missing(written: int, verdict: str) -> None:
    """Torque 6.1.3, the sister's task of pbsdsh: 18 bytes of 4,049,892 were of pbs_mom's child."""
    system = pbs_jobs.PbsJobs(Path("/load"))
    load = KnownLoad("load", (), (table.WRITES,))
    method = system.script_method("two nodes, pbsdsh", load, beside=(limits.DEMUX, limits.PBSDSH))
    io = {"source": "bpf", "rchar_bytes": 5_145_144, "wchar_bytes": written}
    measured = record("n1", io=io, bpf={"missed_ends": 0})
    mine = result("1.vm", "0", write_calls_bytes=4_049_892)
    (start,) = job_system.list_starts(
        [mine], [measured], [pbs_jobs.parse_report({"exec_host": "n1/0"})], system.no_report,
        is_restarted=False,
    )  # fmt: skip
    (cell,) = StartCells(system, method, start).list_cells()
    assert cell.verdict == verdict


def test_memory_of_the_shell_counts_and_of_nobody_else() -> None:
    mine = [result("1.vm", "0")]
    for more, verdict in ((10 * MIB, "ok"), (40 * MIB, "WRONG"), (-1, "WRONG")):
        measured: dict[str, Any] = record()
        *parts, last = table.MEMORY.path.split(".")
        inner = measured
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = 64 * MIB + more
        (cell,) = cells(mine, [measured], {"exec_host": "vm/0"}, [table.MEMORY])
        assert cell.verdict == verdict


def test_an_option_that_qsub_refuses_is_reported_without_its_usage() -> None:
    output = "qsub: illegal -N value\nusage: qsub [-a date_time]\n\t[-A x]\n       qsub --version\n"
    assert (
        command.format_error("qsub", output, 2).args
        == CommandError("qsub", "illegal -N value").args
    )


def test_a_job_that_the_server_has_forgotten_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """And where it does not answer, nothing has: the jobs may still run."""
    answers: list[dict[str, Any] | None] = [
        {"1.vm": {"job_state": "R", "exec_host": "vm/0"}, "2[0].vm": {"job_state": "R"}},
        None,
        {"1.vm": {"job_state": "R", "exec_host": "vm/0"}, "2[0].vm": {"job_state": "C"}},
        {"2[0].vm": {"job_state": "C"}},
    ]

    def jobs(_: Sequence[str]) -> dict[str, Any]:
        found = answers.pop(0)
        if found is None:
            raise MissingError("qstat does not answer")
        return found

    monkeypatch.setattr(pbs_commands, "query_jobs", jobs)
    system = pbs_jobs.PbsJobs(Path("/load"))
    found = [
        {
            job: (one.is_over, one.nodes)
            for job, (one,) in system.query_reports({"1.vm", "2[].vm"}).items()
        }
        for _ in range(4)
    ]
    running = {"1.vm": (False, ("vm",)), "2[0].vm": (False, ()), "2[].vm": (True, ())}
    assert found == [
        running,
        running,
        running | {"2[0].vm": (True, ())},
        running | {"1.vm": (True, ("vm",)), "2[0].vm": (True, ())},
    ]
