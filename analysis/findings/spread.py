"""Findings on the spread of values."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import (
    Finding,
    Kind,
    Rule,
    Severity,
    format_row_location,
    select_main_rows,
    select_measured_rows,
)
from steelyard.analysis.stats.bimodality import MIN_VALUES, find_two_humps
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import job_means, sample_word
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

SY05 = Kind(
    code="SY05",
    severity=Severity.NOTE,
    title="outliers (modified z-score above 3.5)",
    why="One run far from the others moves the mean and widens its interval.",
    advice=(
        "They are marked in the figures and stay in the means; the median does not move "
        "with them. `steelyard show JOB` prints what else the node did, from the job in "
        "the table of runs."
    ),
    example="x · clients=1 · seconds: x-51a7535d-013",
    source="Iglewicz & Hoaglin (1993), How to Detect and Handle Outliers",
)


def check_outliers(summary: Summary) -> Iterator[Finding]:
    hit = [row for row in select_main_rows(summary) if row.outliers.indices]
    if hit:
        total = sum(len(row.outliers.indices) for row in hit)
        yield Finding(
            SY05,
            f"{counted(total, 'value')} of {sum(row.n for row in select_main_rows(summary))} "
            f"of the main figures: far from the others of their condition.",
            tuple(
                f"{format_row_location(row)}: "
                + ", ".join(row.run_ids[index] for index in row.outliers.indices)
                for row in hit
            ),
        )


NOISY = 0.10  # sd / mean

SY06 = Kind(
    code="SY06",
    severity=Severity.WARNING,
    title=f"runs differ widely (standard deviation above {NOISY * 100:.0f} % of the mean)",
    why="Only large differences are detectable.",
    advice=(
        "Use whole nodes, a longer problem, a fixed CPU governor, or more runs. "
        "`steelyard check STUDY` prints how many runs a difference needs at this spread."
    ),
    example="x · clients=1 · seconds: 48 % of the mean",
    source="Student (1908), Biometrika 6(1)",
)


def check_noisy(summary: Summary) -> Iterator[Finding]:
    shares_of_mean = [(row, compute_variation(row)) for row in select_main_rows(summary)]
    noisy = [(row, share) for row, share in shares_of_mean if share is not None and share > NOISY]
    if noisy:
        yield Finding(
            SY06,
            f"In {len(noisy)} of {len(shares_of_mean)} means of a main figure.",
            tuple(
                f"{format_row_location(row)}: {share * 100:.0f} % of the mean"
                for row, share in noisy
            ),
        )


def compute_variation(row: Row) -> float | None:
    """Return the standard deviation as a share of the mean, or None."""
    if row.spread is None or row.spread.sd is None or row.interval is None or not row.interval.mean:
        return None
    return row.spread.sd / abs(row.interval.mean)


SY21 = Kind(
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


def check_two_humps(summary: Summary) -> Iterator[Finding]:
    series = [(row, job_means(row)) for row in select_measured_rows(summary)]
    among = sum(len(values) >= MIN_VALUES for _, values in series)
    found = [(row, h) for row, values in series if (h := find_two_humps(values, among)) is not None]
    if found:
        yield Finding(
            SY21,
            f"In {len(found)} of {len(select_measured_rows(summary))} series of a main figure.",
            tuple(
                f"{format_row_location(row)}: {counted(h.low_n, sample_word(row))} around {format_quantity(h.low_mean, row.metric.unit)}, "
                f"{h.high_n} around {format_quantity(h.high_mean, row.metric.unit)} (p = {h.p:.2g})"
                for row, h in found
            ),
        )


RULES = (Rule(SY05, check_outliers), Rule(SY06, check_noisy), Rule(SY21, check_two_humps))
