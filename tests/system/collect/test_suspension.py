"""A run whose job was suspended (scontrol suspend, gang scheduling) is in no mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.sources.accounting import AccountingRow


class Suspending(HELP.RecordedSacct):
    """Each job and step ended `later_s` after what is recorded, of which Slurm counts nothing."""

    later_s = 0.0

    def rows(self, job_ids: Sequence[str], since_unix_s: float = 0.0) -> Iterator[AccountingRow]:
        for row in super().rows(job_ids, since_unix_s):
            end = None if row.end_unix_s is None else row.end_unix_s + self.later_s
            yield replace(row, end_unix_s=end)


@pytest.mark.parametrize(
    ("suspended_s", "reason"),
    [
        (0.0, None),
        (1.0, None),  # whole seconds
        (3600.0, "its job was suspended for 3600 s, which its times may include"),
    ],
)
def test_its_times_are_not_the_benchmarks(
    tmp_path: Any, suspended_s: float, reason: str | None
) -> None:
    study = HELP.Study(tmp_path)
    study.accounting = accounting = Suspending()
    accounting.later_s = suspended_s
    study.everything()
    study.now_unix_s += 7200
    study.collect()
    sql = "SELECT valid, invalid_reason FROM runs WHERE state = 'completed'"
    assert set(HELP.query(study, sql)) == {(reason is None, reason)}
