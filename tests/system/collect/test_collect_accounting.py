"""What was once collected of the accounting stays, whatever a later sacct no longer answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

query, run_id = HELP.query, HELP.run_id
ALL_ROWS = "SELECT * FROM accounting ORDER BY ALL"


class Changed(HELP.RecordedSacct):
    """The recorded accounting, each row passed through `change`; None leaves it out."""

    change: Callable[[Any], Any] = staticmethod(lambda row: row)

    def rows(self, job_ids: Sequence[str], since_unix_s: float = 0.0) -> Iterator[Any]:
        for row in super().rows(job_ids):
            if (changed := self.change(row)) is not None:
                yield changed

    def said(self, row: Any, **fields: str) -> Any:
        """The row with other words in some fields."""
        pairs = zip(self.fields, row.fields, strict=True)
        return self.parse_row([fields.get(name, text) for name, text in pairs])


# Without and with restarts.
@pytest.fixture(params=[pytest.param("22.05", marks=pytest.mark.slow), "26.05"])
def study(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    study = HELP.Study(tmp_path, request.param)
    study.everything()
    study.accounting = Changed(request.param)
    return study


def attempts(study: Any, *but: str) -> list[tuple[Any, ...]]:
    """All attempts but those of these submissions; not what they were made of (of files two seconds old)."""
    rows = query(study, "SELECT * EXCLUDE (stamp) FROM attempts ORDER BY ALL")
    left_out = {run_id(name, task) for name in but for task in range(HELP.SUBMITTED[name][1])}
    return [row for row in rows if row[0] not in left_out]


# When the accounting deletes a running or pending job, its end remains unknown.
OPEN = ("running", "waiting")


def test_a_sacct_without_rows_takes_nothing_away(study: Any) -> None:
    study.collect()
    rows, before = query(study, ALL_ROWS), attempts(study, *OPEN)
    study.accounting.change = lambda row: None
    study.collect()
    assert query(study, ALL_ROWS) == rows and len(rows) > 0
    assert attempts(study, *OPEN) == before


def test_jobs_that_are_purged_one_by_one_stay(study: Any) -> None:
    """Some tasks of an array, the first starts of a requeued job, and steps before their jobs."""
    study.collect()
    rows, before = query(study, ALL_ROWS), attempts(study)
    gone = {study.task_row("2", 1).job_id, study.task_row("2", 2).job_id}
    second = study.row("16", 1).submit_unix_s

    def purge(row: Any) -> Any:
        old = row.job_id == "16" and row.step is None and row.submit_unix_s < second
        return None if row.step is not None or row.job_id in gone or old else row

    study.accounting.change = purge
    study.collect()
    assert query(study, ALL_ROWS) == rows
    assert attempts(study) == before


def test_rows_that_changed_take_the_place_of_their_older_selves(study: Any) -> None:
    running = study.row("21")
    study.collect()
    (count,) = query(study, "SELECT count(*) FROM accounting")
    study.accounting.change = lambda row: (
        study.accounting.said(row, State="FAILED", End=str(int(running.start_unix_s) + 5))
        if row.job_id == "21" and row.step is None
        else row
    )
    study.collect()
    assert query(study, "SELECT count(*) FROM accounting") == [count]
    assert query(study, f"SELECT state FROM runs WHERE run_id = '{run_id('running')}'") == [
        ("failed",)
    ]


@pytest.mark.parametrize("said", ["completed", "started"])
def test_a_job_purged_before_its_end_was_asked_for(study: Any, said: str) -> None:
    """Its own result has its end; without one it is lost, instead of running for ever."""
    study.collect()
    study.attempt(run_id("running"), study.row("21"), state=said)
    study.accounting.change = lambda row: None
    study.collect(patience_s=0)
    ((state, reason),) = query(
        study, f"SELECT state, reason FROM runs WHERE run_id = '{run_id('running')}'"
    )
    assert state == {"completed": "completed", "started": "lost"}[said]
    assert said == "completed" or "no longer knows the job" in reason
    waits = query(study, f"SELECT state FROM runs WHERE run_id = '{run_id('waiting', 3)}'")
    assert waits == [("lost",)]


def test_a_list_of_waiting_tasks_that_is_gone_is_no_list_any_more(study: Any) -> None:
    """Tasks 1 to 3 of the array wait; then they are cancelled one by one, which leaves no row."""
    study.collect()
    listed = "SELECT JobID FROM accounting WHERE submission_id = 'waiting' AND attempt IS NULL"
    assert query(study, listed) == [("22_[1-3%1]",)]
    study.accounting.change = lambda row: (
        None if row.waits_in_array and row.array_job_id == "22" else row
    )
    study.collect()
    assert query(study, listed) == []
    assert query(study, f"SELECT state FROM runs WHERE run_id = '{run_id('waiting', 1)}'") == [
        ("cancelled",)
    ]


def test_a_job_that_was_requeued_is_asked_for_again(study: Any) -> None:
    """However long ago: its next start is to come."""
    first = study.row("16").submit_unix_s
    later = lambda row: row.job_id == "16" and row.submit_unix_s != first
    study.accounting.change = lambda row: None if row.step is None and later(row) else row
    study.now_unix_s += 3600
    study.collect()
    assert query(study, "SELECT state FROM attempts WHERE attempt = '16.0'") == [("requeued",)]
    study.accounting.change = lambda row: row
    study.collect()
    assert query(study, f"SELECT state FROM runs WHERE run_id = '{run_id('twice')}'") == [
        ("completed",)
    ]
    assert "16" in study.accounting.asked[-1]
