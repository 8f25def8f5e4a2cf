"""A job id that comes again: the highest is reached, or slurmctld has lost its state."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.collect.job_index import LATE_S, JobIndex, find_earlier_starts, number_rows
from steelyard.analysis.sources import sacct
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.study_files import Submission

AT = 1_700_000_000


def index() -> JobIndex:
    return JobIndex([Submission("b1", "slurm", "c", "7", AT + 1.0, 1, (), ("r1",))])


def row(after_s: int, restarts: str, **changed: str) -> AccountingRow:
    """A start of job 7, submitted so long after ours."""
    cells = dict.fromkeys(sacct.FIELDS, "") | {
        "JobID": "7", "JobIDRaw": "7", "State": "COMPLETED", "Cluster": "c", "NodeList": "n1",
        "JobName": "study", "User": "me", "Submit": str(AT + after_s), "Start": str(AT + after_s),
        "End": str(AT + after_s + 5), "Restarts": restarts,
    }  # fmt: skip
    parsed = sacct.parse_row(list((cells | changed).values()))
    assert parsed is not None
    return parsed


def attempts(*rows: AccountingRow) -> list[tuple[int, str]]:
    """Place and attempt of those that are ours."""
    numbered, _ = number_rows(index(), rows)
    return [(place, found.attempt) for place, found in sorted(numbered.items())]


@pytest.mark.parametrize("told", [True, False])  # 22.05 does not tell restarts
def test_starts_of_a_requeued_job_are_all_ours(told: bool) -> None:
    first = row(0, "0" if told else "", State="REQUEUED")
    again = row(90_000, "1" if told else "")
    assert attempts(again, first) == [(0, "7.1"), (1, "7.0")]


def test_a_start_that_was_requeued_at_once_is_the_first_one() -> None:
    """slurmdbd (22.05) has its end, but no start."""
    first = row(0, "", State="REQUEUED", Start="Unknown")
    assert attempts(first, row(120, "")) == [(0, "7.0"), (1, "7.1")]
    waits = row(120, "", State="PENDING", Start="Unknown", End="Unknown")
    assert attempts(waits, first) == [(0, "7.1"), (1, "7.0")]


def test_a_later_job_that_starts_for_the_first_time_is_not_ours() -> None:
    """Nor are the later one's next starts."""
    assert attempts(row(0, "0"), row(90_000, "0"), row(90_100, "1")) == [(0, "7.0")]


@pytest.mark.parametrize("other", [{"User": "you"}, {"JobName": "other"}])
@pytest.mark.parametrize("restarts", ["", "1"])
def test_somebody_elses_later_job_is_not_ours(restarts: str, other: dict[str, Any]) -> None:
    assert attempts(row(0, restarts), row(90_000, restarts, **other)) == [(0, f"7.{restarts or 0}")]


def test_when_ours_is_purged_the_later_one_is_not_taken_for_it() -> None:
    assert attempts(row(90_000, "0")) == []
    assert attempts(row(90_000, "3")) == [(0, "7.3")]
    assert attempts(row(int(LATE_S) - 1, "0")) == [(0, "7.0")]


def test_a_job_that_was_resized_is_one() -> None:
    """Slurm has a row of each size: the first is RESIZING, both have the same number of starts."""
    found = attempts(row(0, "0", State="RESIZING"), row(0, "0", Start=str(AT + 3)))
    assert [attempt for _, attempt in found] == ["7.0", "7.0"]


NINE_YEARS_S = 287_948_000


@pytest.mark.parametrize("restarts", ["", "0"])  # 22.05 does not tell restarts
def test_an_id_of_nine_years_ago_was_another_job(restarts: str) -> None:
    """sacct -D has the completed job of 2017 in front of the running one of today."""
    old = row(-NINE_YEARS_S, restarts, User="you", End=str(AT - NINE_YEARS_S + 1000))
    new = row(0, restarts, State="RUNNING", End="Unknown")
    assert attempts(old, new) == [(1, "7.0")]
    assert attempts(old) == []  # ours is not in slurmdbd yet: it waits, and is not completed
    assert find_earlier_starts([old, new]) == ((), (AT - NINE_YEARS_S,))


def test_starts_of_a_job_before_its_last() -> None:
    other = row(-90_000, "", User="you")
    first, second = row(0, "", State="REQUEUED"), row(90_000, "")
    assert find_earlier_starts([other, first, second]) == ((AT,), (AT - 90_000,))
    assert find_earlier_starts([second]) == ((), ())
    lately = row(90_000, "0")  # starts for the first time, and is the same user's of the same name
    assert find_earlier_starts([first, lately]) == ((), (AT,))
