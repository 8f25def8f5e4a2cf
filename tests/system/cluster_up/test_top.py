"""Who used what: each sum against one made by hand, and what is not known is in none."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import threading
from typing import Any

import duckdb
import pytest
from tests.unit.cluster.sacct_lab import NOW, Lab, lab

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.cluster import day_files, prometheus_metrics
from steelyard.analysis.cluster import top as sums
from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.cluster.top import Engine, sum_top
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.facts import json_fields
from steelyard.wrappers.commands import cli

__all__ = ["lab"]


def fill(lab: Lab) -> None:
    """ada: two jobs with records; bob: one with, one without; eve: one that shared its node."""
    lab.record("1", lab.job("1", 4000))
    lab.record("2", lab.job("2", 3000, JobName="md", Partition="gpu"))
    lab.record("3", lab.job("3", 2000, User="bob", AllocTRES="cpu=4,mem=1G,node=1"))
    lab.job("4", 1900, User="bob", TotalCPU="", AllocTRES="cpu=1,node=1")
    shared = {"scheduler": "slurm", "job_id": "5", "exclusive": False}
    lab.record("5", lab.job("5", 1000, User="eve", Account="chem"), job=shared)
    lab.job("6", 900, User="eve", State="RUNNING", End="Unknown")
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: NOW, since_unix_s=NOW - 8000)


def asked(lab: Lab, *words: str, capsys: pytest.CaptureFixture[str]) -> str:
    span = ["--since", "2026-11-20", "--until", "2026-11-30"]
    assert cli.main(["top", "--database", str(lab.dir), *span, *words]) == 0
    return capsys.readouterr().out


def test_sums_are_of_what_is_known(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    fill(lab)
    document = json.loads(asked(lab, "--json", capsys=capsys))
    assert json_fields.compare("top", document) == []
    mark = json.loads((lab.dir / "parquet" / "collected.json").read_text())
    assert json_fields.compare("collected", mark) == []
    found = {line["name"]: line for line in document["lines"]}
    picked = {
        name: [(one[q]["sum"], one[q]["jobs_known"]) for q in ("energy_j", "cpu_s", "cpu_unused_s")]
        for name, one in found.items()
    }
    # 20 s on 2 CPUs, 5 s of them used; bob's job on 4 CPUs; the usage of his other job is unknown.
    assert picked == {
        "ada": [(247.0, 2), (10.0, 2), (70.0, 2)],
        "bob": [(123.5, 1), (5.0, 1), (75.0, 1)],
        "eve": [(None, 0), (5.0, 1), (35.0, 1)],
    }
    assert found["bob"]["cpu_allocated_s"] == {"sum": 100.0, "jobs_known": 2}
    assert found["bob"]["memory_allocated_byte_s"] == {"sum": 20.0 * 2**30, "jobs_known": 1}
    unused = found["ada"]["memory_unused_byte_s"]
    assert unused == {"sum": 2 * 20 * (2**30 - 3000.0), "jobs_known": 2}
    assert (found["ada"]["read_bytes"]["sum"], found["ada"]["wchar_bytes"]["sum"]) == (600, 400)
    assert document["total"]["jobs"] == 5 and document["running"] == 1
    assert {"reason": "of the whole node, which the job shared", "jobs": 1} in document["reasons"][
        "energy_j"
    ]


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("account", {"physics": 4, "chem": 1}),
        ("partition", {"batch": 4, "gpu": 1}),
        ("node-type", {"virtual": 4, "(not known)": 1}),
        ("application", {"relax": 4, "md": 1}),
    ],
)
def test_by_what(
    lab: Lab, capsys: pytest.CaptureFixture[str], by: str, names: dict[str, int]
) -> None:
    fill(lab)
    rows = list(csv.DictReader(io.StringIO(asked(lab, "--by", by, "--csv", capsys=capsys))))
    assert {row[by]: int(row["jobs"]) for row in rows} == names


def test_the_screen_tells_what_it_does_not_have(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(lab)
    text = asked(lab, "--sort", "joules", "--most", "2", capsys=capsys)
    rows = [line.split() for line in text.splitlines() if line.split()[:1] in (["ada"], ["bob"])]
    assert [row[0] for row in rows] == ["ada", "bob"] and "123.5 J (1)" in text
    assert "joules: known of 3 of 5 jobs. Not: " in text
    assert "1 × of the whole node, which the job shared" in text
    assert "1 more are in the last line alone" in text and "1 job ran then: not in it" in text


def test_a_job_lies_in_one_time_alone(lab: Lab) -> None:
    """Times that touch: every job is in one of them, by its end."""
    fill(lab)
    edges = [NOW - 9000, NOW - 3000, NOW - 1000, NOW + 1]
    counts = [sum_top(lab.dir, "user", a, b).total.jobs for a, b in itertools.pairwise(edges)]
    assert counts == [1, 3, 1]


def test_jobs_are_looked_at_once_whatever_they_are_summed_by(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at no column that is not asked for: a month's words and lists are most of its bytes."""
    fill(lab)
    asked: list[str] = []

    def told(connection: duckdb.DuckDBPyConnection) -> Engine:
        def rows(statement: str) -> list[tuple[Any, ...]]:
            asked.append(statement)
            ((_, plan),) = connection.execute(f"EXPLAIN {statement}").fetchall()
            assert plan.count("READ_PARQUET") == 1, plan
            assert not re.search(r"\b(facts|sources|tags|nodes|reason|name)\b", plan), plan
            return connection.execute(statement).fetchall()

        return Engine(rows, "len", "json_extract_string")

    for module in (sums, prometheus_metrics):
        monkeypatch.setattr(module, "make_duckdb_engine", told)
    assert sum_top(lab.dir, "user", 0, NOW).total.jobs == 5
    assert [bool("missing" in statement) for statement in asked] == [False, True]
    assert "steelyard_partition_jobs_total" in prometheus_metrics.format_metrics(lab.dir, 500, None)
    assert len(asked) == 3 and "missing" not in asked[2]


