"""Findings on changes during a study or a run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from statistics import fmean

from steelyard.analysis.findings.finding import (
    Finding,
    Kind,
    Rule,
    Severity,
    format_location,
    format_row_location,
    select_measured_rows,
)
from steelyard.analysis.stats.drift_and_warm_up import (
    MIN_VALUES,
    InnerWarmUp,
    Timed,
    WarmUp,
    find_inner_warm_up,
    find_trend,
    find_wander,
    find_warm_up,
)
from steelyard.analysis.stats.grouped_runs import mean_by_group
from steelyard.analysis.stats.hypothesis_tests import LEVEL, holm
from steelyard.analysis.stats.number_format import format_mean
from steelyard.analysis.summary.interleaving import Interleaving, check_interleaving
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import has_no_negative_mean, job_means, sample_word
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

DRIFT_LEVEL = 0.01  # after Holm's correction for all series of the report and both tests
PARTS = 5  # of a study's time, reported for changes that come and go
THIRDS = 3

SY16 = Kind(
    code="SY16",
    severity=Severity.WARNING,
    title="values drift with time",
    why="Runs in a row resemble each other, and later runs differ only because they are later.",
    advice=(
        "Warm-up, filling disks, heat, or other load changed the machine during the "
        "study, so intervals are too narrow. Let conditions take turns: set `blocks = "
        "repeat`, so that overheads are paired by block and the drift cancels, and run "
        "`steelyard submit` again."
    ),
    example="x · clients=1 · seconds: rising (ρ = 1.00)",
    source=(
        "Spearman (1904); van Elteren (1960), Bulletin de l'ISI 37; Bartels (1982), JASA 77(377)"
    ),
)


@dataclass(frozen=True, slots=True)
class TestedSeries:
    """A tested series: its uncorrected p, and the description of its drift."""

    p: float
    description: str


def check_drift(summary: Summary) -> Iterator[Finding]:
    """Find drift of the main figures: in each condition, and in all conditions of a variant."""
    by_metric: dict[tuple[str, str], list[Row]] = {}
    for row in summary.rows:
        if row.metric.is_primary and row.values:
            by_metric.setdefault((row.group.variant, row.metric.name), []).append(row)
    looked = [
        one
        for rows in by_metric.values()
        for one in [*check_each_condition(rows), *check_all_conditions(rows)]
    ]
    corrected = holm([one.p for one in looked])
    hit = [one for one, p in zip(looked, corrected, strict=True) if p <= DRIFT_LEVEL]
    if hit:
        text = (
            f"In {len(hit)} of {len(looked)} looks at series of a main figure in the order of time "
            f"(ranks, Holm, p ≤ {DRIFT_LEVEL})."
        )
        yield Finding(SY16, text, tuple(one.description for one in hit))


def check_each_condition(rows: Sequence[Row]) -> Iterator[TestedSeries]:
    """Test each condition in the order of its jobs."""
    for row in rows:
        values = job_means(row)
        found = find_trend([Timed(range(len(values)), values)])
        if found is not None:
            trend = "rising" if found.rho > 0 else "falling"
            where = f"{format_location(row.group)} · {row.metric.name}"
            yield TestedSeries(found.p, f"{where}: {trend} (ρ = {found.rho:.2f})".replace("-", "−"))


def check_all_conditions(rows: Sequence[Row]) -> Iterator[TestedSeries]:
    """Test all conditions of a variant by the start times of their jobs, if these are known."""
    conditions = [time_jobs(row) for row in rows]
    known = [one for one in conditions if one is not None]
    if len(known) < len(rows):
        return
    where = f"{rows[0].group.variant} · {rows[0].metric.name}, all conditions together"
    series = compute_shares_over_time(known)
    found, wandering = find_trend(known), find_wander(known)
    if found is not None and len(rows) > 1:  # check_each_condition() has tested a single condition
        yield TestedSeries(
            found.p, f"{where}: {describe_trend(found.rho, series)}".replace("-", "−")
        )
    if wandering is not None:
        yield TestedSeries(wandering, f"{where}: {describe_wander(series)}")


def time_jobs(row: Row) -> Timed | None:
    """Return start and mean of each job; runs of one job are alike for other reasons than time."""
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


def compute_shares_over_time(conditions: Sequence[Timed]) -> list[tuple[float, float]]:
    """Return (start, value as a share of its condition's mean), in the order of time."""
    pairs = []
    for one in conditions:
        mean = statistics.fmean(one.values)
        pairs += [
            (t, v / mean if mean else 1.0) for t, v in zip(one.times, one.values, strict=True)
        ]
    return sorted(pairs, key=lambda pair: pair[0])  # those of one second in no order of values


def split_series(series: Sequence[tuple[float, float]], number: int) -> list[tuple[float, float]]:
    """Return (start of the first job, mean share) of `number` parts with equally many jobs."""
    ends = [round(i * len(series) / number) for i in range(number + 1)]
    parts = [series[a:b] for a, b in pairwise(ends)]
    return [(segment[0][0], statistics.fmean(share for _, share in segment)) for segment in parts]


def describe_trend(rho: float, series: Sequence[tuple[float, float]]) -> str:
    """Return `rising by 4.1 % of the mean from the first third of 60 jobs to the last (ρ =
    0.62)`.
    """
    thirds = split_series(series, THIRDS)
    change = 100 * (thirds[-1][1] - thirds[0][1])
    return (
        f"{'rising' if rho > 0 else 'falling'} by {abs(change):.2g} % of the mean from the first third "
        f"of {len(series)} jobs to the last (ρ = {rho:.2f}), {format_span(series)}"
    )


def describe_wander(series: Sequence[tuple[float, float]]) -> str:
    """Return `not the same at all times: 6 % of the mean between fifths of 60 jobs, highest …`."""
    parts = split_series(series, PARTS)
    low, high = (choose(parts, key=lambda segment: segment[1]) for choose in (min, max))
    return (
        f"not the same at all times: {100 * (high[1] - low[1]):.2g} % of the mean between fifths of "
        f"{len(series)} jobs, highest from {format_time(high[0])}, lowest from {format_time(low[0])} UTC on, "
        f"{format_span(series)}"
    )


def format_time(unix_s: float) -> str:
    """Format `2026-11-21 08:15`."""
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M}"


