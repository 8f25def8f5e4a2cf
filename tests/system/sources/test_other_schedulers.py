"""The merge takes accounting of Torque and OpenPBS, as their servers wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.sources import accounting_readers
from steelyard.analysis.sources.pbs.accounting import Pbs

query = HELP.query
DATA = Path(__file__).parents[2] / "data"
LOGS = {
    "torque": DATA / "torque" / "accounting-mixed.log",
    "openpbs": DATA / "openpbs" / "accounting-1-classic-pelog.log",
}
# Jobs of each log: the id that qsub printed, and how many runs it has (that array began at 1).
SUBMITTED = {
    "torque": {"0.vm": 1, "1.vm": 1},
    "openpbs": {"0.vm": 1, "3.vm": 1, "4.vm": 1, "5.vm": 1, "6.vm": 1, "7[].vm": 4},
}
SUBMITTED_UNIX_S = {"torque": 1795240009.5, "openpbs": 1795240163.5}
# job, task, state, exit code, start, elapsed: as they stand in the logs; good jobs left no folder.
WANTED = {
    "torque": [
        ("0.vm", None, "failed", 0, 1795240011.0, 4.0),
        ("1.vm", None, "cancelled", None, 1795240058.0, 0.0),
    ],
    "openpbs": [
        ("0.vm", None, "failed", 0, 1795240164.0, 6.0),
        ("3.vm", None, "failed", 139, 1795240295.0, 1.0),
        ("4.vm", None, "timeout", None, 1795240295.0, 39.0),
        ("5.vm", None, "cancelled", 143, 1795240296.0, 49.0),
        ("7[1].vm", "1", "failed", 0, 1795240296.0, 2.0),
        ("7[2].vm", "2", "failed", 7, 1795240298.0, 2.0),
        ("7[3].vm", "3", "failed", 0, 1795240300.0, 1.0),
    ],
}


@pytest.fixture(params=list(SUBMITTED))
def study(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    study = HELP.Study(tmp_path)
    jobs = SUBMITTED[request.param]
    runs = {job: [f"{job.split('.')[0]}-{n}" for n in range(count)] for job, count in jobs.items()}
    planned = [study.planned(run, 1, "clients=1") for names in runs.values() for run in names]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "x"}, "runs": planned}
    (study.dir / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = [
        json.dumps(
            {
                "submission_id": f"b{n}", "scheduler": "pbs", "cluster": "vm", "job_id": job,
                "submitted_unix_s": SUBMITTED_UNIX_S[request.param], "block": 0, "options": [],
                "run_ids": names,
            }
        )
        for n, (job, names) in enumerate(runs.items())
    ]  # fmt: skip
    (study.dir / "submissions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    logs = tmp_path / "accounting"
    logs.mkdir()
    (logs / "20261121").write_bytes(LOGS[request.param].read_bytes())
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(logs))
    monkeypatch.setenv("PATH", "/nowhere")
    study.wanted = WANTED[request.param]
    study.now_unix_s = 1795250000.0
    return study


def test_jobs_of_pbs_are_attempts(study: Any) -> None:
    for _ in range(2):  # the second time from the rows that were kept
        study.collect(accounting={"pbs": Pbs()})
        found = query(
            study,
            "SELECT job_id, array_task_id, state, exit_code, start_unix_s, elapsed_s FROM attempts "
            "WHERE scheduler = 'pbs' AND start_unix_s IS NOT NULL ORDER BY ALL",
        )
        assert found == study.wanted


def test_fields_that_slurm_does_not_have_are_kept(study: Any) -> None:
    study.collect(accounting={"pbs": Pbs()})
    rows = query(
        study,
        "SELECT \"Partition\", Cluster, extra->>'group', extra->>'source' FROM accounting "
        "WHERE Start <> 'Unknown'",
    )
    assert len(rows) == len(study.wanted)
    assert {row[0] for row in rows} <= {"batch", "workq"}
    assert {row[1:] for row in rows} == {("vm", "labpbs", "server log")}


def test_records_of_such_jobs_are_theirs(study: Any) -> None:
    start = study.wanted[0][4]
    HELP.write_record(study.record_dir / "0.vm", "vm", start, "0.vm")
    study.collect(accounting={"pbs": Pbs()})
    found = query(study, "SELECT attempt, node, cpu_s FROM records")
    assert found == [("0.vm.0", "vm", 5.0)]
    assert query(study, "SELECT count(*) FROM samples WHERE attempt = '0.vm.0'") == [(3,)]


@pytest.mark.parametrize(
    ("job_id", "scheduler"),
    [("123", "slurm"), ("123_4", "slurm"), ("123+1", "slurm"), ("123[4]", "pbs"),
     ("123.srv", "pbs"), ("123[4].srv", "pbs"), ("123[]", "pbs")],
)  # fmt: skip
def test_whose_an_id_is_by_its_form(job_id: str, scheduler: str) -> None:
    assert accounting_readers.scheduler_of_job(job_id) == scheduler


def test_where_both_give_such_ids_who_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = accounting_readers.READERS
    for here in (["slurm"], ["pbs"], ["slurm", "pbs"], []):
        for name, reader in readers.items():
            monkeypatch.setattr(reader, "is_installed", lambda is_it=name in here: is_it)
        assert accounting_readers.readers_of_job_id("123") == [
            readers[name] for name in here or ["slurm"]
        ]
        assert accounting_readers.readers_of_job_id("123[4].srv") == [readers["pbs"]]
        assert accounting_readers.readers_of_job_id("123_4") == [readers["slurm"]]
