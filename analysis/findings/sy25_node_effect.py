"""SY25: values depend on the node."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.findings.rows import measured_rows, row_place
from steelyard.analysis.stats.basics import median
from steelyard.analysis.stats.readable import quantity
from steelyard.analysis.stats.tests import holm, kruskal
from steelyard.analysis.summary.design import jobs_of
from steelyard.analysis.summary.summary import Row, Summary

NODE_P = 0.01  # after Holm's correction for all series of the report
MIN_ON_NODE = 5

KIND = Kind(
    code="SY25",
    severity=Severity.WARNING,
    title="values depend on the node",
    why="Which nodes a condition happened to get then decides its mean.",
    advice=(
        "Part of the spread is the nodes'. Look what tells the slow ones apart (clock, "
        "cooling, cables), let every condition run on all of them, or name the nodes in the "
        "study."
    ),
    example="x · clients=1 · seconds: median 10 s on n1, 10.22 s on n2 (p = 0.00073)",
    source="Kruskal & Wallis (1952), JASA 47(260); Holm (1979)",
)


def check(summary: Summary) -> Iterator[Finding]:
    tested = {
        row.group.variant + row.group.label + row.metric.name: row for row in measured_rows(summary)
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
            KIND,
            f"In {len(hit)} of {len(p_values)} series of a main figure with several nodes "
            "(Kruskal and Wallis' test, Holm).",
            tuple(
                f"{row_place(row)}: {node_words(row, nodes)} (p = {p:.2g})" for row, nodes, p in hit
            ),
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
