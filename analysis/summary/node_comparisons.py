"""Compares nodes with their median in a study with the factor `node` (stats.node_contrasts)."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.stats.basics import to_costs
from steelyard.analysis.stats.node_contrasts import Contrast, compute_contrasts
from steelyard.analysis.stats.overhead import MIN_RUNS
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import group_by_block, group_by_job, is_rate_row
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary, is_main

MOST_MISSING = 0.5  # largest share of nodes without a value in a block whose median is still used


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """One metric of one variant on all nodes, with all other factors at one level each."""

    variant: str
    metric: Metric
    others: str  # `cache=cold`; empty: no other factor
    middle: float  # the median of the nodes' means; of rates the harmonic means
    nodes: Mapping[str, Contrast]  # ascending by difference; empty if `reason` is set
    omitted: tuple[str, ...]  # nodes with fewer than 3 independent values
    blocks: int | None  # blocks whose medians were divided out
    reason: str | None = None


@functools.lru_cache(maxsize=1)  # cached: it is a simulation that a report needs five times
def build_node_comparisons(summary: Summary) -> list[NodeComparison]:
    """Return the comparison for every main figure; empty without the factor `node`."""
    if NODE not in summary.data.meta.factors:
        return []
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in summary.rows:
        if is_main(row) and NODE in row.group.condition:
            key = (row.group.variant, row.metric.name, list_other_levels(row))
            groups.setdefault(key, []).append(row)
    return [
        compare_nodes(rows, others)
        for (_, _, others), rows in groups.items()
        if any(row.values for row in rows)
    ]


def list_other_levels(row: Row) -> str:
    return ", ".join(f"{name}={level}" for name, level in row.group.levels.items() if name != NODE)


def compare_nodes(rows: Sequence[Row], others: str) -> NodeComparison:
    """Compare the nodes; rates are compared as costs, the time per unit of work, like overheads."""
    first, every = rows[0], [str(row.group.condition[NODE]) for row in rows]
    rows = [row for row in rows if row.values]
    is_rate = all(map(is_rate_row, rows))
    if is_rate:
        rows = [replace(row, values=to_costs(row.values)) for row in rows]
    by_block = has_common_blocks(rows)
    values = {
        str(row.group.condition[NODE]): dict(select_independent_values(row, by_block))
        for row in rows
    }
    known = {name: own for name, own in values.items() if len(own) >= MIN_RUNS}
    found = compute_contrasts(list(known.values()), by_block, first.confidence)
    middle = median(fmean(own.values()) for own in values.values())
    blocks = len({block for own in known.values() for block in own}) if by_block else None
    nodes = {} if isinstance(found, str) else dict(zip(known, found, strict=True))
    if is_rate:
        middle, nodes = 1 / middle, {name: convert_to_rate(one) for name, one in nodes.items()}
    return NodeComparison(
        first.group.variant, first.metric, others, middle,
        dict(sorted(nodes.items(), key=lambda item: item[1].value)),
        tuple(name for name in every if name not in known), blocks,
        found if isinstance(found, str) else None,
    )  # fmt: skip


def has_common_blocks(rows: Sequence[Row]) -> bool:
    """Return whether block effects can be removed: enough blocks, each with most nodes."""
    count: dict[object, int] = {}
    for row in rows:
        for block in group_by_block(row):
            count[block] = count.get(block, 0) + 1
    least = MOST_MISSING * len(rows)
    return None not in count and len(count) >= MIN_RUNS and min(count.values()) >= least


def select_independent_values(row: Row, by_block: bool) -> Iterator[tuple[Hashable, float]]:
    """Return pairs of (block or job, mean of its runs)."""
    for key, values in (group_by_block(row) if by_block else group_by_job(row)).items():
        assert isinstance(key, Hashable)
        yield key, fmean(values)


def convert_to_rate(cost: Contrast) -> Contrast:
    """Convert a difference of costs to one of rates; a cost near 0 has no upper limit there."""
    low = -1.0 if cost.high <= -1 else 1 / (1 + cost.high) - 1
    high = float("inf") if cost.low <= -1 else 1 / (1 + cost.low) - 1
    return Contrast(1 / (1 + cost.value) - 1, low, high, cost.n)
