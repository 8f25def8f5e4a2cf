"""SY01: runs failed or were cancelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import shares, total_runs
from steelyard.analysis.summary.summary import WAITING, Summary

KIND = Kind(
    code="SY01",
    severity=Severity.ERROR,
    title="runs failed or were cancelled",
    why=(
        "A mean is of the runs that survived; where one side fails more often, what is "
        "compared is no longer the same."
    ),
    advice=(
        "Read the reason in the table of runs and the run's err.* files. `steelyard submit "
        "--retry-failed` repeats them, those that were cancelled, too. If one condition fails more often, its means are of "
        "the runs that survived: compare with care."
    ),
    example="1 of 25 runs gave no result: 1 timeout.",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    failed = [run for run in summary.data.runs if run.state not in (*WAITING, "completed")]
    if failed:
        states = Counter(run.state for run in failed)
        words = ", ".join(f"{number} {state}" for state, number in states.most_common())
        yield Finding(
            KIND,
            f"{len(failed)} of {counted(total_runs(summary), 'run')} gave no result: {words}.",
            shares(summary, lambda group: group.counts.failed + group.counts.cancelled),
        )
