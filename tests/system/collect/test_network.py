"""Network conditions of records: into the database, and what makes a run invalid."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP
from tests.unit.collect.conditions import conditions

from steelyard.analysis.collect import checks, network
from steelyard.analysis.collect.network import normalize_specification
from steelyard.analysis.sources.records import check_record, read_record

HERE = Path(__file__).parent
query, run_id = HELP.query, HELP.run_id


def ask_for(study: Any, level: str) -> None:
    """The study's level of the factor `network` for all runs."""
    path = study.dir / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    for run in plan["runs"]:
        run["condition"]["network"] = level
    path.write_text(json.dumps(plan), encoding="utf-8")


@pytest.fixture
def study(tmp_path: Path) -> Any:
    """A study whose two-node job has conditions on both nodes."""
    return HELP.Study(tmp_path)


def two_nodes(
    study: Any, first: object, second: object, **fields: object
) -> tuple[bool | None, str | None]:
    """Collect with these documents on the nodes of job 11: valid, invalid_reason."""
    both = study.row("11")
    study.attempt(run_id("twonodes"), both)
    for node, document in zip(both.nodes, (first, second), strict=True):
        study.record(both, node, network_conditions=document, **fields)
    study.collect()
    ((valid, reason),) = query(
        study,
        f"SELECT valid, invalid_reason FROM runs WHERE run_id = '{run_id('twonodes')}'",
    )
    return valid, reason


def test_the_table_has_a_row_per_node(study: Any) -> None:
    ask_for(study, "delay=50ms")
    assert two_nodes(study, conditions(), conditions(peer=None, rtt={}, loss=None)) == (True, None)
    first, second = query(
        study, "SELECT * EXCLUDE (run_id, attempt, node) FROM network ORDER BY node"
    )
    assert first == (
        "delay=50ms", "delay=50ms", "node", "netem", ["eth0"], "10.0.0.9", 0.0003, 0.0503, 0.0504,
        0.0003, 0.0, 0.0, 0.00096, 4000, None, None, None, 4000, 0, 0.012, 0.009, True, None, True,
    )  # fmt: skip
    assert second[5:17] == (None,) * 12  # not measured is NULL


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"valid": False, "invalid_reason": "3 packets dropped"}, "{}: 3 packets dropped"),
        ({"valid": False}, "{}: invalid, the record does not say why"),
        ({"undone": False}, "{}: the conditions were not undone"),
        (
            {"requested": "delay=25ms"},
            "{}: the study's level is network=delay=50ms, the job had delay=25ms",
        ),
    ],
)
def test_one_bad_node_makes_the_run_invalid(study: Any, change: dict[str, Any], words: str) -> None:
    ask_for(study, "delay=50ms")
    node = study.row("11").nodes[1]
    assert two_nodes(study, conditions(), conditions(**change)) == (False, words.format(node))


def test_what_was_asked_for_and_not_applied_is_invalid(study: Any) -> None:
    ask_for(study, "delay=50ms")
    valid, reason = two_nodes(study, None, None)
    assert (valid, reason) == (
        False,
        "network=delay=50ms was asked for, and not applied on any node",
    )


@pytest.mark.parametrize(("connections", "valid"), [(2, False), (0, True), (None, True)])
def test_a_node_that_talks_without_the_condition_is_told(
    study: Any, connections: int | None, valid: bool
) -> None:
    """mpirun's daemon was started there by an srun without --netem; an idle node needs none."""
    ask_for(study, "delay=50ms")
    found, reason = two_nodes(study, conditions(), None, tcp={"connections": connections})
    assert found is valid
    node = study.row("11").nodes[1]
    words = f"{node}: the job has sent from there, and its condition was not applied there"
    assert reason == (None if valid else words)


def test_without_any_record_nobody_knows(study: Any) -> None:
    ask_for(study, "delay=50ms")
    study.attempt(run_id("twonodes"), study.row("11"))
    study.collect()
    ((reason,),) = query(study, "SELECT invalid_reason FROM runs WHERE valid = false")
    assert reason == "network=delay=50ms was asked for, and no record says whether it was applied"


@pytest.mark.parametrize("level", ["none", None])
def test_nothing_asked_for_and_nothing_there_is_valid(study: Any, level: str | None) -> None:
    if level is not None:
        ask_for(study, level)
    assert two_nodes(study, None, None) == (True, None)


