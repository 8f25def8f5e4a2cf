"""Totals of a job over its nodes: by `steelyard show`, and by the database's view."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.job import job_totals, job_view
from steelyard.analysis.sources.records import COLUMNS, Record, find_value
from steelyard.analysis.store import schema
from steelyard.facts.quantities import METRICS
from steelyard.wrappers.show import job_data, job_document, job_text

USED = {"cpu": {"cpu_s": 1.5}, "memory": {"max_memory_bytes": 4096}, "io": {"rchar_bytes": 10}}
IDLE = {"cpu": {"cpu_s": None}, "processes": {"named": False}}


def record(node: str, *parts: dict[str, Any], exclusive: bool | None = True) -> Record:
    """A node's record; it used 100 J and received 7 bytes."""
    document: dict[str, Any] = {
        "node": node,
        "complete": True,
        "job": {"scheduler": "slurm", "exclusive": exclusive},
        "energy": {"energy_j": 100.0},
        "network": {"rx_bytes": 7, "tx_bytes": 7},
        "processes": {"named": True},
    }
    for part in parts:
        document |= part
    return Record(Path(f"{node}.1.json"), document)


def view_of(*records: Record) -> job_view.JobView:
    return job_view.JobView("1", nodes=job_view.make_node_views(records))


def from_database(*records: Record, mount_type: str | None = None) -> dict[str, float | None]:
    """The same by the view `measurements`, of one run."""
    with duckdb.connect() as connection:
        connection.execute(schema.build_schema())
        nodes = [r.node for r in records]
        put(connection, "runs", run_id="r", attempt="a", attempts=1)
        put(connection, "attempts", run_id="r", attempt="a", nodes=nodes)
        if mount_type is not None:
            put(connection, "tags", run_id="r", attempt="a", key="mount.type", value=mount_type)
        for one in records:
            values = {name: find_value(one.document, path) for name, (path, _) in COLUMNS.items()}
            text = json.dumps(one.document)
            put(connection, "records", run_id="r", attempt="a", node=one.node, record=text,
                **values)  # fmt: skip
        rows = connection.execute("SELECT metric, value FROM measurements").fetchall()
    return dict(rows)


def put(connection: duckdb.DuckDBPyConnection, table: str, **values: Any) -> None:
    """One row; what must not be NULL and was not given is empty."""
    for name, kind, empty_allowed in connection.execute(
        "SELECT column_name, data_type, is_nullable FROM duckdb_columns() WHERE table_name = ?",
        [table],
    ).fetchall():
        if not empty_allowed and values.get(name) is None:
            text = "completed" if name == "state" else ""
            values[name] = "{}" if kind == "JSON" else text if kind == "VARCHAR" else 0
    names = ", ".join(values)
    marks = ", ".join("?" for _ in values)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(values.values()))


@pytest.mark.parametrize(
    ("exclusive", "reason"), [(False, job_totals.SHARED), (None, job_totals.NOT_SAID)]
)
def test_joules_and_network_of_a_node_that_may_be_shared_are_nobodys(
    exclusive: bool | None, reason: str
) -> None:
    records = (record("n1", USED), record("n2", USED, exclusive=exclusive))
    view, measured = view_of(*records), from_database(*records)
    for name in ("energy_j", "rx_bytes", "tx_bytes"):
        assert view.total_or_reason(name) == (None, reason)
        assert measured[name] is None
    assert view.total("cpu_s") == measured["cpu_s"] == 3.0


def test_of_nodes_that_the_job_had_for_itself_they_are_its() -> None:
    records = (record("n1", USED), record("n2", USED))
    view, measured = view_of(*records), from_database(*records)
    assert view.total("energy_j") == measured["energy_j"] == 200
    assert view.total("rx_bytes") == measured["rx_bytes"] == 14


def test_what_no_scheduler_started_is_told_as_the_nodes() -> None:
    own = record("n1", USED, {"job": {"scheduler": "none", "exclusive": None}})
    assert view_of(own).total("energy_j") == from_database(own)["energy_j"] == 100


def test_a_node_that_no_step_came_to_adds_nothing_to_what_processes_use() -> None:
    records = (record("n1", USED), record("n2", IDLE))
    view, measured = view_of(*records), from_database(*records)
    for name, value in (("cpu_s", 1.5), ("max_memory_bytes", 4096), ("rchar_bytes", 10)):
        assert view.total(name) == measured[name] == value
    assert view.total("energy_j") == measured["energy_j"] == 200


