"""What Slurm reports of a job, and the records that a job of it prints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.calibrate.test_table import result

from steelyard.analysis.sources import sacct
from steelyard.wrappers.calibrate import job_system, slurm_jobs
from steelyard.wrappers.calibrate.job_system import Report


def test_a_row_of_the_accounting() -> None:
    fields = dict.fromkeys(sacct.FIELDS, "") | {
        "JobID": "12", "JobIDRaw": "12", "State": "COMPLETED", "Start": "1", "End": "4",
        "ElapsedRaw": "3", "NodeList": "n[1-2]", "AdminComment": '{"steelyard":1,"cpu_s":0.5}',
    }  # fmt: skip

    def report(**changed: str) -> Report:
        parsed = sacct.parse_row(list((fields | changed).values()))
        assert parsed is not None
        return slurm_jobs.parse_report(parsed)

    comment = {"steelyard": 1, "cpu_s": 0.5}
    assert report() == Report(True, 3, ("n1", "n2"), {None: comment})
    other = report(AdminComment="not ours")
    assert other.totals == {None: None}
    for state in ("RUNNING", "REQUEUE_HOLD", "REQUEUED"):
        assert not report(State=state).is_over
    assert not report(End="Unknown").is_over


def test_each_start_has_its_own_extern_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """As sacct lists them: a start, its steps, the next start, whose extern step continues."""
    lines = [
        ("12", "REQUEUED", "1", "4", "3"), ("12.batch", "CANCELLED", "1", "4", "3"),
        ("12.extern", "CANCELLED", "1", "9", "8"),
        ("12", "COMPLETED", "20", "22", "2"), ("12.extern", "RUNNING", "20", "Unknown", "5"),
        ("13", "COMPLETED", "20", "22", "2"),
    ]  # fmt: skip

    def lines_of(_: sacct.Sacct, arguments: list[str], output: int) -> None:
        assert "-D" in arguments and "--allocations" not in arguments
        for job, state, start, end, took in lines:
            comment = '{"steelyard":1}'
            cells = (job, state, start, end, took, "n1", comment, job)
            os.write(output, (sacct.DELIMITER.join(cells) + "\n").encode())

    monkeypatch.setattr(sacct.Sacct, "run", lines_of)
    found = slurm_jobs.SlurmJobs(Path("/load")).query_reports(["12", "13"])
    assert [(row.elapsed_s, row.extern_s) for row in found["12"]] == [
        (3, 8),
        (2, 5),
    ]
    assert [(row.elapsed_s, row.extern_s) for row in found["13"]] == [(2, None)]


def test_records_one_after_another() -> None:
    text = '{"node": "n1"}\n{"node": "n2", "io": {}}\ncat: nothing\n{"cut'
    assert [found["node"] for found in job_system.split_documents(text)] == ["n1", "n2"]


def test_each_start_has_its_own_record_and_report() -> None:
    """Also where the requeued job begins on another node while the first extern step is ending."""
    records = [
        {"node": "n2", "start_unix_s": 104.0, "end_unix_s": 109.0},
        {"node": "n1", "start_unix_s": 100.0, "end_unix_s": 105.0},
    ]
    results = [result("12", "n1"), result("12", "n2", start_unix_s=104.0)]
    reports = [Report(True, 3, ("n1",)), Report(True, 5, ("n2",))]
    found = [
        ([one.node for one in start.results], start.records, start.report, start.is_last)
        for start in job_system.list_starts(results, records, reports, Report(True, None), True)
    ]
    assert found == [
        (["n1"], records[1:], reports[0], False),
        (["n2"], records[:1], reports[1], True),
    ]
    (only,) = job_system.list_starts(results, records, reports[:1], Report(True, None), False)
    assert (len(only.results), len(only.records), only.is_last) == (2, 2, True)
