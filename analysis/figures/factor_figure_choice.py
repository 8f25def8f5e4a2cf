"""Chooses a variant's figures over factors: box plots, line plots, heat maps, stacked bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.figures.box_plot import draw_boxes
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.figures.heat_map import draw_heat
from steelyard.analysis.figures.line_plot import draw_lines
from steelyard.analysis.figures.mpi_time_shares import draw_stack
from steelyard.analysis.stats.basics import is_rate
from steelyard.analysis.summary.numeric_factors import build_factor_series, find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.tolerated_levels import find_axis_tolerances

TIME, ENERGY = "elapsed_s", "energy_j"
MAX_THROUGHPUTS = 2  # secondary metrics, over network conditions


def list_factor_draws(summary: Summary, variant: str) -> Iterator[Callable[[], Drawing | None]]:
    """Yield functions that draw a figure, or return None, in the order of the report."""
    for axis in find_axes(summary.data.meta.factors):
        panels = list(
            build_factor_series(summary, variant, axis, select_box_metrics(summary, variant))
        )
        if panels:
            yield partial(draw_boxes, panels)
        for found in build_factor_series(
            summary, variant, axis, select_line_metrics(summary, variant, axis.factor)
        ):
            own = [row for row in summary.rows if row.group.variant == variant]
            yield partial(draw_lines, found, find_axis_tolerances(summary, axis, own))
    for rows in select_primary_rows(summary, variant).values():
        yield partial(draw_heat, summary, rows)
    yield partial(draw_stack, summary, variant)


def select_box_metrics(summary: Summary, variant: str) -> list[str]:
    """Return a benchmark's own time, or else the run's, and the energy."""
    own = [m.name for m in select_primary(summary, variant) if m.unit == "s"]
    return [*(own[:1] or [TIME]), ENERGY]


def select_line_metrics(summary: Summary, variant: str, factor: str) -> list[str]:
    """Return the main figures; over network conditions throughput, too."""
    names = [metric.name for metric in select_primary(summary, variant)]
    if factor == FACTOR:
        others = [
            m.name for m in summary.data.metrics.get(variant, []) if is_rate(m.unit, m.better)
        ]
        names += [name for name in others if name not in names][:MAX_THROUGHPUTS]
    return names


def select_primary(summary: Summary, variant: str) -> list[Metric]:
    return [metric for metric in summary.data.metrics.get(variant, []) if metric.is_primary]


def select_primary_rows(summary: Summary, variant: str) -> dict[str, list[Row]]:
    """Return the rows of each main figure."""
    found: dict[str, list[Row]] = {}
    for row in summary.rows:
        if row.group.variant == variant and row.metric.is_primary:
            found.setdefault(row.metric.name, []).append(row)
    return found