@pytest.mark.parametrize(
    ("mount_type", "read", "written"),
    [
        *(("fuse", None, None), ("fuse.ceph-fuse", None, None), ("pvfs2", None, 4096)),
        *(("fuseblk", 0, 4096), ("nfs4", 0, 4096), (None, 0, 4096)),
    ],
)
def test_bytes_of_storage_that_linux_charges_nobody_with_are_not_known(
    mount_type: str | None, read: int | None, written: int | None
) -> None:
    """As fio read 4 MiB from the servers of an OrangeFS: its record had 0 bytes read."""
    io = {"rchar_bytes": 4256757, "wchar_bytes": 70000, "read_bytes": 0, "write_bytes": 4096}
    measured = from_database(record("n1", USED, {"io": io}), mount_type=mount_type)
    assert (measured["read_bytes"], measured["write_bytes"]) == (read, written)
    assert measured["rchar_bytes"] == 4256757


def test_a_node_that_could_not_be_read_leaves_no_total() -> None:
    records = (record("n1", USED), record("n2", {"cpu": {"cpu_s": None}}))
    assert view_of(*records).total_or_reason("cpu_s") == (None, "not known on 1 of 2 nodes")
    assert from_database(*records)["cpu_s"] is None


def test_show_says_beside_the_numbers_whose_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    job_text.print_job(
        job_data.read_details(view_of(record("n1", USED), record("n2", USED, exclusive=False)))
    )
    text = capsys.readouterr().out
    assert "alone on node" in text
    of_node = ", ".join(name for name, total in METRICS.items() if total.is_of_node)
    assert f"all: {of_node}: {job_totals.SHARED}" in text


def test_where_nobody_counted_all_processes_show_has_the_least(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lacking = USED | {"complete": False, "incomplete_of": "processes"}
    details = job_data.read_details(view_of(record("n1", USED), record("n2", lacking)))
    document = job_document.as_json(details)
    totals, least = document["totals"], document["totals_at_least"]
    assert isinstance(totals, dict) and totals["cpu_s"] is None
    assert isinstance(least, dict) and least["cpu_s"] == 3.0
    job_text.print_job(details)
    text = capsys.readouterr().out
    assert "n2 (not all counted)" in text and "≥ 3 s" in text


def test_what_the_cgroup_counted_is_a_total_though_processes_were_not_seen() -> None:
    """20 s of CPU, of which a step has reported 10: the cgroup's CPU and memory are of all."""
    lacking = {
        "complete": False,
        "incomplete_of": "processes",
        "cpu": {"cpu_s": 20.0, "unseen_s": 10.0, "source": "cgroup2"},
        "memory": {"max_memory_bytes": 4096, "source": "cgroup2"},
        "io": {"rchar_bytes": 10},
    }
    of_processes = {"memory": {"max_memory_bytes": 4096, "source": "processes"}}
    removed = {"cpu": {"cpu_s": 20.0, "unseen_s": None, "source": "cgroup2"}}
    totals = {
        name: [
            view_of(record("n1", lacking, more)).total(name) for more in ({}, of_processes, removed)
        ]
        for name in ("cpu_s", "max_memory_bytes", "rchar_bytes")
    }
    assert totals == {
        "cpu_s": [20, 20, None],
        "max_memory_bytes": [4096, None, None],
        "rchar_bytes": [None, None, None],
    }


def test_show_says_what_a_guests_cpu_time_holds(capsys: pytest.CaptureFixture[str]) -> None:
    layers = {"virtualization": {"vm": {"name": "uml"}}}
    job_text.print_job(job_data.read_details(view_of(record("v1", USED, {"probe": layers}))))
    assert "CPU time on v1: its kernel also counts" in capsys.readouterr().out


def test_an_admin_comment_that_does_not_say_alone_has_no_joules(
    capsys: pytest.CaptureFixture[str],
) -> None:
    view = job_view.JobView("1")
    view.admin_comment = {"steelyard": 1, "energy_j": 123.4, "rx_bytes": 5, "cpu_s": 1.0}
    job_text.print_comment(view)
    assert "123" not in capsys.readouterr().out
    view.admin_comment |= {"exclusive": True, "missing": {"cpu_s": "not known on 1 of 2 nodes"}}
    job_text.print_comment(view)
    text = capsys.readouterr().out
    assert "123.4 J (of the whole nodes)" in text
    assert "cpu_s: not known on 1 of 2 nodes" in text
