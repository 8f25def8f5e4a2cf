"""SY28: the first iterations inside the runs."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.stats.groups import mean_by_group
from steelyard.analysis.stats.iterations import InnerWarmUp, inner_warm_up
from steelyard.analysis.stats.readable import mean_words
from steelyard.analysis.stats.tests import holm
from steelyard.analysis.summary.design import no_negative
from steelyard.analysis.summary.summary import Row, Summary

LEVEL = 0.001  # after Holm's correction for all series: many studies have iterations, few a warm-up

KIND = Kind(
    code="SY28",
    severity=Severity.WARNING,
    title="the first iterations inside the runs are unlike the rest (warm-up)",
    why="Means with them are of two things: of starting, and of running.",
    advice=(
        "A run's value is the mean of all its iterations, these too; both means are given. "
        "Say which you use, leave them out on both sides alike, or let `warm_up = 1` in [job]"
        " run once unmeasured."
    ),
    example=(
        "x · clients=1 · seconds: the first 1 of 3 iterations is 11 % above the rest in 12 "
        "runs: mean 10.371 ± 0.046 s with it, 10.002 ± 0.044 s without"
    ),
    source="Student (1908), Biometrika 6(1); Holm (1979)",
)


def iterations_by_job(summary: Summary, row: Row) -> dict[object, list[list[float]]]:
    """The row's runs that have any, by job."""
    job_of = {run.run_id: run.job_id or run.run_id for run in row.group.runs}
    jobs: dict[object, list[list[float]]] = {}
    for run_id in row.run_ids:
        found = summary.data.iterations.get((run_id, row.metric.name))
        if found is not None:
            jobs.setdefault(job_of[run_id], []).append(found)
    return jobs


def check(summary: Summary) -> Iterator[Finding]:
    rows = [row for row in summary.rows if row.metric.is_primary and row.values]
    series = [(row, iterations_by_job(summary, row)) for row in rows]
    judged = [(row, jobs, w) for row, jobs in series if (w := inner_warm_up(jobs)) is not None]
    corrected = holm([w.p for *_, w in judged])
    hit = [one for one, p in zip(judged, corrected, strict=True) if p <= LEVEL]
    if hit:
        yield Finding(
            KIND,
            f"In {len(hit)} of {len(judged)} series with iterations inside the runs; the means told are "
            "with them.",
            tuple(
                f"{place(row.group)} · {row.metric.name}: {words(row, jobs, found)}"
                for row, jobs, found in hit
            ),
        )


def words(row: Row, jobs: dict[object, list[list[float]]], found: InnerWarmUp) -> str:
    """`the first 1 of 5 iterations is 21 % above the rest: mean 10.4 ± 0.1 s with it, …`."""
    kept = [[run for run in job if len(run) == found.iterations] for job in jobs.values()]
    means = [
        mean_by_group(
            [[fmean(run[cut:]) for run in job] for job in kept if job],
            never_negative=no_negative(row),
        )
        for cut in (0, found.length)
    ]
    with_it, without = (mean_words(mean, row.metric.unit) for mean in means)
    way = "above" if found.excess > 0 else "below"
    verb, what = ("is", "it") if found.length == 1 else ("are", "them")
    return (
        f"the first {found.length} of {found.iterations} iterations {verb} "
        f"{100 * abs(found.excess):.2g} % {way} the rest in {counted(found.runs, 'run')}: mean "
        f"{with_it} with {what}, {without} without"
    )
