"""SY22: intervals wider than ± 5 % of the mean."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.findings.rows import measured_rows, row_place
from steelyard.analysis.stats.planning import MIN_PILOT, repeats_assured
from steelyard.analysis.summary.design import sample_means, samples_of
from steelyard.analysis.summary.summary import Row, Summary

WIDE = 0.05  # half of the 95 % interval / mean
TARGET = 0.01  # of the mean: the half width that repeats are told for

KIND = Kind(
    code="SY22",
    severity=Severity.NOTE,
    title=f"intervals wider than ± {WIDE * 100:.0f} % of the mean",
    why=("What is smaller than the interval stays unseen: “not shown to differ” says little here."),
    advice=(
        "Smaller differences cannot be seen here. The repeats that ± 1 % takes are told for each."
    ),
    example=(
        "x · clients=1 · seconds: ± 31 % of the mean with n = 13; 16906 runs give ± 1 % in 9 "
        "of 10 studies"
    ),
    source="Kupper & Hafner (1989), The American Statistician 43(2)",
)


def check(summary: Summary) -> Iterator[Finding]:
    wide = [
        row
        for row in measured_rows(summary)
        if len(samples_of(row)[1]) >= MIN_PILOT and half_share(row) > WIDE
    ]
    if wide:
        yield Finding(
            KIND,
            f"{len(wide)} of {len(measured_rows(summary))} means of a main figure.",
            tuple(f"{row_place(row)}: {repeats_words(row)}" for row in wide),
        )


def half_share(row: Row) -> float:
    """Half of the interval as a share of the mean; 0 where there is none."""
    interval = row.interval
    if interval is None or interval.half_width is None or interval.mean == 0:
        return 0.0
    return interval.half_width / abs(interval.mean)


def repeats_words(row: Row) -> str:
    """`± 6.2 % of the mean; 240 runs give ± 1 %`."""
    assert row.interval is not None  # half_share has looked
    told = f"± {100 * half_share(row):.2g} % of the mean with n = {row.n}"
    what = samples_of(row)[0]
    try:
        number = repeats_assured(sample_means(row), TARGET * abs(row.interval.mean))
    except ValueError:
        return f"{told}; no number of {what}s one would make gives ± {100 * TARGET:g} %"
    return f"{told}; {number} {what}s give ± {100 * TARGET:g} % in 9 of 10 studies"