def test_conditions_of_a_run_that_should_have_none_are_invalid(study: Any) -> None:
    ask_for(study, "none")
    valid, reason = two_nodes(study, None, conditions())
    assert valid is False and "the job had delay=50ms" in str(reason)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("delay=50ms", "delay=0.05s", True),
        ("delay=50ms,loss=0.1%", "loss=0.10%, delay=50000us", True),
        ("rate=1gbit", "rate=1000mbit", True),
        ("delay=50ms~5ms/normal", "delay=0.05s~5000us/normal", True),
        ("to=10.1.2.3/8", "to=10.0.0.0/8", True),
        ("delay=1ms", "direction=egress,delay=1ms", True),
        ("delay=1ms", "delay=1ms,direction=ingress", False),
        ("delay=50ms", "delay=50us", False),
        ("delay=50ms", "delay=50ms,loss=1%", False),
        ("delay=50ms~5ms/normal", "delay=50ms~5ms/pareto", False),
        ("dev=eth0", "dev=eth1", False),
        ("rate=1mbit", "rate=1kbit", False),
        ("delay=0ms", "none", False),
    ],
)
def test_levels_compare_by_what_they_mean(one: str, other: str, same: bool) -> None:
    assert (normalize_specification(one) == normalize_specification(other)) is same


def test_what_chance_did_is_in_the_table() -> None:
    share = {"achieved": 0.011, "low": 0.01, "high": 0.012, "packets": 1000}
    row = network.read_columns(conditions(duplicate=share, corrupt=None))
    names = [f"{name}_achieved" for name in ("duplicate", "corrupt", "reorder")]
    assert [row[name] for name in names] == [0.011, None, None]


def test_a_field_of_another_type_is_null(tmp_path: Path) -> None:
    row = network.read_columns(conditions(apply_s="fast", devices=None, valid="yes", rtt=[1]))
    assert (row["apply_s"], row["devices"], row["valid"], row["rtt_after_s"]) == (
        None,
        [],
        None,
        None,
    )
    document = {"format": "steelyard-record", "version": 1, "node": "n1", "complete": True}
    assert network.find_conditions(check_record(tmp_path, document)) is None


@pytest.mark.parametrize("place", ["job.out", "err.0", "submission"])
def test_a_condition_that_could_not_be_applied_is_named(
    study: Any, place: str, tmp_path: Path
) -> None:
    """The job ends with exit code 4; its line becomes the run's reason."""
    row = study.task_row("2", 1)
    folder = study.attempt(run_id("array", 1), row, state="failed", reason="exit code 4")
    submissions = study.dir / "submissions"
    submissions.mkdir()
    path = submissions / "array.out" if place == "submission" else folder / place
    path.write_text("hello\nsteelyard: --netem=delay=50ms: no sch_netem here\n", encoding="utf-8")
    study.accounting.rows = exit_code_4(study.accounting.rows, row.job_id)
    study.collect()
    ((state, reason),) = query(
        study, f"SELECT state, reason FROM runs WHERE run_id = '{run_id('array', 1)}'"
    )
    assert (state, reason) == ("failed", "--netem=delay=50ms: no sch_netem here")


def exit_code_4(rows: Callable[[Any], Any], job_id: str) -> Callable[[Any, float], Any]:
    """The recorded accounting, but for the exit code of one job."""
    import dataclasses

    return lambda job_ids, since_unix_s: (
        dataclasses.replace(row, exit_code=4) if row.job_id == job_id else row
        for row in rows(job_ids)
    )


def test_a_real_record_of_a_virtual_node() -> None:
    """50 ms were requested, and the kernel measured them on the job's own socket."""
    (path,) = (HERE.parents[1] / "data" / "records" / "network").glob("*.json")
    record = read_record(path)
    document = network.find_conditions(record)
    assert document is not None
    row = network.read_columns(document)
    assert row["requested"] == row["applied"] == "delay=50ms,to=10.76.162.12,dev=vec0"
    assert (row["qdisc"], row["devices"], row["scope"]) == ("netem", ["vec0"], "node")
    assert (row["valid"], row["undone"], row["dropped_packets"]) == (True, True, 0)
    assert row["rtt_before_s"] is None and row["peer"] is None
    assert 0.05 < record.columns()["rtt_median_s"] < 0.052
    level = "to=10.76.162.12/32, delay=0.05s, dev=vec0"
    assert list(checks.find_network_faults("v1", document, level)) == []
    assert list(checks.find_network_faults("v1", document, "delay=50ms")) != []


def test_round_trip_times_of_real_samples(study: Any) -> None:
    (path,) = (HERE.parents[1] / "data" / "records" / "network").glob("*.csv")
    both = study.row("11")
    study.attempt(run_id("twonodes"), both)
    own = study.record(both, both.nodes[0])
    own.with_suffix(".csv").write_bytes(path.read_bytes())
    study.collect()
    ((readings, middle),) = query(study, "SELECT count(rtt_s), median(rtt_s) FROM samples")
    assert readings > 0 and 0.05 < middle < 0.052
