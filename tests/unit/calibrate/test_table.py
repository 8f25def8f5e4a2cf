"""The table of `steelyard calibrate`: a wrong measurement turns it red, whatever it is wrong by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources.records import find_number
from steelyard.facts import json_fields
from steelyard.wrappers.calibrate import (
    job_system,
    known_loads,
    slurm_jobs,
    table,
    truth_comparison,
)
from steelyard.wrappers.calibrate.job_system import LaunchMethod, Report, Start
from steelyard.wrappers.calibrate.table import ACCOUNTING, Cell, Limit, Table, Trouble

MIB = 2**20


EXACTLY = Limit()
STANDARD = known_loads.standard_load()


def cell(measured: float | None, limit: Limit = EXACTLY, reason: str | None = None) -> Cell:
    """1,000 bytes were true."""
    return Cell(
        "method", "load", "read calls", "bytes", "record", 1000, measured, limit, "n1", reason
    )


@pytest.mark.parametrize(
    ("measured", "limit", "reason", "verdict"),
    [
        (1000, Limit(), None, "=="),
        (1001, Limit(), None, "WRONG"),
        (999, Limit(), None, "WRONG"),
        (1001, Limit(0, 1, "why"), None, "ok"),
        (1002, Limit(0, 1, "why"), None, "WRONG"),
        (999, Limit(0, 1, "why"), None, "WRONG"),
        (999, Limit(1, 1, "why"), None, "ok"),
        (2000, Limit(10, 10, "why"), None, "WRONG"),
        (0, Limit(10, 10, "why"), None, "WRONG"),
        (None, Limit(), None, "WRONG"),
        (None, Limit(), "sampling was switched off", "stated"),
        (400, Limit(), "incomplete: 600 bytes are missing", "stated"),
        (1600, Limit(), "incomplete: who knows", "WRONG"),
    ],
)
def test_a_verdict_is_of_both_sides(
    measured: float | None, limit: Limit, reason: str | None, verdict: str
) -> None:
    assert cell(measured, limit, reason).verdict == verdict


def test_a_scale_is_right_only_where_something_was_measured_and_nothing_wrong() -> None:
    assert not Table().is_right
    assert Table([cell(1000)]).is_right
    assert not Table([cell(1000), cell(7)]).is_right
    assert Table([cell(1000)], [Trouble("het", "no such nodes")]).is_right
    assert not Table([cell(1000)], [Trouble("het", "no result", failed=True)]).is_right


def test_a_launch_method_without_a_result_does_not_make_the_scale_wrong() -> None:
    failed = [Trouble("salloc", "its jobs had not ended after 600 s", failed=True)]
    line = table.format_verdict(Table([cell(1000)], failed))
    assert "NOT right" not in line and line.endswith("not all that was begun could be measured")
    assert table.format_verdict(Table([cell(1000), cell(7)], failed)).endswith("NOT right")


def result(job: str = "7", node: str = "n1", **more: float) -> known_loads.Result:
    """What a load of 0.3 s, 5 MB read and 4 MB written counts."""
    values = dict.fromkeys(KEYS, 0.0) | {
        "start_unix_s": 100.0,
        "elapsed_s": 2.0,
        "cpu_us": 300_000,
        "read_calls_bytes": 5_000_000,
        "write_calls_bytes": 4_000_000,
        "to_storage_bytes": MIB,
        "from_storage_bytes": MIB,
        "memory_bytes": 64 * MIB,
    }
    return known_loads.Result(job, node, values | more)


KEYS = (
    "unwaited_cpu_us", "sent_bytes", "received_bytes", "before_read_calls_bytes",
    "before_write_calls_bytes", "before_to_storage_bytes", "before_from_storage_bytes",
    "others_read_calls_bytes", "others_write_calls_bytes", "others_to_storage_bytes",
    "others_from_storage_bytes", "parent_cpu_us", "parent_read_calls_bytes",
    "parent_write_calls_bytes", "parent_to_storage_bytes", "parent_from_storage_bytes",
    "kernel_to_storage_bytes", "kernel_from_storage_bytes",
)  # fmt: skip


def record(node: str = "n1") -> dict[str, Any]:
    """Return the record that a correct measurement makes of it."""
    return {
        "node": node,
        "complete": True,
        "elapsed_s": 2.1,
        "cpu": {"cpu_s": 0.301},
        "memory": {"max_memory_bytes": 65 * MIB},
        "io": {
            "rchar_bytes": 5_000_100,
            "wchar_bytes": 4_000_100,
            "read_bytes": MIB,
            "write_bytes": MIB,
        },
        "missing": {},
    }


def comment() -> dict[str, Any]:
    return {
        "nodes_measured": 1, "elapsed_s": 2.1, "cpu_s": 0.301, "max_memory_bytes": 65 * MIB,
        "rchar_bytes": 5_000_100, "wchar_bytes": 4_000_100, "read_bytes": MIB, "write_bytes": MIB,
    }  # fmt: skip


SYSTEM = slurm_jobs.SlurmJobs(Path("/load"))


def report(of: dict[str, Any] | None) -> Report:
    return Report(True, 2.0, ("n1",), {None: of})


def cells_of(start: Start, load: known_loads.KnownLoad = STANDARD, **more: Any) -> list[Cell]:
    method: LaunchMethod = SYSTEM.script_method("sbatch", load, **more)
    return list(truth_comparison.StartCells(SYSTEM, method, start).list_cells())


def judged(of_record: dict[str, Any], of_comment: dict[str, Any] | None, **more: Any) -> list[Cell]:
    return cells_of(Start([result()], [of_record], report(of_comment)), **more)


def wrong(cells: list[Cell]) -> set[tuple[str, str]]:
    return {(cell.quantity, cell.where) for cell in cells if cell.verdict == "WRONG"}


def test_a_right_measurement_has_no_wrong_cell() -> None:
    cells = judged(record(), comment())
    assert len(cells) == 14 and not wrong(cells)


@pytest.mark.parametrize(
    ("extern_s", "of_record", "of_comment", "verdict"),
    [
        (7.0, 7.9, 2.9, set()),  # a busy machine: the extern step ends seconds after the job
        (7.0, 8.1, 2.9, {("elapsed", "record")}),
        (7.0, 7.9, 3.1, {("elapsed", "accounting")}),
        (7.0, 1.9, 2.9, {("elapsed", "record")}),
        (None, 2.9, 2.9, set()),  # a site without extern steps
        (None, 3.1, 2.9, {("elapsed", "record")}),
    ],
)
def test_elapsed_is_between_the_load_and_slurms_elapsed(
    extern_s: float | None, of_record: float, of_comment: float, verdict: set[tuple[str, str]]
) -> None:
    ended = replace(report(comment() | {"elapsed_s": of_comment}), extern_s=extern_s)
    job = Start([result()], [record() | {"elapsed_s": of_record}], ended)
    assert wrong(cells_of(job)) == verdict


def set_at(document: dict[str, Any], path: str, value: Any) -> None:
    *above, key = path.split(".")
    for part in above:
        document = document[part]
    document[key] = value


@pytest.mark.parametrize("quantity", table.USUAL, ids=lambda quantity: quantity.name)
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda value: 2 * value, id="twice"),
        pytest.param(lambda value: value / 2, id="half"),
        pytest.param(lambda value: 0, id="nothing"),
        pytest.param(lambda value: None, id="null"),
        pytest.param(lambda value: 2.0**32 + value, id="wrapped"),
    ],
)
def test_every_planted_wrong_number_turns_its_cell_red(
    quantity: table.Quantity, spoil: Callable[[float], float | None]
) -> None:
    """In the record, and apart from it in the accounting."""
    spoilt, totals = record(), comment()
    set_at(spoilt, quantity.path, spoil(find_number(spoilt, quantity.path) or 0))
    assert wrong(judged(spoilt, comment())) == {(quantity.name, "record")}
    totals[quantity.key] = spoil(totals[quantity.key])
    assert wrong(judged(record(), totals)) == {(quantity.name, "accounting")}


def test_a_null_needs_its_reason() -> None:
    bare = record()
    set_at(bare, "cpu.cpu_s", None)
    assert wrong(judged(bare, comment())) == {("CPU", "record")}
    bare["missing"] = {"cpu.cpu_s": "sampling was switched off"}
    assert not wrong(judged(bare, comment()))
    assert wrong(judged(record(), comment() | {"cpu_s": None})) == {("CPU", "accounting")}
    stated = comment() | {"cpu_s": None, "missing": {"cpu_s": "another node had no processes"}}
    assert not wrong(judged(record(), stated))


def test_an_incomplete_record_may_have_less_but_not_more() -> None:
    cut = record() | {"complete": False, "incomplete_reason": "0.2 s of CPU are missing"}
    set_at(cut, "cpu.cpu_s", 0.1)
    assert not wrong(judged(cut, comment()))
    set_at(cut, "cpu.cpu_s", 0.6)
    assert ("CPU", "record") in wrong(judged(cut, comment()))
    silent = record() | {"complete": False}
    set_at(silent, "cpu.cpu_s", 0.1)
    assert ("CPU", "record") in wrong(judged(silent, comment()))


def test_one_job_may_miss_its_comment_and_is_told_why() -> None:
    missed = [cell for cell in judged(record(), None) if cell.where == ACCOUNTING]
    assert {cell.reason for cell in missed} == {slurm_jobs.RACE} and not wrong(missed)
    brief = judged(record(), None, no_totals=slurm_jobs.BRIEF)
    assert {cell.reason for cell in brief if cell.where == ACCOUNTING} == {slurm_jobs.BRIEF}


def test_no_comment_of_any_job_is_a_trouble() -> None:
    for totals, right in ((comment(), True), (None, False)):
        found = Table(judged(record(), totals) + judged(record(), None))
        found.require_totals(ACCOUNTING)
        assert found.is_right is right


def test_a_job_without_accounting_is_red() -> None:
    started = {**record(), "start_unix_s": 100.0}
    (start,) = job_system.list_starts([result()], [started], [], SYSTEM.no_report, False)
    assert wrong(cells_of(start)) == {(one.name, "accounting") for one in table.USUAL}


def test_of_another_node_nothing_may_be_missing() -> None:
    """A sample 0.1 s before its step's end would lack as much of its CPU."""
    sums = ("cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
    whole = comment() | {"nodes_measured": 2} | {key: 2 * comment()[key] for key in sums}
    for short, found in ((0, set()), (0.05, {("CPU", "accounting")})):
        totals = whole | {"cpu_s": whole["cpu_s"] - short}
        both = [result(), result(node="n2")]
        job = Start(both, [record(), record("n2")], report(totals))
        assert wrong(cells_of(job)) == found


def test_two_nodes_are_summed_and_an_idle_one_adds_nothing() -> None:
    idle = record("n2")
    for path in ("cpu.cpu_s", "io.rchar_bytes", "io.wchar_bytes", "io.read_bytes",
                 "io.write_bytes", "memory.max_memory_bytes"):  # fmt: skip
        set_at(idle, path, None)
        idle["missing"][path] = "no process of the job was named to the sampler"
    job = Start([result()], [record(), idle], report(comment()))
    assert not wrong(cells_of(job))
    null = comment() | {"cpu_s": None}
    job = Start([result()], [record(), idle], report(null))
    assert wrong(cells_of(job)) == {("CPU", "accounting")}
    both = Start([result(), result(node="n2")], [record(), record("n2")], report(comment()))
    short = wrong(cells_of(both))
    assert ("read calls", "accounting") in short and ("memory", "accounting") not in short


def test_truth_is_what_every_process_counted() -> None:
    one = result(unwaited_cpu_us=50_000, before_read_calls_bytes=300, others_read_calls_bytes=20)
    two = result(start_unix_s=101.0, elapsed_s=4.0, kernel_to_storage_bytes=3 * MIB)
    assert known_loads.true_value(table.CPU, [one, two]) == pytest.approx(0.65)
    assert known_loads.true_value(table.READS, [one, two]) == 10_000_320
    assert known_loads.true_value(table.ELAPSED, [one, two]) == 5
    assert known_loads.true_value(table.MEMORY, [one, two]) == 64 * MIB
    assert known_loads.true_value(table.STORED, [one, two]) == 4 * MIB
    assert known_loads.true_value(table.CPU, []) == 0


def test_every_wrong_number_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    whole = Table(judged(record(), comment() | {"cpu_s": 0.602}), [Trouble("het job", "no nodes")])
    table.print_table(whole, everything=False)
    printed = capsys.readouterr().out
    assert "0.6020" in printed and "+0.3020" in printed and "0.3000" in printed
    assert "not possible here: het job: no nodes" in printed
    assert "this scale is NOT right" in printed
    document = table.as_json(whole, {"host": "h"})
    assert json.loads(json.dumps(document))["correct"] is False
    assert document["counts"]["WRONG"] == 1
    facts = {"when": "", "host": "h", "kernel": "6.1", "cpus": 2, "load_average": 0.1}
    assert json_fields.compare("calibration", table.as_json(whole, facts)) == []
    assert [c["quantity"] for c in document["cells"] if c["verdict"] == "WRONG"] == ["CPU"]
    page = table.render_page(whole, {"host": "h<1>"})
    assert '<td class="WRONG">WRONG</td>' in page and "h&lt;1&gt;" in page
    assert "0.6020" in page and "<script" not in page and "http" not in page


def test_results_are_read_by_job_and_node(tmp_path: Path) -> None:
    (tmp_path / "7,n1.x,99.result").write_text('{"format": "steelyard-load", "cpu_us": 5}')
    (tmp_path / "7.n1.98.result.new").write_text("{")
    (found,) = known_loads.read_results(tmp_path)
    assert (found.job, found.node, found.values) == ("7", "n1.x", {"cpu_us": 5})


def test_what_a_job_without_a_cgroup_cannot_know_excuses_orphans_alone() -> None:
    blind = record() | {"missing": {"cpu.unseen_s": "no cgroup counts CPU"}}
    set_at(blind, "cpu.cpu_s", 0.1)
    assert ("CPU", "record") in wrong(judged(blind, comment()))
    (orphans,) = (load for load in known_loads.LOADS if load.name == "10 orphans")
    job = Start([result()], [blind], report(comment()))
    assert not wrong(cells_of(job, orphans))
    set_at(blind, "cpu.cpu_s", 0.6)
    assert wrong(cells_of(job, orphans)) == {("CPU", "record")}
    short = Start([result()], [record()], report(comment() | {"cpu_s": 0.1}))
    assert wrong(cells_of(short, orphans)) == {("CPU", "accounting")}
