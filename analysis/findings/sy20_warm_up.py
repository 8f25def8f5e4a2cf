"""SY20: the first runs are unlike the rest (warm-up)."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import measured_rows, row_place
from steelyard.analysis.stats.changes import MIN_VALUES, WarmUp, warm_up
from steelyard.analysis.stats.readable import mean_words
from steelyard.analysis.stats.tests import LEVEL, holm
from steelyard.analysis.summary.design import job_means, sample_word
from steelyard.analysis.summary.summary import Row, Summary

KIND = Kind(
    code="SY20",
    severity=Severity.WARNING,
    title="the first runs are unlike the rest (warm-up)",
    why="Means with them are of two things: of starting, and of running.",
    advice=(
        "Both means are given: say which you use, and why. Warm up before the study (a run "
        "that is not counted, `cache`), or leave the first runs out on both sides."
    ),
    example=(
        "x · clients=1 · seconds: the first 6 of 12 runs: mean 11.2 ± 0.9 s with them, 9.98 ±"
        " 0.06 s without"
    ),
    source="Pettitt (1979), Applied Statistics 28(2); Hothorn & Zeileis (2008), Biometrics 64(4)",
)


def check(summary: Summary) -> Iterator[Finding]:
    rows = measured_rows(summary)
    series = [(row, values) for row in rows if len(values := job_means(row)) >= MIN_VALUES]
    looked = [(row, warm_up(values)) for row, values in series]
    # Of those without one the p is not known, but above the level: it raises no other.
    corrected = holm([w.p if w is not None else 1.0 for _, w in looked])
    found = [
        (row, w)
        for (row, w), p in zip(looked, corrected, strict=True)
        if w is not None and p <= LEVEL
    ]
    if found:
        yield Finding(
            KIND,
            f"In {len(found)} of {len(rows)} series of a main figure; the means told are with these "
            "runs.",
            tuple(f"{row_place(row)}: {warm_up_words(row, w)}" for row, w in found),
        )


def warm_up_words(row: Row, found: WarmUp) -> str:
    """`the first 11 of 35 runs: mean 12.1 ± 0.8 s with them, 10.0 ± 0.1 s without`."""
    unit = row.metric.unit
    return (
        f"the first {found.length} of {counted(found.with_it.n, sample_word(row))}: mean "
        f"{mean_words(found.with_it, unit)} with them, {mean_words(found.without, unit)} without"
    )