def format_span(series: Sequence[tuple[float, float]]) -> str:
    """Format `within 8.2 h`."""
    hours = (series[-1][0] - series[0][0]) / 3600
    return f"within {hours:.2g} h" if hours >= 1 else f"within {60 * hours:.2g} min"


SY36 = Kind(
    code="SY36",
    severity=Severity.WARNING,
    title="conditions did not take turns with their baseline",
    why="Changes of the machine in between are in the overhead, and not in its interval.",
    advice=(
        "A level that was added later, and runs that were submitted again, have blocks of their own. "
        "Raise `repeat` by 10 or more and submit: the new blocks hold every condition, and overheads "
        "are then paired in these alone. To repeat the whole study on another day, use sessions "
        "(`steelyard submit STUDY.toml --session`): their runs do not mix."
    ),
    example=(
        "x · clients=2: 2026-09-28 14:13 to 2026-09-28 14:17 UTC, the baseline 2026-09-21 14:13 to "
        "2026-09-21 14:17"
    ),
    source="Fisher (1935), The Design of Experiments, chapter 4",
)


def check_turn_order(summary: Summary) -> Iterator[Finding]:
    """Check the main figures; the finding has one place for each condition."""
    apart: dict[str, str] = {}
    judged = summary.compared_rows(primary=True)
    for row in judged:
        base = summary.row(row.group.variant, row.group.baseline_label or "", row.metric.name)
        if base is None or row.overhead is None or row.overhead.low is None:
            continue
        found = check_interleaving(row, base)
        if found.describe:
            apart.setdefault(format_location(row.group), describe_separation(found))
    if apart:
        conditions = len({format_location(row.group) for row in judged})
        yield Finding(
            SY36,
            f"{len(apart)} of {counted(conditions, 'condition')}.",
            tuple(f"{where}: {description}" for where, description in apart.items()),
        )


def describe_separation(found: Interleaving) -> str:
    """Return `2026-09-22 08:00 to … UTC, the baseline …`, or `2 of 20 runs are in blocks …`."""
    if found.spans is not None:
        (ours, base) = (
            f"{format_time(first)} to {format_time(last)}" for first, last in found.spans
        )
        return f"{ours} UTC, the baseline {base}"
    return f"{found.uninterleaved} of {found.runs} runs are in blocks without the other side"


SY20 = Kind(
    code="SY20",
    severity=Severity.WARNING,
    title="the first runs differ from the rest (warm-up)",
    why="Means with them mix start and steady state.",
    advice=(
        "Both means are given: state which one you use, and why. Set `warm_up = 1` in "
        "[job] and run `steelyard submit` again, or leave the first runs out on both "
        "sides."
    ),
    example=(
        "x · clients=1 · seconds: the first 6 of 12 runs: mean 11.2 ± 0.9 s with them, 9.98 ±"
        " 0.06 s without"
    ),
    source="Pettitt (1979), Applied Statistics 28(2); Hothorn & Zeileis (2008), Biometrics 64(4)",
)


