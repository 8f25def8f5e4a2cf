"""collect() right after the last run: the accounting gets a job's end a moment later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

RUN = HELP.run_id("twonodes")


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    study.accounting = LateSacct()
    return study


def state(study: Any) -> str:
    ((found,),) = HELP.query(study, f"SELECT state FROM runs WHERE run_id = '{RUN}'")
    return str(found)


def ended_unix_s(study: Any) -> float:
    """Return when the run wrote its result."""
    result = study.dir / "runs" / RUN / "11.0" / "result.json"
    return float(json.loads(result.read_text(encoding="utf-8"))["end_unix_s"])


class LateSacct(HELP.RecordedSacct):
    """Slurm's accounting that for some questions still calls job 11 running."""

    late = 0

    def rows(self, job_ids: Any, since_unix_s: float = 0.0) -> Any:
        self.late -= 1
        for row in super().rows(job_ids):
            if self.late >= 0 and row.job_id == "11" and row.step is None:
                said = {"State": "RUNNING", "End": "Unknown"}
                row = self.parse_row(
                    [said.get(*pair) for pair in zip(self.fields, row.fields, strict=True)]
                )
            yield row


@pytest.mark.parametrize(
    ("late", "ended_s_ago", "expected", "questions"),
    [(2, 10, "completed", 3), (10**6, 600, "running", 1)],
    ids=["a moment ago", "long ago"],
)
def test_a_job_about_to_end_is_waited_for(
    study: Any, late: int, ended_s_ago: float, expected: str, questions: int
) -> None:
    """Its run is over, slurmdbd gets that a moment later: its end and its records are requested."""
    study.accounting.late = late
    ended = ended_unix_s(study)
    study.collect(now=lambda: ended + ended_s_ago)
    assert state(study) == expected
    assert len(study.accounting.asked) == questions
    (records,) = HELP.query(study, f"SELECT count(*) FROM records WHERE run_id = '{RUN}'")
    assert records == ((2,) if expected == "completed" else (0,))


def test_patience_with_a_job_that_does_not_end_has_an_end(study: Any) -> None:
    study.accounting.late = 10**6
    ended = ended_unix_s(study)
    study.collect(now=lambda: ended + 1, patience_s=0.0)
    assert state(study) == "running"
    assert len(study.accounting.asked) == 1
