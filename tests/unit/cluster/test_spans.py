"""A cluster's accounting is queried a day at a time; jobs on a border are in two answers."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.analysis.cluster import collect
from steelyard.analysis.sources.cluster_sacct import ClusterSacct

from .sacct_lab import DAY_S, NOW, Lab, lab

__all__ = ["lab"]


def test_keys_are_kept_of_what_a_later_answer_may_have_alone(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that ended on the border of two spans is in both answers, and counts once."""
    for number, ago_s in enumerate((2.5 * DAY_S, 2 * DAY_S, 1.5 * DAY_S, 1000), 1):
        lab.job(str(number), ago_s)
    lab.job("9", 100, State="RUNNING", End="Unknown", Start=str(int(NOW - 3.2 * DAY_S)))
    kept: list[set[str]] = []
    take_in = collect.import_jobs

    def taken(work: Any, *given: Any, **named: Any) -> None:
        take_in(work, *given, **named)
        kept.append({key[1] for key in work.repeatable})

    monkeypatch.setattr(collect, "import_jobs", taken)
    since = NOW - 4 * DAY_S
    done = collect.collect(
        lab.dir, ClusterSacct(tries=1), [lab.records], since_unix_s=since, now=lambda: NOW
    )
    assert (done.new, done.changed, done.unchanged) == (5, 0, 0)
    assert kept == [{"9"}, {"9", "2"}, {"9", "2"}, {"9", "2"}]
