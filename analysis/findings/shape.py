"""Findings about how the runs of a condition lie: warm-up, two humps, an interval too wide."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from steelyard.analysis.findings.finding import WIDE, Check, Code, Finding, counted, place
from steelyard.analysis.stats.basics import median
from steelyard.analysis.stats.changes import MIN_VALUES, WarmUp, warm_up
from steelyard.analysis.stats.planning import MIN_PILOT, repeats_assured
from steelyard.analysis.stats.readable import mean_words, quantity
from steelyard.analysis.stats.shape import MIN_VALUES as MIN_HUMPS
from steelyard.analysis.stats.shape import two_humps
from steelyard.analysis.stats.tests import LEVEL, holm, kruskal
from steelyard.analysis.summary.design import (
    job_means,
    jobs_of,
    sample_means,
    sample_word,
    samples_of,
)
from steelyard.analysis.summary.summary import Row, Summary

NODE_P = 0.01  # after Holm's correction for all series of the report
MIN_ON_NODE = 5
TARGET = 0.01  # of the mean: the half width that repeats are told for


def main_rows(summary: Summary) -> list[Row]:
    """The benchmarks' own figures."""
    return [row for row in summary.rows if row.metric.is_primary and row.values]


def where(row: Row) -> str:
    return f"{place(row.group)} · {row.metric.name}"


def find_warm_up(summary: Summary) -> Iterator[Finding]:
    """SY20."""
    rows = main_rows(summary)
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
            Code.WARM_UP,
            f"In {len(found)} of {len(rows)} series of a main figure; the means told are with these "
            "runs.",
            tuple(f"{where(row)}: {warm_up_words(row, w)}" for row, w in found),
        )


def warm_up_words(row: Row, found: WarmUp) -> str:
    """`the first 11 of 35 runs: mean 12.1 ± 0.8 s with them, 10.0 ± 0.1 s without`."""
    unit = row.metric.unit
    return (
        f"the first {found.length} of {counted(found.with_it.n, sample_word(row))}: mean "
        f"{mean_words(found.with_it, unit)} with them, {mean_words(found.without, unit)} without"
    )


def find_two_humps(summary: Summary) -> Iterator[Finding]:
    """SY21."""
    series = [(row, job_means(row)) for row in main_rows(summary)]
    among = sum(len(values) >= MIN_HUMPS for _, values in series)
    found = [(row, h) for row, values in series if (h := two_humps(values, among)) is not None]
    if found:
        yield Finding(
            Code.TWO_HUMPS,
            f"In {len(found)} of {len(main_rows(summary))} series of a main figure.",
            tuple(
                f"{where(row)}: {counted(h.low_n, sample_word(row))} around {quantity(h.low_mean, row.metric.unit)}, "
                f"{h.high_n} around {quantity(h.high_mean, row.metric.unit)} (p = {h.p:.2g})"
                for row, h in found
            ),
        )


def find_wide(summary: Summary) -> Iterator[Finding]:
    """SY22."""
    wide = [
        row
        for row in main_rows(summary)
        if len(samples_of(row)[1]) >= MIN_PILOT and half_share(row) > WIDE
    ]
    if wide:
        yield Finding(
            Code.WIDE_INTERVAL,
            f"{len(wide)} of {len(main_rows(summary))} means of a main figure.",
            tuple(f"{where(row)}: {repeats_words(row)}" for row in wide),
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


def find_node_effect(summary: Summary) -> Iterator[Finding]:
    """SY25."""
    tested = {
        row.group.variant + row.group.label + row.metric.name: row for row in main_rows(summary)
    }
    by_node = {key: values_by_node(row) for key, row in tested.items()}
    p_values = {
        key: p
        for key, nodes in by_node.items()
        if len(nodes) > 1 and (p := kruskal(list(nodes.values()))) is not None
    }
    hit = [
        (tested[key], by_node[key], p)
        for key, p in zip(p_values, holm(list(p_values.values())), strict=True)
        if p <= NODE_P
    ]
    if hit:
        yield Finding(
            Code.NODE_EFFECT,
            f"In {len(hit)} of {len(p_values)} series of a main figure with several nodes "
            "(Kruskal and Wallis' test, Holm).",
            tuple(f"{where(row)}: {node_words(row, nodes)} (p = {p:.2g})" for row, nodes, p in hit),
        )


def values_by_node(row: Row) -> dict[str, list[float]]:
    """The jobs' means of each node, or set of nodes, with at least MIN_ON_NODE jobs."""
    nodes = {
        row.group.jobs[run.run_id]: ", ".join(sorted(run.nodes))
        for run in row.group.runs
        if run.nodes
    }
    found: dict[str, list[float]] = {}
    for job, values in jobs_of(row).items():
        if job in nodes:
            found.setdefault(nodes[str(job)], []).append(statistics.fmean(values))
    return {node: values for node, values in found.items() if len(values) >= MIN_ON_NODE}


def node_words(row: Row, nodes: dict[str, list[float]]) -> str:
    """`median 9.98 s on n1, 12.1 s on n2`: the lowest and the highest."""
    medians = sorted((median(values), node) for node, values in nodes.items())
    ends = (medians[0], medians[-1])
    words = ", ".join(f"{quantity(value, row.metric.unit)} on {node}" for value, node in ends)
    return f"median {words}"


SHAPE_CHECKS: tuple[Check, ...] = (
    find_warm_up,
    find_two_humps,
    find_wide,
    find_node_effect,
)
