"""Chooses the figures of a report and draws them, sharing the work with a second process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.base.parallel_work import SharedWork
from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.figures.drawing import Drawing, inline_svg, save
from steelyard.analysis.stats.basics import is_rate
from steelyard.analysis.summary.node_comparisons import build_node_comparisons
from steelyard.analysis.summary.numeric_factors import build_factor_series, find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.tolerated_levels import find_axis_tolerances

T = TypeVar("T")

Draw = Callable[[], Drawing | None]  # returns None if this study has no such figure
# Places of figures that belong to no variant.
ANSWER = "the answer"
ENERGY = "energy against time"
ROUND_TRIPS = "round-trip times"
SCALING = "scaling"
SCALING_NARROW = "scaling on a narrow page"
MAX_THROUGHPUTS = 2  # secondary metrics, over network conditions


@dataclass(frozen=True)
class Job:
    """A figure that is drawn on demand."""

    anchor: str  # in the page: a variant, one of the constants above, or a section's anchor
    draw: Draw


@dataclass(frozen=True)
class RenderedFigure:
    """A figure as SVG for the page, and the files that it was written to."""

    name: str
    title: str
    caption: str
    svg: str
    paths: Sequence[Path] = ()


def figure_jobs(summary: Summary, variants: Sequence[str]) -> list[Job]:
    """Return the figures in the order of the report: by variant, then those of the whole study."""
    jobs = [Job(ANSWER, partial(draw_answer, summary)), Job(ENERGY, partial(draw_energy, summary))]
    jobs += scaling_jobs(summary)
    jobs += [Job(variant, draw) for variant in variants for draw in variant_draws(summary, variant)]
    if summary.data.network:
        jobs.append(Job(ROUND_TRIPS, partial(draw_rtt, summary)))
    return jobs


def scaling_jobs(summary: Summary, narrow: bool = False) -> list[Job]:
    """Return a figure for each scaled metric of a variant."""
    if summary.data.meta.scaling is None:
        return []
    from steelyard.analysis.figures.scaling import list_scaling_draws

    anchor = SCALING_NARROW if narrow else SCALING
    return [Job(anchor, draw) for draw in list_scaling_draws(summary, narrow)]


def draw_answer(summary: Summary, narrow: bool = False) -> Drawing | None:
    """Draw all overheads with their intervals."""
    from steelyard.analysis.figures.forest_plot import draw_forest

    return draw_forest(summary, narrow)


def draw_energy(summary: Summary) -> Drawing | None:
    """Draw the joules of runs over their seconds."""
    from steelyard.analysis.figures.energy_time import draw_energy_time

    return draw_energy_time(summary)


def variant_draws(summary: Summary, variant: str) -> Iterator[Draw]:
    # Imported here because a report without figures does not need them.
    from steelyard.analysis.figures.bar_chart import draw_bars
    from steelyard.analysis.figures.iterations import draw_iterations
    from steelyard.analysis.figures.node_plot import MAX_NAMES, draw_nodes
    from steelyard.analysis.figures.run_series import draw_series

    for rows in metric_rows(summary, variant, primary=True):
        # For more nodes, the figure of nodes shows them.
        if len(summary.data.meta.factors.get(NODE, ())) <= MAX_NAMES:
            yield partial(draw_bars, summary, rows)
        yield partial(draw_series, summary, rows)
        yield partial(draw_iterations, summary, rows)
    yield from list_factor_draws(summary, variant)
    yield from (
        partial(draw_nodes, one)
        for one in build_node_comparisons(summary)
        if one.variant == variant
    )
    yield partial(draw_time, summary, variant)


def list_factor_draws(summary: Summary, variant: str) -> Iterator[Draw]:
    """Yield the figures over factors, in the order of the report."""
    from steelyard.analysis.figures.box_plot import draw_boxes
    from steelyard.analysis.figures.heat_map import draw_heat
    from steelyard.analysis.figures.line_plot import draw_lines
    from steelyard.analysis.figures.mpi_time_shares import draw_stack

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
    for rows in metric_rows(summary, variant, primary=True):
        yield partial(draw_heat, summary, rows)
    yield partial(draw_stack, summary, variant)


def select_box_metrics(summary: Summary, variant: str) -> list[str]:
    """Return a benchmark's own time, or else the run's, and the energy."""
    own = [m.name for m in select_primary(summary, variant) if m.unit == "s"]
    return [*(own[:1] or ["elapsed_s"]), "energy_j"]


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


def draw_time(summary: Summary, variant: str) -> Drawing | None:
    """Draw the figure over time; None without samples."""
    from steelyard.analysis.figures.time_series import draw_times

    return dict(draw_times(summary, [variant])).get(variant)


def draw_rtt(summary: Summary) -> Drawing | None:
    """Draw the study's round-trip times."""
    from steelyard.analysis.figures import rtt as figures_rtt

    return figures_rtt.draw_rtt(summary)


def metric_rows(summary: Summary, variant: str, primary: bool | None = None) -> Iterator[list[Row]]:
    """Yield the rows of each metric of a variant, over the conditions."""
    by_metric: dict[str, list[Row]] = {}
    for row in summary.rows:
        if row.group.variant == variant and primary in (None, row.metric.is_primary):
            by_metric.setdefault(row.metric.name, []).append(row)
    yield from by_metric.values()


def draw_figures(draws: Iterable[Draw]) -> list[Drawing]:
    """Draw all figures in this process, since a matplotlib figure cannot be sent to another."""
    return [drawing for draw in draws if (drawing := draw()) is not None]


def start_drawing(jobs: Sequence[Job], finish: Callable[[Drawing], T]) -> SharedWork[T | None]:
    """Start to draw; `finish` converts each drawing to a result that can be pickled."""
    if jobs:
        load_matplotlib()
    return SharedWork([partial(draw_and_finish, job.draw, finish) for job in jobs])


def load_matplotlib() -> None:
    """Import matplotlib before the fork, once for both processes."""
    import matplotlib.backends.backend_agg
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401


def draw_and_finish(draw: Draw, finish: Callable[[Drawing], T]) -> T | None:
    drawing = draw()
    return None if drawing is None else finish(drawing)


def group_by_anchor(jobs: Sequence[Job], results: Sequence[T | None]) -> dict[str, list[T]]:
    """Group the results by anchor; an anchor without figures has an empty list."""
    found: dict[str, list[T]] = {job.anchor: [] for job in jobs}
    for job, result in zip(jobs, results, strict=True):
        if result is not None:
            found[job.anchor].append(result)
    return found


def render_figure(
    drawing: Drawing, folder: Path | None = None, formats: Sequence[str] = ()
) -> RenderedFigure:
    """Render a figure for the page, and save it as files if there is a folder."""
    svg = inline_svg(drawing)
    paths: list[Path] = []
    if folder is not None and not drawing.page_only:
        paths = save(drawing, folder, formats)
    return RenderedFigure(drawing.name, drawing.title, drawing.caption, svg, paths)
