"""SY21: runs gather around two values."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import measured_rows, row_place
from steelyard.analysis.stats.readable import quantity
from steelyard.analysis.stats.shape import MIN_VALUES, two_humps
from steelyard.analysis.summary.design import job_means, sample_word
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY21",
    severity=Severity.WARNING,
    title="runs gather around two values",
    why="A mean and its interval describe one hump.",
    advice=(
        "A mean between two humps describes no run. Look what divides them: nodes, sockets, "
        "time of day, a turbo clock. It may have to be a factor."
    ),
    example="x · clients=1 · seconds: 12 runs around 10.000 s, 12 around 12 s (p = 0.002)",
    source="Silverman (1981), JRSS B 43(1)",
)


def check(summary: Summary) -> Iterator[Finding]:
    series = [(row, job_means(row)) for row in measured_rows(summary)]
    among = sum(len(values) >= MIN_VALUES for _, values in series)
    found = [(row, h) for row, values in series if (h := two_humps(values, among)) is not None]
    if found:
        yield Finding(
            KIND,
            f"In {len(found)} of {len(measured_rows(summary))} series of a main figure.",
            tuple(
                f"{row_place(row)}: {counted(h.low_n, sample_word(row))} around {quantity(h.low_mean, row.metric.unit)}, "
                f"{h.high_n} around {quantity(h.high_mean, row.metric.unit)} (p = {h.p:.2g})"
                for row, h in found
            ),
        )
