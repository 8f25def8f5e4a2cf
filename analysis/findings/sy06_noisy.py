"""SY06: runs differ widely (standard deviation above 10 % of the mean)."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.findings.rows import main_rows, row_place
from steelyard.analysis.summary.summary import Row, Summary

NOISY = 0.10  # sd / mean

KIND = Kind(
    code="SY06",
    severity=Severity.WARNING,
    title=f"runs differ widely (standard deviation above {NOISY * 100:.0f} % of the mean)",
    why="Intervals are so wide that only large differences can be seen.",
    advice="Use whole nodes, a longer problem, a fixed CPU governor, or more runs.",
    example="x · clients=1 · seconds: 48 % of the mean",
    source="Student (1908), Biometrika 6(1)",
)


def check(summary: Summary) -> Iterator[Finding]:
    shares_of_mean = [(row, variation(row)) for row in main_rows(summary)]
    noisy = [(row, share) for row, share in shares_of_mean if share is not None and share > NOISY]
    if noisy:
        yield Finding(
            KIND,
            f"In {len(noisy)} of {len(shares_of_mean)} means of a main figure.",
            tuple(f"{row_place(row)}: {share * 100:.0f} % of the mean" for row, share in noisy),
        )


def variation(row: Row) -> float | None:
    """Standard deviation as a share of the mean."""
    if row.spread is None or row.spread.sd is None or row.interval is None or not row.interval.mean:
        return None
    return row.spread.sd / abs(row.interval.mean)
