"""`steelyard calibrate` on Torque and OpenPBS: what is submitted, and what is made of the answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.calibrate.test_table import MIB, result

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import calibrate, loads, pbs, pbs_cells, pbs_ways, table
from steelyard.wrappers.calibrate.table import Cell, Table
from steelyard.wrappers.schedulers.patience import CommandError
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.dialect import Dialect
from steelyard.wrappers.schedulers.pbs.openpbs import OpenPbs
from steelyard.wrappers.schedulers.pbs.torque import Torque

DIALECTS = [Torque(), OpenPbs()]


def maker(dialect: Dialect) -> pbs_ways.Maker:
    def request(rate: int) -> tuple[str, ...]:
        return tuple(dialect.request(f"sample-rate={rate}").split(" ", 1))

    return pbs_ways.Maker(Path("/d/a b/load"), dialect, request, ("-q", "short"))


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.title)
def test_every_way_asks_for_a_rate_and_has_the_users_options(
    dialect: Dialect, tmp_path: Path
) -> None:
    (tmp_path / "node").write_text("n1")
    every = pbs_ways.every(maker(dialect), quick=False)
    names = [way.name for way in every]
    assert len(set(names)) == len(names) >= 25
    for way in every:
        for one in way.commands(tmp_path):
            assert one.argv[0] == "qsub" and one.argv[-1] == "script"
            assert list(one.argv[one.argv.index("-q") :][:2]) == ["-q", "short"]
            assert any("sample-rate=" in word for word in one.argv)
            # A folder with a blank in its name: the shell must still find the load.
            last = shlex.split((one.script or "").splitlines()[-1])
            assert "/d/a b/load" in last or any("'/d/a b/load'" in word for word in last)


def test_arrays_and_nodes_are_said_in_each_dialects_words(tmp_path: Path) -> None:
    def words(dialect: Dialect, name: str) -> str:
        (tmp_path / "node").write_text("n1")
        ways = {way.name: way for way in pbs_ways.every(maker(dialect), quick=False)}
        return " ".join(ways[name].commands(tmp_path)[0].argv)

    torque, openpbs = DIALECTS
    assert "-t 0-1" in words(torque, "array") and "-J 0-1" in words(openpbs, "array")
    assert "-l nodes=2" in words(torque, "two nodes, pbsdsh")
    assert "-l select=2 -l place=scatter" in words(openpbs, "two nodes, pbsdsh")
    assert "-l nodes=n1" in words(torque, "shared node")


def record(node: str = "vm", start: float = 100.0, **more: Any) -> dict[str, Any]:
    """Of a job with one load of 0.3 s, and 5 and 4 MB."""
    totals: dict[str, Any] = {
        "node": node, "start_unix_s": start, "complete": True, "missing": {},
        "cpu": {"cpu_s": 0.3}, "io": {"rchar_bytes": 5_000_000, "wchar_bytes": 4_000_000},
    }  # fmt: skip
    return totals | more


def way(quantities: Sequence[Any] = loads.CALLS) -> pbs_ways.PbsWay:
    return pbs_ways.PbsWay("qsub", loads.Load("load", (), tuple(quantities)), lambda _: [])


def verdicts(found: Sequence[Cell]) -> list[str]:
    return [cell.verdict for cell in found]


def test_a_shell_around_the_script_may_be_in_it_as_far_as_it_had_used() -> None:
    """Of 5,000,000 bytes none may be missing, and no more be there than the shell had read."""
    mine = result("1.vm", "0", parent_read_calls_bytes=30_000)
    about = {"exec_host": "vm/0"}
    for rchar, verdict in ((5_000_000, "=="), (5_030_000, "ok"), (5_060_000, "WRONG"),
                           (4_999_999, "WRONG")):  # fmt: skip
        io = {"rchar_bytes": rchar, "wchar_bytes": 4_000_000}
        found = list(pbs_cells.of_job(way(), [mine], [record(io=io)], about))
        assert verdicts(found) == ["==", verdict, "=="]


def test_nodes_are_told_by_their_number_in_the_job() -> None:
    """Torque's first is not the first by name; what was weighed twice is wrong."""
    about = {"exec_host": "vmb/0+vm/0-1"}
    mine = [result("1.vm", "0"), result("1.vm", "1", cpu_us=100_000)]
    weighed = [record("vm", cpu={"cpu_s": 0.1}), record("vmb")]
    assert set(verdicts(list(pbs_cells.of_job(way(), mine, weighed, about)))) == {"=="}
    twice = [record("vm"), record("vmb")]
    found = list(pbs_cells.of_job(way(), mine, twice, about))
    assert [cell.node for cell in found if cell.verdict == "WRONG"] == ["vm"]


def test_starts_of_a_job_are_told_by_their_time() -> None:
    """PBS does not tell a job which start it is."""
    mine = [result("1.vm", "0", start_unix_s=100.0), result("1.vm", "0", start_unix_s=150.0)]
    weighed = [record(start=149.9), record(start=100.01)]
    found = list(pbs_cells.of_job(way(), mine, weighed, {"exec_host": "vm/0"}))
    assert len(found) == 6 and set(verdicts(found)) == {"=="}


