"""The merge takes accounting of Torque and OpenPBS without a change: only a reader is needed.

The reader here is the test's own, and knows no more than these recorded lines need.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources.accounting import AccountingRow

from ..collect import study as HELP

query = HELP.query
LOGS = Path(__file__).parents[2] / "data" / "pbs"
KNOWN = {
    "JobName": "jobname", "User": "user", "Submit": "ctime", "Start": "start", "End": "end",
    "ExitCode": "Exit_status", "TotalCPU": "resources_used.cput",
}  # fmt: skip
# Jobs of each log: the id that qsub printed, and how many runs it has (that array began at 1).
SUBMITTED = {
    "torque-6.1.3": {"0.vm": 1, "1.vm": 1},
    "openpbs-23.06": {"0.vm": 1, "3.vm": 1, "7[].vm": 4},
}
SUBMITTED_UNIX_S = {"torque-6.1.3": 1795240009.5, "openpbs-23.06": 1795240163.5}


class PbsLog:
    """The last E record of each job."""

    fields = ("JobID", "JobIDRaw", *KNOWN, "extra")
    chunk_size = 200

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, job_ids: Sequence[str]) -> Iterator[AccountingRow]:
        lines = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            _, kind, job_id, text = line.split(";", 3)
            # An array has a record of its own, beside those of its jobs.
            if kind == "E" and "[]" not in job_id and re.sub(r"\[\d+\]", "[]", job_id) in job_ids:
                lines[job_id] = text
        for job_id, text in lines.items():
            cells = dict(re.findall(r'(\S+?)=("[^"]*"|\S*)', text))
            known = [cells.pop(name, "") for name in KNOWN.values()]
            yield self.parse((job_id, job_id, *known, json.dumps(cells)))

    def parse(self, fields: Sequence[str]) -> AccountingRow:
        cells = dict(zip(self.fields, fields, strict=True))
        array = re.fullmatch(r"(\d+)\[(\d+)\](.*)", cells["JobID"])
        start, end = float(cells["Start"]), float(cells["End"])
        code = int(cells["ExitCode"])
        return AccountingRow(
            job_id=cells["JobID"],
            step=None,
            array_job_id=f"{array[1]}[]{array[3]}" if array else None,
            array_task_id=array[2] if array else None,
            waits_in_array=False,
            waiting_tasks=(),
            het_offset=None,
            restarts=None,
            state="completed" if code == 0 else "failed",
            reason=None if code == 0 else f"exit code {code}",
            cluster=None,
            name=cells["JobName"],
            user=cells["User"],
            submit_unix_s=float(cells["Submit"]),
            start_unix_s=start,
            end_unix_s=end,
            elapsed_s=end - start,
            exit_code=code,
            nodes=("vm",),
            admin_comment=None,
            fields=tuple(fields),
        )


@pytest.fixture(params=list(SUBMITTED))
def study(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    study = HELP.Study(tmp_path)
    jobs = SUBMITTED[request.param]
    runs = {job: [f"{job.split('.')[0]}-{n}" for n in range(count)] for job, count in jobs.items()}
    planned = [study.planned(run, 1, "clients=1") for names in runs.values() for run in names]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "x"}, "runs": planned}
    (study.dir / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = [
        json.dumps(
            {
                "submission_id": f"b{n}", "scheduler": "pbs", "cluster": None, "job_id": job,
                "submitted_unix_s": SUBMITTED_UNIX_S[request.param], "block": 0, "options": [],
                "run_ids": names,
            }
        )
        for n, (job, names) in enumerate(runs.items())
    ]  # fmt: skip
    (study.dir / "submissions.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    study.log = PbsLog(LOGS / f"{request.param}.log")
    study.now_unix_s = 1795250000.0
    return study


def wanted(study: Any) -> list[tuple[Any, ...]]:
    """Attempts as the log has them."""
    return sorted(
        (row.job_id, row.array_task_id, row.exit_code, row.start_unix_s, row.elapsed_s)
        for job in SUBMITTED[study.log.path.stem]
        for row in study.log.rows([job])
    )


def test_jobs_of_pbs_are_attempts(study: Any) -> None:
    for _ in range(2):  # the second time from the rows that were kept
        study.collect(accounting={"pbs": study.log})
        found = query(
            study,
            "SELECT job_id, array_task_id, exit_code, start_unix_s, elapsed_s FROM attempts "
            "WHERE scheduler = 'pbs' AND start_unix_s IS NOT NULL ORDER BY ALL",
        )
        assert found == wanted(study) and len(found) >= 2


def test_fields_that_slurm_does_not_have_are_kept(study: Any) -> None:
    study.collect(accounting={"pbs": study.log})
    rows = query(
        study, "SELECT JobName, extra->>'queue', extra->>'resources_used.mem' FROM accounting"
    )
    assert len(rows) == len(wanted(study))
    assert {queue for _, queue, _ in rows} <= {"batch", "workq"}
    assert all(memory.endswith("kb") for _, _, memory in rows)


def test_records_of_such_jobs_are_theirs(study: Any) -> None:
    row = next(iter(study.log.rows(["0.vm"])))
    HELP.write_record(study.record_dir / "0.vm", "vm", row.start_unix_s, "0.vm")
    study.collect(accounting={"pbs": study.log})
    found = query(study, "SELECT attempt, node, cpu_s FROM records")
    assert found == [("0.vm.0", "vm", 5.0)]
    assert query(study, "SELECT count(*) FROM samples WHERE attempt = '0.vm.0'") == [(3,)]