def test_days_outside_of_the_time_are_not_opened(lab: Lab) -> None:
    lab.record("1", lab.job("1", 3.25 * 86400))
    fill(lab)
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: NOW, since_unix_s=NOW - 400000)
    (first, *_) = sorted((lab.dir / "parquet" / "jobs").glob("day=*/jobs.parquet"))
    assert sum_top(lab.dir, "user", 0, NOW).total.jobs == 6
    first.write_bytes(b"no Parquet")
    assert sum_top(lab.dir, "user", NOW - 86400, NOW).total.jobs == 5
    with pytest.raises(duckdb.Error):
        sum_top(lab.dir, "user", 0, NOW)


def test_nothing_collected_and_nothing_there(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MissingError, match="no database of a cluster"):
        sum_top(lab.dir, "user", 0, NOW)
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: NOW, since_unix_s=NOW - 60)
    document = json.loads(asked(lab, "--json", capsys=capsys))
    assert (document["lines"], document["total"]["energy_j"]["sum"]) == ([], None)


def test_files_that_change_while_they_are_read_are_read_again(lab: Lab) -> None:
    """The first answer comes from files of two collects: another job has ended in between."""
    fill(lab)
    answers = []

    def ask(connection: Any, mark: Any) -> int:
        ((count,),) = connection.execute("SELECT count(*) FROM jobs").fetchall()
        answers.append(count)
        if len(answers) == 1:
            lab.record("7", lab.job("7", 500))
            collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: NOW + 60)
        return int(count)

    assert (day_files.query_jobs(lab.dir, ask), answers) == (6, [5, 6])


def test_a_reader_waits_for_a_collect_that_puts_files_in_place(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day_files, "PATIENCE_S", 90.0)
    fill(lab)
    mark = lab.dir / "parquet" / day_files.MARK
    text = mark.read_text(encoding="utf-8")
    mark.unlink()
    back = threading.Timer(0.2, lambda: mark.write_text(text, encoding="utf-8"))
    back.start()
    assert sum_top(lab.dir, "user", 0, NOW).total.jobs == 5
    back.join()
