"""SY16: values that drift with time, in one condition or in all of a variant together."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.stats.drift import Timed, trend, wander
from steelyard.analysis.stats.tests import holm
from steelyard.analysis.summary.design import job_means
from steelyard.analysis.summary.summary import Row, Summary

LEVEL = 0.01  # after Holm's correction for all series of the report and both tests
PARTS = 5  # of a study's time, told of when something comes and goes
THIRDS = 3

KIND = Kind(
    code="SY16",
    severity=Severity.WARNING,
    title="values drift with time",
    why="Runs in a row then resemble each other, and what ran later differs for that alone.",
    advice=(
        "Warm-up, filling disks, heat, or the load of the hour: runs are then not "
        "independent, and intervals too narrow. Look at the series. Let conditions take turns"
        " (`blocks = repeat` in the study: overheads are then paired by block and the drift "
        "drops out), spread the study over the hours that it speaks for, leave the first runs"
        " to a warm-up study."
    ),
    example="x · clients=1 · seconds: rising (ρ = 1.00)",
    source=(
        "Spearman (1904); van Elteren (1960), Bulletin de l'ISI 37; Bartels (1982), JASA 77(377)"
    ),
)


@dataclass(frozen=True, slots=True)
class Looked:
    """One series that was looked at: its uncorrected p, and the words where it drifts."""

    p: float
    words: str


def check(summary: Summary) -> Iterator[Finding]:
    """Of the main figures, each condition by itself, and all of a variant by their start."""
    by_metric: dict[tuple[str, str], list[Row]] = {}
    for row in summary.rows:
        if row.metric.is_primary and row.values:
            by_metric.setdefault((row.group.variant, row.metric.name), []).append(row)
    looked = [one for rows in by_metric.values() for one in [*look_each(rows), *look_all(rows)]]
    corrected = holm([one.p for one in looked])
    hit = [one for one, p in zip(looked, corrected, strict=True) if p <= LEVEL]
    if hit:
        text = (
            f"In {len(hit)} of {len(looked)} looks at series of a main figure in the order of time "
            f"(ranks, Holm, p ≤ {LEVEL}).{apart_words(summary)}"
        )
        yield Finding(KIND, text, tuple(one.words for one in hit))


def look_each(rows: Sequence[Row]) -> Iterator[Looked]:
    """Each condition in the order of its jobs."""
    for row in rows:
        values = job_means(row)
        found = trend([Timed(range(len(values)), values)])
        if found is not None:
            way = "rising" if found.rho > 0 else "falling"
            where = f"{place(row.group)} · {row.metric.name}"
            yield Looked(found.p, f"{where}: {way} (ρ = {found.rho:.2f})".replace("-", "−"))


def look_all(rows: Sequence[Row]) -> Iterator[Looked]:
    """All conditions of a variant by the time at which their jobs started, where that is known."""
    conditions = [timed(row) for row in rows]
    known = [one for one in conditions if one is not None]
    if len(known) < len(rows):
        return
    where = f"{rows[0].group.variant} · {rows[0].metric.name}, all conditions together"
    series = shares_over_time(known)
    found, wandering = trend(known), wander(known)
    if found is not None and len(rows) > 1:  # of one condition look_each has told it
        yield Looked(found.p, f"{where}: {trend_words(found.rho, series)}".replace("-", "−"))
    if wandering is not None:
        yield Looked(wandering, f"{where}: {wander_words(series)}")


def timed(row: Row) -> Timed | None:
    """Start and mean of each job: runs of one job are alike for other reasons than the hour."""
    runs = {run.run_id: run for run in row.group.runs}
    starts: dict[str, list[float]] = {}
    values: dict[str, list[float]] = {}
    for run_id, value in zip(row.run_ids, row.values, strict=True):
        run = runs[run_id]
        if run.start_unix_s is None:
            return None
        job = run.job_id or run_id
        starts.setdefault(job, []).append(run.start_unix_s)
        values.setdefault(job, []).append(value)
    return Timed(
        [min(each) for each in starts.values()], [statistics.fmean(v) for v in values.values()]
    )


def shares_over_time(conditions: Sequence[Timed]) -> list[tuple[float, float]]:
    """(start, value as a share of its condition's mean), in the order of time."""
    pairs = []
    for one in conditions:
        mean = statistics.fmean(one.values)
        pairs += [
            (t, v / mean if mean else 1.0) for t, v in zip(one.times, one.values, strict=True)
        ]
    return sorted(pairs)


def parts_of(series: Sequence[tuple[float, float]], number: int) -> list[tuple[float, float]]:
    """(start of the first job, mean share) of so many parts with as many jobs each."""
    ends = [round(i * len(series) / number) for i in range(number + 1)]
    parts = [series[a:b] for a, b in pairwise(ends)]
    return [(part[0][0], statistics.fmean(share for _, share in part)) for part in parts]


def trend_words(rho: float, series: Sequence[tuple[float, float]]) -> str:
    """`rising by 4.1 % of the mean from the first third of 60 jobs to the last (ρ = 0.62), …`."""
    thirds = parts_of(series, THIRDS)
    change = 100 * (thirds[-1][1] - thirds[0][1])
    return (
        f"{'rising' if rho > 0 else 'falling'} by {abs(change):.2g} % of the mean from the first third "
        f"of {len(series)} jobs to the last (ρ = {rho:.2f}), {span_words(series)}"
    )


def wander_words(series: Sequence[tuple[float, float]]) -> str:
    """`coming and going by 6 % of the mean, highest from 12:10 UTC on, …`."""
    parts = parts_of(series, PARTS)
    low, high = (choose(parts, key=lambda part: part[1]) for choose in (min, max))
    return (
        f"not the same at all times: {100 * (high[1] - low[1]):.2g} % of the mean between fifths of "
        f"{len(series)} jobs, highest from {moment(high[0])}, lowest from {moment(low[0])} UTC on, "
        f"{span_words(series)}"
    )


def moment(unix_s: float) -> str:
    """`2026-11-21 08:15`."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M}"


def span_words(series: Sequence[tuple[float, float]]) -> str:
    """`within 8.2 h`."""
    hours = (series[-1][0] - series[0][0]) / 3600
    return f"within {hours:.2g} h" if hours >= 1 else f"within {60 * hours:.2g} min"


def apart_words(summary: Summary) -> str:
    """How many conditions ran wholly before or after their baseline: they differ by the drift, too."""
    spans = {
        (group.variant, group.label): (min(starts), max(starts))
        for group in summary.groups
        if (starts := [r.start_unix_s for r in group.runs if r.start_unix_s is not None])
    }
    apart = 0
    for group in summary.groups:
        mine = spans.get((group.variant, group.label))
        base = spans.get((group.variant, group.baseline_label or ""))
        if mine and base and (mine[1] < base[0] or base[1] < mine[0]):
            apart += 1
    if not apart:
        return ""
    return f" {counted(apart, 'condition')} did not run in turns with the baseline: drift is in the overhead."