def check_warm_up(summary: Summary) -> Iterator[Finding]:
    rows = select_measured_rows(summary)
    series = [(row, values) for row in rows if len(values := job_means(row)) >= MIN_VALUES]
    looked = [(row, find_warm_up(values, row.confidence)) for row, values in series]
    # Without a warm-up its p is not known, but it is above the level and raises no other.
    corrected = holm([w.p if w is not None else 1.0 for _, w in looked])
    found = [
        (row, w)
        for (row, w), p in zip(looked, corrected, strict=True)
        if w is not None and p <= LEVEL
    ]
    if found:
        yield Finding(
            SY20,
            f"In {len(found)} of {len(rows)} series of a main figure; the means told are with these "
            "runs.",
            tuple(f"{format_row_location(row)}: {describe_warm_up(row, w)}" for row, w in found),
        )


def describe_warm_up(row: Row, found: WarmUp) -> str:
    """Return `the first 11 of 35 runs: mean 12.1 ± 0.8 s with them, 10.0 ± 0.1 s without`."""
    unit = row.metric.unit
    return (
        f"the first {found.length} of {counted(found.with_it.n, sample_word(row))}: mean "
        f"{format_mean(found.with_it, unit)} with them, {format_mean(found.without, unit)} without"
    )


# After Holm's correction for all series: many studies have iterations, few a warm-up.
INNER_LEVEL = 0.001

SY28 = Kind(
    code="SY28",
    severity=Severity.WARNING,
    title="the first iterations inside the runs differ from the rest (warm-up)",
    why="Means with them mix start and steady state.",
    advice=(
        "A run's value is the mean of all its iterations, including these; both means are "
        "given. State which one you use, or set `warm_up = 1` in [job] and run `steelyard "
        "submit` again."
    ),
    example=(
        "x · clients=1 · seconds: the first 1 of 3 iterations is 11 % above the rest in 12 "
        "runs: mean 10.371 ± 0.046 s with it, 10.002 ± 0.044 s without"
    ),
    source="Student (1908), Biometrika 6(1); Holm (1979)",
)


def group_iterations_by_job(summary: Summary, row: Row) -> dict[object, list[list[float]]]:
    """Return the iterations of the row's runs by job; runs without iterations are left out."""
    job_of = {run.run_id: run.job_id or run.run_id for run in row.group.runs}
    jobs: dict[object, list[list[float]]] = {}
    for run_id in row.run_ids:
        found = summary.data.iterations.get((run_id, row.metric.name))
        if found is not None:
            jobs.setdefault(job_of[run_id], []).append(found)
    return jobs


def check_inner_warm_up(summary: Summary) -> Iterator[Finding]:
    rows = [row for row in summary.rows if row.metric.is_primary and row.values]
    series = [(row, group_iterations_by_job(summary, row)) for row in rows]
    judged = [(row, jobs, w) for row, jobs in series if (w := find_inner_warm_up(jobs)) is not None]
    corrected = holm([w.p for *_, w in judged])
    hit = [one for one, p in zip(judged, corrected, strict=True) if p <= INNER_LEVEL]
    if hit:
        yield Finding(
            SY28,
            f"In {len(hit)} of {len(judged)} series with iterations inside the runs; the means told are "
            "with them.",
            tuple(
                f"{format_location(row.group)} · {row.metric.name}: {describe_inner_warm_up(row, jobs, found)}"
                for row, jobs, found in hit
            ),
        )


def describe_inner_warm_up(
    row: Row, jobs: dict[object, list[list[float]]], found: InnerWarmUp
) -> str:
    """Return `the first 1 of 5 iterations is 21 % above the rest: mean 10.4 ± 0.1 s with it, …`."""
    full_length = [[run for run in job if len(run) == found.iterations] for job in jobs.values()]
    means = [
        mean_by_group(
            [[fmean(run[cut:]) for run in job] for job in full_length if job],
            row.confidence,
            never_negative=has_no_negative_mean(row),
        )
        for cut in (0, found.length)
    ]
    with_it, without = (format_mean(mean, row.metric.unit) for mean in means)
    side = "above" if found.excess > 0 else "below"
    verb, what = ("is", "it") if found.length == 1 else ("are", "them")
    return (
        f"the first {found.length} of {found.iterations} iterations {verb} "
        f"{100 * abs(found.excess):.2g} % {side} the rest in {counted(found.runs, 'run')}: mean "
        f"{with_it} with {what}, {without} without"
    )


RULES = (
    Rule(SY16, check_drift),
    Rule(SY20, check_warm_up),
    Rule(SY28, check_inner_warm_up),
    Rule(SY36, check_turn_order),
)