def test_a_start_on_another_node_is_another_start() -> None:
    """exec_host is the last one's."""
    mine = [result("1.vm", "0", start_unix_s=100.0, cpu_us=900_000),
            result("1.vm", "0", start_unix_s=150.0)]  # fmt: skip
    weighed = [record("vm", 149.9), record("vmb", 100.01, end_unix_s=120.0, cpu={"cpu_s": 0.9})]
    found = list(pbs_cells.of_job(way(), mine, weighed, {"exec_host": "vm/0"}))
    assert [cell.node for cell in found] == ["vmb"] * 3 + ["vm"] * 3
    assert set(verdicts(found)) == {"=="}


SAID = {"cpu_s": 0.3, "rchar_bytes": 5_000_000, "wchar_bytes": None,
        "missing": {"wchar_bytes": "not readable"}}  # fmt: skip


@pytest.mark.parametrize("quote", ["", "'"])
def test_what_openpbs_has_of_each_host(quote: str) -> None:
    """As its qstat prints it, with a host of two in it."""
    text = quote + json.dumps({"n1": SAID, "n2": SAID | {"cpu_s": 7.0}}) + quote
    about = {"exec_host": "n1/0+n2/0", pbs_cells.HOOK: text}
    mine = [result("1.vm", "0"), result("1.vm", "1")]
    found = pbs_cells.of_job(way(), mine, [record("n1"), record("n2")], about)
    told = [cell for cell in found if cell.where == "qstat"]
    assert [(cell.node, cell.quantity, cell.verdict) for cell in told] == [
        ("n1", "CPU", "=="), ("n2", "CPU", "WRONG"), ("n1", "read calls", "=="),
        ("n2", "read calls", "=="), ("n1", "write calls", "told"), ("n2", "write calls", "told"),
    ]  # fmt: skip


def test_memory_of_the_shell_counts_and_of_nobody_else() -> None:
    mine = [result("1.vm", "0")]
    for more, verdict in ((10 * MIB, "ok"), (40 * MIB, "WRONG"), (-1, "WRONG")):
        weighed: dict[str, Any] = record()
        *parts, last = table.MEMORY.path.split(".")
        inner = weighed
        for part in parts:
            inner = inner.setdefault(part, {})
        inner[last] = 64 * MIB + more
        (cell,) = pbs_cells.of_job(way([table.MEMORY]), mine, [weighed], {"exec_host": "vm/0"})
        assert cell.verdict == verdict


def test_tasks_of_an_array_are_of_its_submission() -> None:
    assert pbs.is_of("12[3].srv", ["12[].srv"])
    assert pbs.is_of("12[].srv", ["12[].srv"])
    assert pbs.is_of("12.srv", ["12.srv"])
    assert not pbs.is_of("12[3].srv", ["12.srv", "1[].srv"])


def attempt(tmp_path: Path, **more: Any) -> pbs.Attempt:
    return pbs.Attempt(way(), tmp_path, jobs=["1.vm"], **more)


def test_a_way_that_came_to_nothing_says_why(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("sh: ./load: not found\n")
    site = pbs.Site(tmp_path, [tmp_path / "records"])
    (late,) = pbs.outcome(site, attempt(tmp_path), False)
    (lost,) = pbs.outcome(site, attempt(tmp_path, done=True), False)
    (refused,) = pbs.outcome(site, attempt(tmp_path, done=True, refused="qsub: no queue"), False)
    for found, why, broken in (
        (late, "its jobs had not ended after 600 s", True),
        (lost, "0 of 1 loads have told what they did: sh: ./load: not found", True),
        (refused, "PBS would not do it: qsub: no queue", False),
    ):
        assert (getattr(found, "why", None), getattr(found, "broken", None)) == (why, broken)


def test_a_job_without_a_record_is_broken(tmp_path: Path) -> None:
    names = json.dumps(result("1.vm", "0").values)
    (tmp_path / "1.vm,0,77.result").write_text(names)
    found = list(pbs.outcome(pbs.Site(tmp_path, [tmp_path]), attempt(tmp_path, done=True), False))
    (one,) = [entry for entry in found if not isinstance(entry, Cell)]
    assert one.broken and "job 1.vm left no record in" in one.why


def test_an_option_that_qsub_refuses_is_told_without_its_usage() -> None:
    said = "qsub: illegal -N value\nusage: qsub [-a date_time]\n\t[-A x]\n       qsub --version\n"
    assert command.complaint("qsub", said, 2).args == CommandError("qsub", "illegal -N value").args


def test_without_pbs_it_is_said_and_where_it_was_named_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    def asked(insists: bool) -> calibrate.Asked:
        return calibrate.Asked(("pbs",), insists, True, "", [], (), (Path("/records"),), 1.0)

    table = Table()
    calibrate.fill(asked(False), tmp_path, table, lambda _: None)
    (trouble,) = table.troubles
    assert trouble.way == "jobs of PBS" and "qsub is not in PATH" in trouble.why
    assert not trouble.broken
    with pytest.raises(MissingError, match="qsub is not in PATH"):
        calibrate.fill(asked(True), tmp_path, Table(), lambda _: None)
