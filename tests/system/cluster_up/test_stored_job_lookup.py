"""`steelyard show` of a job without records or accounting: from a cluster's database."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cluster.sacct_lab import DAY_S, NOW, Lab, lab

from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.wrappers.commands import cli

__all__ = ["lab"]

COMMENT = {"nodes": 1, "exclusive": True, "energy_j": 77.5, "cpu_s": 4.5, "tags": {"project": "x"}}


def collected(lab: Lab) -> None:
    """A wide job, one requeued, one without a record, one that its user made smaller, an array."""
    wide = lab.job("1", 5000, NodeList="n[1-2]")
    lab.record("1", wide, "n1", energy={"energy_j": 1.5})
    lab.record("1", wide, "n2", energy={"energy_j": 2.25})
    lab.record("2", lab.job("2", 2.2 * DAY_S, State="REQUEUED"), energy={"energy_j": 7.0})
    lab.record("2", lab.job("2", 2000, Restarts="1"), energy={"energy_j": 9.0})
    lab.job("3", 1900, AdminComment=json.dumps({"steelyard": COMMENT}))
    lab.record("4", lab.job("4", 1800, TotalCPU="00:30.000"))
    for raw, task in (("10", 1), ("11", 2)):
        lab.record(raw, lab.job(raw, 1700, JobID=f"9_{task}"))
    collect(lab.dir, ClusterSacct(), [lab.records], since_unix_s=NOW - 4 * DAY_S, now=lambda: NOW)


def forget(lab: Lab, *which: str) -> None:
    """The accounting is purged or away, the folder of records empty."""
    if "purged" in which:
        lab.jobs.clear()
        lab.write()
    if "away" in which:
        (lab.base / "away").touch()
    if "records" in which:
        shutil.rmtree(lab.records)
        lab.records.mkdir()


def show(lab: Lab, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    places = ["--record-dir", str(lab.records), "--database", str(lab.dir)]
    code = cli.main(["show", *words, *places])
    out, err = capsys.readouterr()
    return code, out, err


def document(lab: Lab, capsys: pytest.CaptureFixture[str], job: str) -> dict[str, Any]:
    code, out, err = show(lab, capsys, job, "--json")
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.mark.parametrize("gone", [("purged", "records"), ("away", "records"), ("away",)], ids=str)
def test_a_job_is_what_it_was_when_it_was_collected(
    lab: Lab, capsys: pytest.CaptureFixture[str], gone: tuple[str, ...]
) -> None:
    collected(lab)
    before = document(lab, capsys, "1")
    forget(lab, *gone)
    after = document(lab, capsys, "1")
    lost = {"earlier_starts_unix_s": [], "submit_unix_s": before["job"]["submit_unix_s"]}
    assert after["job"] == before["job"] | lost
    assert after["totals"] == before["totals"] and after["totals"]["energy_j"] == 3.75
    names = ("partition", "account", "cpus", "memory_bytes", "time_limit_s", "nodes")
    assert [after["allocation"][n] for n in names] == [before["allocation"][n] for n in names]
    assert after["efficiency"]["cpu"]["share"] == before["efficiency"]["cpu"]["share"]
    kept = after["cluster_database"]
    assert (kept["database"], kept["energy_j"]) == (str(lab.dir), 3.75)
    assert kept["sources"]["energy_j"] == "records"
    assert "2026-11-24 06:00 UTC" in " ".join(after["notes"])
    told = " ".join(after["missing"])
    assert "it does not know this job" in told or "Connection refused" in told


def test_records_that_are_gone_alone_come_from_there_too(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    collected(lab)
    (lost,) = (lab.records / "1").glob("n2.*.json")
    lost.unlink()
    found = document(lab, capsys, "1")
    assert found["totals"]["energy_j"] == 3.75 and found["cluster_database"] is None
    (note,) = found["notes"]
    assert note.startswith("the record of n2 is as") and "without tags" in note
    assert found["nodes"][1]["missing"]["rtt_mean_s"].startswith("the cluster's database")


def test_of_a_requeued_job_its_last_start(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    collected(lab)
    before = document(lab, capsys, "2")
    forget(lab, "purged", "records")
    after = document(lab, capsys, "2")
    assert after["totals"]["energy_j"] == 9.0
    assert after["job"] == before["job"] and len(after["job"]["earlier_starts_unix_s"]) == 1


def test_an_array_is_one_of_its_tasks(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    collected(lab)
    forget(lab, "purged", "records")
    code, _, err = show(lab, capsys, "9")
    assert code == 2 and "9 is an array of 2 jobs: ask for one of 9_1, 9_2" in err
    assert document(lab, capsys, "9_2")["job"]["raw_job_id"] == "11"
    assert document(lab, capsys, "10")["job"]["array_task_id"] == "1"


def test_days_without_the_job_are_not_read(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Only the ends of their files are read, which list the ids in them."""
    for number in (1, 2, 3, 4):
        lab.job(str(number), number * DAY_S)
    lab.job("8", DAY_S + 100, JobID="7_1")
    lab.job("9", DAY_S + 90, JobID="7_2")
    collect(lab.dir, ClusterSacct(), [lab.records], since_unix_s=NOW - 9 * DAY_S, now=lambda: NOW)
    forget(lab, "purged", "records")
    days = sorted((lab.dir / "parquet" / "jobs").glob("day=*/jobs.parquet"))
    assert len(days) == 4
    for path in days[:-1]:
        data = bytearray(path.read_bytes())
        data[4:200] = b"\0" * 196
        path.write_bytes(data)
    assert document(lab, capsys, "1")["cluster_database"] is not None
    assert document(lab, capsys, "7_2")["job"]["raw_job_id"] == "9"
    assert "7 is an array of 2 jobs" in show(lab, capsys, "7")[2]


def test_the_screen_says_who_says_so(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    collected(lab)
    forget(lab, "purged", "records")
    code, out, _ = show(lab, capsys, "3")
    assert code == 0 and f"as counted in {lab.dir}" in out
    assert "by AdminComment: energy 77.5 J" in out and "tags: project=x" in out
    code, out, _ = show(lab, capsys, "4")
    text = " ".join(out.split())
    assert "by the accounting: CPU 30" in text
    assert "energy, read, written, memory not known: its record contradicts the accounting" in text
    assert "marked: cpu_s is 5 by its records, 30 by sacct" in text


def test_several_jobs_and_one_that_nobody_knows(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    collected(lab)
    forget(lab, "away", "records")
    code, out, err = show(lab, capsys, "1", "2", "777", "--json")
    found = json.loads(out)
    assert code == 3 and [job["totals"]["energy_j"] for job in found["jobs"]] == [3.75, 9.0]
    assert len(found["unknown"]) == 1 and "job 777 is not known" in err


def test_no_database_is_no_word_more(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = show(lab, capsys, "777")
    assert code == 3 and "not known" in err and "database" not in err


def test_a_database_that_is_not_whole_is_told_at_once(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    collected(lab)
    forget(lab, "purged", "records")
    (lab.dir / "parquet" / "collected.json").unlink()
    begun = time.monotonic()
    code, _, err = show(lab, capsys, "1")
    assert code == 3 and "the cluster's database: " in err and "is not whole" in err
    assert time.monotonic() - begun < 15  # top has the patience of 20 s


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_database_that_is_not_ours_to_read_is_told(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    collected(lab)
    forget(lab, "purged", "records")
    Path(lab.dir).chmod(0)
    code, _, err = show(lab, capsys, "1")
    Path(lab.dir).chmod(0o750)
    assert code == 3 and "cannot be read: Permission denied" in err
