"""Findings SP01 to SP05: what a reader must know before trusting the thesis' measurements.

As a program it writes their list into docs/findings.md (`make docs`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.findings.registry import PAGE, format_table
from steelyard.analysis.papers.jungels2012.conclusions import (
    HOLDS,
    NOT_SHOWN,
    Tested,
    lag_correlation,
)
from steelyard.analysis.papers.jungels2012.thesis_study import (
    FACTORS,
    Average,
    Measurements,
    Series,
)
from steelyard.analysis.stats.basics import mean_interval
from steelyard.jobscripts.docs import between, rewrite
from steelyard.jobscripts.plurals import counted

# Twice the standard error of a lag-1 correlation of n independent values, 1 / sqrt(n): Box &
# Jenkins (1970), "Time Series Analysis", part 2.1.6.
CORRELATED = 2.0

PER_PROCESS = "per_process"


AVERAGES = Kind(
    code="SP01",
    severity=Severity.WARNING,
    title="printed averages are not the means of the printed values",
    why="Conclusions from averages then rest on unpublished runs.",
    advice="They are of runs that are not printed, or misprints. Use the means of the values.",
    example=(
        "Of 16 printed averages of totals 10 agree and 6 do not; of those per process 5 do not."
    ),
    source="Jungels (2012), Virtualization in High-Performance Computing",
)
REPEATED = Kind(
    code="SP02",
    severity=Severity.WARNING,
    title="series are printed twice",
    why="A measurement that counts twice makes intervals too narrow.",
    advice="The second is not a measurement of its own: it is kept and counts in no mean.",
    example="B7 prints the values of B6, one for one",
    source="Jungels (2012), Virtualization in High-Performance Computing",
)
LENGTHS = Kind(
    code="SP03",
    severity=Severity.NOTE,
    title="series are shorter or longer than the others, or missing",
    why="The missing values may have differed from the rest.",
    advice="n stands beside every mean; what is missing is compared with nothing.",
    example="B71 (physical): 26 values",
    source="Jungels (2012), Virtualization in High-Performance Computing",
)
CONCLUSIONS = Kind(
    code="SP04",
    severity=Severity.WARNING,
    title="conclusions that the data do not show at 95 %",
    why="They may be chance, and must be shown again.",
    advice="The table of conclusions has each comparison. Quote them with their intervals.",
    example="7 of 19 conclusions hold in part, not at all, or are not shown.",
    source="Welch (1947), Biometrika 34",
)
ONE_JOB = Kind(
    code="SP05",
    severity=Severity.WARNING,
    title="iterations of one job count as runs",
    why="Iterations of one job share a day, a node and a start.",
    advice=(
        "They resemble their neighbours, so that intervals are too narrow, and nothing is said "
        "about other days or nodes. The table of conclusions tells what is left when that is "
        "allowed for. In a study of your own let each run be a job."
    ),
    example="B83 (physical): correlation with the next 0.85, mean 30.59 s",
    source="Box & Jenkins (1970), Time Series Analysis, part 2.1.6",
)
KINDS = (AVERAGES, REPEATED, LENGTHS, CONCLUSIONS, ONE_JOB)


@dataclass(frozen=True, slots=True)
class CheckedAverage:
    """A printed average compared with the mean of the printed values."""

    printed: Average
    series: Series
    mean: float
    next_value: float  # one more value that would make the mean the printed average

    @property
    def is_equal(self) -> bool:
        """Whether both are equal to the printed decimals."""
        text = Decimal(self.printed.text)
        return Decimal(self.mean).quantize(text) == text

    @property
    def omitted_value(self) -> int | None:
        """The index of the one value without which the mean is the printed average; else None."""
        values, text = self.series.values, Decimal(self.printed.text)
        total, n = math.fsum(values), len(values)
        found = [
            index
            for index, value in enumerate(values)
            if Decimal((total - value) / (n - 1)).quantize(text) == text
        ]
        return found[0] if len(found) == 1 else None

    @property
    def is_printed(self) -> bool:
        """Whether the additional value is in the range of the printed values."""
        return min(self.series.values) <= self.next_value <= max(self.series.values)


def find_series(measurements: Measurements, printed: Average) -> Series:
    """Return the series of a printed average."""
    among = measurements.per_process if printed.column == PER_PROCESS else measurements.series
    key = printed.figure, printed.node_type
    return next(s for s in among if (s.figure, s.node_type) == key)


def check_averages(measurements: Measurements) -> list[CheckedAverage]:
    """Check each printed average whose value is known."""
    checked = []
    for printed in measurements.averages:
        if not printed.text:
            continue
        series = find_series(measurements, printed)
        n, mean = len(series.values), statistics.fmean(series.values)
        more = (n + 1) * float(printed.text) - n * mean
        checked.append(CheckedAverage(printed, series, mean, more))
    return checked


def find_in_thesis(measurements: Measurements, tested: Sequence[Tested]) -> list[Finding]:
    """Return the findings SP01 to SP05."""
    return [
        *find_averages(measurements),
        *find_repeated(measurements),
        *find_lengths(measurements),
        *find_conclusions(tested),
        *find_one_job(measurements),
    ]


def find_averages(measurements: Measurements) -> Iterator[Finding]:
    """Find SP01."""
    wrong = [one for one in check_averages(measurements) if not one.is_equal]
    # For the others the printed value is not available, only whether it agrees.
    noted = [one for one in measurements.averages if not one.text]
    differing = [one for one in noted if not one.agrees]
    if wrong or differing:
        totals = [one for one in measurements.averages if one.column != PER_PROCESS]
        agree = sum(one.agrees for one in totals)
        each = sum(not one.agrees for one in measurements.averages if one.column == PER_PROCESS)
        yield Finding(
            AVERAGES,
            f"Of {len(totals)} printed averages of totals {agree} agree and {len(totals) - agree} do "
            f"not; of those per process {each} do not.",
            (
                *map(describe_average, wrong),
                *(describe_noted_average(measurements, one) for one in differing),
            ),
        )


def describe_noted_average(measurements: Measurements, one: Average) -> str:
    """Return `D3 EP virtual per process: printed otherwise (…), the mean of its 35 values is …`."""
    series = find_series(measurements, one)
    return (
        f"{one.figure} {series.variant.removeprefix('npb ')} {one.node_type} per process: printed "
        f"otherwise (the figure is not at hand), the mean of its {counted(len(series.values), 'value')} is "
        f"{statistics.fmean(series.values):.3f} {series.metric.unit}"
    )


def describe_average(one: CheckedAverage) -> str:
    """Return `D6 LU virtual: printed 873.986, the mean of its 35 values is 868.565; …`."""
    series, unit = one.series, one.series.metric.unit
    places = 1 - Decimal(one.printed.text).as_tuple().exponent  # type: ignore[operator]
    if (index := one.omitted_value) is not None:
        why = f"it is the mean without iteration {index + 1} ({series.values[index]:g})"
    else:
        why = describe_unexplained(one)
    return (
        f"{one.printed.figure} {series.variant.removeprefix('npb ')} {one.printed.node_type}: printed "
        f"{one.printed.text}, the mean of its {counted(len(series.values), 'value')} is {one.mean:.{places}f} "
        f"{unit}; {why}"
    )


def describe_unexplained(one: CheckedAverage) -> str:
    """Describe the value that one more run would need."""
    series, unit = one.series, one.series.metric.unit
    return (
        f"one run more of {one.next_value:.5g} {unit}, not printed, would explain it"
        if one.is_printed
        else f"one run more would have to be {one.next_value:.5g} {unit}, which none comes near "
        f"({min(series.values):g} … {max(series.values):g})"
    )


def find_repeated(measurements: Measurements) -> Iterator[Finding]:
    """Find SP02."""
    if measurements.repeated:
        count = len(measurements.repeated)
        what = "has the values of another" if count == 1 else "have the values of others"
        yield Finding(
            REPEATED,
            f"{count} of {len(measurements.series)} series {what}.",
            tuple(
                f"{later} prints the values of {earlier}, one for one"
                for later, earlier in measurements.repeated.items()
            ),
        )


def find_lengths(measurements: Measurements) -> Iterator[Finding]:
    """Find SP03."""
    usual = statistics.mode(len(series.values) for series in measurements.series)
    unusual = [series for series in measurements.series if len(series.values) != usual]
    short = sum(len(series.values) < usual for series in unusual)
    missing = list(missing_series(measurements.series))
    if unusual or missing:
        yield Finding(
            LENGTHS,
            f"Most series have {usual} values; {short} have fewer, {len(unusual) - short} more, and "
            f"{len(missing)} are missing.",
            (*missing, *(f"{series_name(s)}: {counted(len(s.values), 'value')}" for s in unusual)),
        )


def series_name(series: Series) -> str:
    """Format `B12 (physical)`."""
    return f"{series.figure} ({series.node_type})"


def missing_series(series: Sequence[Series]) -> Iterator[str]:
    """Yield combinations of test, file system, concurrent nodes and node type without a series."""
    files = [one for one in series if "filesystem" in one.condition]
    there = {(s.variant, *s.condition.values(), s.node_index) for s in files}
    variants = dict.fromkeys(one.variant for one in files)
    for variant, filesystem, at_once, node_type in product(variants, *FACTORS.values()):
        for index in range(1, at_once + 1):
            if (variant, filesystem, at_once, node_type, index) not in there:
                yield f"{variant} · {filesystem}, {at_once} at once, {node_type}: node {index}"


def find_conclusions(tested: Sequence[Tested]) -> Iterator[Finding]:
    """Find SP04."""
    bad = [one for one in tested if one.outcome != HOLDS]
    if bad:
        yield Finding(
            CONCLUSIONS,
            f"{len(bad)} of {counted(len(tested), 'conclusion')} hold in part, not at all, or are not "
            "shown.",
            tuple(
                f"{one.outcome}: {one.conclusion.sentence} ({format_counts(one)})" for one in bad
            ),
        )


def format_counts(one: Tested) -> str:
    """Return `21 of 39 comparisons show it, 12 the opposite, 6 neither`."""
    total = len(one.comparisons)
    if one.outcome == NOT_SHOWN:
        return f"none of {counted(total, 'comparison')} shows it or the opposite"
    if one.agree == total:
        return "its comparison shows it" if total == 1 else f"all {total} comparisons show it"
    rest = total - one.agree - one.oppose
    return f"{one.agree} of {total} comparisons show it, {one.oppose} the opposite, {rest} neither"


def find_one_job(measurements: Measurements) -> Iterator[Finding]:
    """Find SP05."""
    hit = [
        (series, r)
        for series in measurements.series
        if (r := lag_correlation(series.values)) > CORRELATED / len(series.values) ** 0.5
    ]
    yield Finding(
        ONE_JOB,
        f"Each condition was measured in one go. In {len(hit)} of {len(measurements.series)} series "
        "an iteration resembles the one before more than chance explains.",
        tuple(
            f"{series_name(series)}: correlation with the next {r:.2f}, mean "
            f"{mean_interval(series.values).mean:.4g} {series.metric.unit}"
            for series, r in sorted(hit, key=lambda pair: -pair[1])
        ),
    )


BEGIN = "<!-- from analysis/papers/jungels2012/measurement_findings.py: make docs -->"
END = "<!-- end of what is from analysis/papers/jungels2012/measurement_findings.py -->"


def update_page(page: str) -> str:
    """Return docs/findings.md with the current list."""
    return between(page, BEGIN, END, format_table(KINDS))


if __name__ == "__main__":
    rewrite(Path(PAGE), update_page)
