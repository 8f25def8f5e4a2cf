"""The table of `steelyard calibrate`: a wrong weighing turns it red, whatever it is wrong by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.calibrate import job_cells, loads, table, ways, words
from steelyard.wrappers.calibrate.job_traces import Row
from steelyard.wrappers.calibrate.table import Cell, Limit, Table, Trouble

MIB = 2**20


EXACTLY = Limit()


def cell(weighed: float | None, limit: Limit = EXACTLY, reason: str | None = None) -> Cell:
    """1,000 bytes were true."""
    return Cell("way", "load", "read calls", "bytes", "record", 1000, weighed, limit, "n1", reason)


@pytest.mark.parametrize(
    ("weighed", "limit", "reason", "verdict"),
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
        (None, Limit(), "sampling was switched off", "told"),
        (400, Limit(), "incomplete: 600 bytes are missing", "told"),
        (1600, Limit(), "incomplete: who knows", "WRONG"),
    ],
)
def test_a_verdict_is_of_both_sides(
    weighed: float | None, limit: Limit, reason: str | None, verdict: str
) -> None:
    assert cell(weighed, limit, reason).verdict == verdict


def test_a_scale_is_right_only_where_something_was_weighed_and_nothing_wrong() -> None:
    assert not Table().is_right
    assert Table([cell(1000)]).is_right
    assert not Table([cell(1000), cell(7)]).is_right
    assert Table([cell(1000)], [Trouble("het", "no such nodes")]).is_right
    assert not Table([cell(1000)], [Trouble("het", "no result", broken=True)]).is_right


def test_a_way_that_came_to_nothing_does_not_make_the_scale_wrong() -> None:
    lacking = [Trouble("salloc", "its jobs had not ended after 600 s", broken=True)]
    said = words.verdict_line(Table([cell(1000)], lacking))
    assert "NOT right" not in said and said.endswith("not all that was begun could be weighed")
    assert words.verdict_line(Table([cell(1000), cell(7)], lacking)).endswith("NOT right")


def result(job: str = "7", node: str = "n1", **more: float) -> loads.Result:
    """What a load of 0.3 s, 5 MB read and 4 MB written tells."""
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
    return loads.Result(job, node, values | more)


KEYS = (
    "unwaited_cpu_us", "restarts", "sent_bytes", "received_bytes", "before_read_calls_bytes",
    "before_write_calls_bytes", "before_to_storage_bytes", "before_from_storage_bytes",
    "others_read_calls_bytes", "others_write_calls_bytes", "others_to_storage_bytes",
    "others_from_storage_bytes", "parent_cpu_us", "parent_read_calls_bytes",
    "parent_write_calls_bytes", "parent_to_storage_bytes", "parent_from_storage_bytes",
    "kernel_to_storage_bytes", "kernel_from_storage_bytes",
)  # fmt: skip


def record(node: str = "n1") -> dict[str, Any]:
    """What a right scale makes of it."""
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
        "job": {"restart_count": "0"},
        "missing": {},
    }


def comment() -> dict[str, Any]:
    return {
        "nodes_weighed": 1, "elapsed_s": 2.1, "cpu_s": 0.301, "max_memory_bytes": 65 * MIB,
        "rchar_bytes": 5_000_100, "wchar_bytes": 4_000_100, "read_bytes": MIB, "write_bytes": MIB,
    }  # fmt: skip


def way(name: str = "sbatch", **more: Any) -> ways.Way:
    return ways.Way(name, loads.standard(), lambda _: [], **more)


def row(of: dict[str, Any] | None) -> Row:
    return Row("7", True, 2.0, ("n1",), of)


def judged(of_record: dict[str, Any], of_comment: dict[str, Any] | None, **more: Any) -> list[Cell]:
    job = job_cells.Job([result()], [of_record], row(of_comment))
    return list(job_cells.cells(way(**more), job))


def wrong(cells: list[Cell]) -> set[tuple[str, str]]:
    return {(cell.quantity, cell.where) for cell in cells if cell.verdict == "WRONG"}


def test_a_right_weighing_has_no_wrong_cell() -> None:
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
def test_elapsed_lies_between_the_load_and_what_slurm_says_of_its_end(
    extern_s: float | None, of_record: float, of_comment: float, verdict: set[tuple[str, str]]
) -> None:
    said = replace(row(comment() | {"elapsed_s": of_comment}), extern_s=extern_s)
    job = job_cells.Job([result()], [record() | {"elapsed_s": of_record}], said)
    assert wrong(list(job_cells.cells(way(), job))) == verdict


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
def test_every_planted_wrong_weighing_turns_its_cell_red(
    quantity: table.Quantity, spoil: Callable[[float], float | None]
) -> None:
    """In the record, and apart from it in the accounting."""
    spoilt, said = record(), comment()
    set_at(spoilt, quantity.path, spoil(table.number_at(spoilt, quantity.path) or 0))
    assert wrong(judged(spoilt, comment())) == {(quantity.name, "record")}
    said[quantity.key] = spoil(said[quantity.key])
    assert wrong(judged(record(), said)) == {(quantity.name, "accounting")}


def test_a_null_is_told_by_its_reason_alone() -> None:
    bare = record()
    set_at(bare, "cpu.cpu_s", None)
    assert wrong(judged(bare, comment())) == {("CPU", "record")}
    bare["missing"] = {"cpu.cpu_s": "sampling was switched off"}
    assert not wrong(judged(bare, comment()))
    assert wrong(judged(record(), comment() | {"cpu_s": None})) == {("CPU", "accounting")}
    told = comment() | {"cpu_s": None, "missing": {"cpu_s": "another node had no processes"}}
    assert not wrong(judged(record(), told))


def test_a_record_that_says_incomplete_may_have_less_but_not_more() -> None:
    cut = record() | {"complete": False, "incomplete_reason": "0.2 s of CPU are missing"}
    set_at(cut, "cpu.cpu_s", 0.1)
    assert not wrong(judged(cut, comment()))
    set_at(cut, "cpu.cpu_s", 0.6)
    assert ("CPU", "record") in wrong(judged(cut, comment()))
    silent = record() | {"complete": False}
    set_at(silent, "cpu.cpu_s", 0.1)
    assert ("CPU", "record") in wrong(judged(silent, comment()))


def test_a_job_without_admin_comment_is_red_unless_its_way_says_why() -> None:
    assert len(wrong(judged(record(), None))) == 7
    assert not wrong(judged(record(), None, no_comment=ways.BRIEF))


def test_of_another_node_nothing_may_be_missing() -> None:
    """A sample of 0.1 s before its step's end would lack as much of its CPU."""
    sums = ("cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
    whole = comment() | {"nodes_weighed": 2} | {key: 2 * comment()[key] for key in sums}
    for short, found in ((0, set()), (0.05, {("CPU", "accounting")})):
        said = whole | {"cpu_s": whole["cpu_s"] - short}
        both = [result(), result(node="n2")]
        job = job_cells.Job(both, [record(), record("n2")], row(said))
        assert wrong(list(job_cells.cells(way(), job))) == found


def test_two_nodes_are_summed_and_an_idle_one_adds_nothing() -> None:
    idle = record("n2")
    for path in ("cpu.cpu_s", "io.rchar_bytes", "io.wchar_bytes", "io.read_bytes",
                 "io.write_bytes", "memory.max_memory_bytes"):  # fmt: skip
        set_at(idle, path, None)
        idle["missing"][path] = "no process of the job was named to the sampler"
    job = job_cells.Job([result()], [record(), idle], row(comment()))
    assert not wrong(list(job_cells.cells(way(), job)))
    null = comment() | {"cpu_s": None}
    job = job_cells.Job([result()], [record(), idle], row(null))
    assert wrong(list(job_cells.cells(way(), job))) == {("CPU", "accounting")}
    both = job_cells.Job([result(), result(node="n2")], [record(), record("n2")], row(comment()))
    short = wrong(list(job_cells.cells(way(), both)))
    assert ("read calls", "accounting") in short and ("memory", "accounting") not in short


def test_truth_is_what_every_process_counted() -> None:
    one = result(unwaited_cpu_us=50_000, before_read_calls_bytes=300, others_read_calls_bytes=20)
    two = result(start_unix_s=101.0, elapsed_s=4.0, kernel_to_storage_bytes=3 * MIB)
    assert loads.truth(table.CPU, [one, two]) == pytest.approx(0.65)
    assert loads.truth(table.READS, [one, two]) == 10_000_320
    assert loads.truth(table.ELAPSED, [one, two]) == 5
    assert loads.truth(table.MEMORY, [one, two]) == 64 * MIB
    assert loads.truth(table.STORED, [one, two]) == 4 * MIB
    assert loads.truth(table.CPU, []) == 0


def test_words_show_every_wrong_number(capsys: pytest.CaptureFixture[str]) -> None:
    whole = Table(judged(record(), comment() | {"cpu_s": 0.602}), [Trouble("het job", "no nodes")])
    words.show(whole, everything=False)
    said = capsys.readouterr().out
    assert "0.6020" in said and "+0.3020" in said and "0.3000" in said
    assert "not possible here: het job: no nodes" in said
    assert "this scale is NOT right" in said
    document = words.as_json(whole, {"host": "h"})
    assert json.loads(json.dumps(document))["right"] is False
    assert document["counts"]["WRONG"] == 1
    assert [c["quantity"] for c in document["cells"] if c["verdict"] == "WRONG"] == ["CPU"]
    page = words.as_page(whole, {"host": "h<1>"})
    assert '<td class="WRONG">WRONG</td>' in page and "h&lt;1&gt;" in page
    assert "0.6020" in page and "<script" not in page and "http" not in page


def test_results_are_read_by_job_and_node(tmp_path: Path) -> None:
    (tmp_path / "7,n1.x,99.result").write_text('{"format": "steelyard-load", "cpu_us": 5}')
    (tmp_path / "7.n1.98.result.new").write_text("{")
    (found,) = loads.results(tmp_path)
    assert (found.job, found.node, found.values) == ("7", "n1.x", {"cpu_us": 5})


def test_what_a_job_without_a_cgroup_cannot_know_excuses_orphans_alone() -> None:
    blind = record() | {"missing": {"cpu.unseen_s": "no cgroup counts CPU"}}
    set_at(blind, "cpu.cpu_s", 0.1)
    assert ("CPU", "record") in wrong(judged(blind, comment()))
    (orphans,) = (load for load in loads.LOADS if load.name == "10 orphans")
    job = job_cells.Job([result()], [blind], row(comment()))
    of_orphans = ways.Way("sbatch", orphans, lambda _: [])
    assert not wrong(list(job_cells.cells(of_orphans, job)))
    set_at(blind, "cpu.cpu_s", 0.6)
    assert wrong(list(job_cells.cells(of_orphans, job))) == {("CPU", "record")}
    short = job_cells.Job([result()], [record()], row(comment() | {"cpu_s": 0.1}))
    assert wrong(list(job_cells.cells(of_orphans, short))) == {("CPU", "accounting")}
