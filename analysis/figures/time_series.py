"""Power, CPU and network over time, from samples: of a run, or of a host and a guest's job."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting, netem_trace
from steelyard.analysis.figures.drawing import COLOURS, DASHES, Drawing
from steelyard.analysis.job import time_series
from steelyard.analysis.job.hypervisor_record import Joined, Side, compute_counter_rates
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.study_run import Run
from steelyard.analysis.summary.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    Panel = Callable[[Axes, "list[Trace]", "Trace"], None]


MAX_NODES = 6  # lines in one panel
TITLE = 84  # letters of 8.5 points across the figure
MAX_POINTS = 600  # of a line; with more samples, neighbors are joined
MIN_SAMPLES = 5  # with fewer there is nothing to see
MIN_PERIODS = 3  # with a rate; with fewer a line is too short

COUNTERS = ("energy_j", "cpu_s", "rx_bytes", "tx_bytes")
COLUMNS = ("variant", "condition", "run_id", "node", "elapsed_s", "power_w", "cpus_busy")
NETWORK_COLUMNS = ("rx_bytes_per_s", "tx_bytes_per_s")

Counters = tuple[float | None, ...]  # elapsed_s and the COUNTERS
# Start and end of a period between two samples, and the rates of COUNTERS in it.
Rate = tuple[float, float, tuple[float | None, ...]]


@dataclass(frozen=True)
class Trace:
    """A run's rates by node."""

    group: Group
    run: Run
    nodes: dict[str, list[Rate]]
    steps: netem_trace.Steps = field(default_factory=dict)  # of a link that varied

    @property
    def end_s(self) -> float:
        return max((periods[-1][1] for periods in self.nodes.values() if periods), default=0.0)

    @property
    def has_cpu_line(self) -> bool:
        """Whether CPU time was read often enough for a line."""
        column = COUNTERS.index("cpu_s")
        known = [
            sum(rates[column] is not None for *_, rates in node) for node in self.nodes.values()
        ]
        return max(known, default=0) >= MIN_PERIODS

    @property
    def has_energy(self) -> bool:
        return any(rates[0] is not None for node in self.nodes.values() for *_, rates in node)


def draw_times(summary: Summary, variants: list[str]) -> list[tuple[str, Drawing]]:
    """Return (variant, figure) of each variant with samples.

    The figure shows the median run under the baseline and under the largest overhead.
    """
    chosen = {variant: choose_runs(summary, variant) for variant in variants}
    runs = [run for pairs in chosen.values() for _, run in pairs]
    samples, steps = read_rates(summary, runs), netem_trace.read_steps(summary, runs)
    drawings = []
    for variant, pairs in chosen.items():
        sampled = [
            Trace(g, run, samples[run.run_id], steps.get(run.run_id, {}))
            for g, run in pairs
            if run.run_id in samples
        ]
        traces = [trace for trace in sampled if trace.has_cpu_line]
        if traces:
            with drawing.use_style():
                found = plot_times(variant, summary, traces)
            for trace in sampled:
                if not trace.has_cpu_line:
                    found = replace(found, caption=f"{found.caption} {find_omission_reason(trace)}")
            drawings.append((variant, found))
    return drawings


def find_omission_reason(trace: Trace) -> str:
    """Return why a run is not drawn."""
    name = trace.group.label or "This variant"
    return f"{name} is left out: its run of {trace.end_s:.2g} s is too short for a line."


def choose_runs(summary: Summary, variant: str) -> list[tuple[Group, Run]]:
    """Return the runs to show: the median ones of the baseline and of the largest overhead."""
    rows = [r for r in summary.rows if r.group.variant == variant and r.metric.is_primary]
    rows = [row for row in rows if row.metric.name == rows[0].metric.name and row.values]
    if not rows:
        return []
    base = next((row for row in rows if row.group.label == row.group.baseline_label), rows[0])
    others = [row for row in rows if row.overhead is not None and row.overhead.value is not None]
    farthest = max(others, key=lambda row: row.overhead_size, default=None)
    sampled = {r.run_id for r in summary.data.records if (r.samples or 0) >= MIN_SAMPLES}
    pairs = [
        (row.group, find_middle_run(row, sampled)) for row in (base, farthest) if row is not None
    ]
    return [(group, run) for group, run in pairs if run is not None]


def find_middle_run(row: Row, sampled: set[str]) -> Run | None:
    """Return the run with samples whose value is nearest to the median."""
    ids = dict(zip(row.run_ids, row.values, strict=True))
    runs = [run for run in row.group.runs if run.run_id in ids and run.run_id in sampled]
    middle = row.median or 0.0
    return min(runs, key=lambda run: abs(ids[run.run_id] - middle), default=None)


def read_rates(summary: Summary, runs: list[Run]) -> dict[str, dict[str, list[Rate]]]:
    """Return the rates by run and node."""
    if not runs:
        return {}
    marks = ", ".join("(?, ?)" for _ in runs)
    keys = [key for run in runs for key in (run.run_id, run.attempt)]
    with open_database(summary.data.folder) as connection:
        rows = connection.execute(
            f"SELECT run_id, node, elapsed_s, {', '.join(COUNTERS)} FROM samples "
            f"WHERE (run_id, attempt) IN ({marks}) AND elapsed_s IS NOT NULL "
            "ORDER BY run_id, node, elapsed_s",
            keys,
        ).fetchall()
        timed = connection.execute(
            f"SELECT run_id, node FROM records WHERE (run_id, attempt) IN ({marks}) "
            f"AND (record->>'$.{time_series.TICKS}')::BIGINT > 0",
            keys,
        ).fetchall()
    by_timer = {*timed}
    counters: dict[str, dict[str, list[Counters]]] = {}
    for run_id, node, *numbers in rows:
        counters.setdefault(run_id, {}).setdefault(node, []).append(tuple(numbers))
    return {
        run_id: {
            node: compute_rates(lines, (run_id, node) in by_timer)
            for node, lines in nodes.items()
            if len(lines) >= MIN_SAMPLES
        }
        for run_id, nodes in counters.items()
    }


def compute_rates(lines: list[Counters], by_timer: bool) -> list[Rate]:
    """Return the growth of each counter per second in every period between samples.

    A rate is that between two new readings of the counter that enclose the period; it is None if
    the counter was not read.
    """
    spaced = drop_close_samples(lines)
    times = [(a, b) for (a, *_), (b, *_) in pairwise(spaced) if a is not None and b is not None]
    columns = [
        compute_rates_at(
            [(line[0], line[column]) for line in spaced],
            time_series.find_idle_s(counter, by_timer),
            times,
        )
        for counter, column in zip(COUNTERS, range(1, len(spaced[0])), strict=False)
    ]
    return [
        (begin, end, values)
        for (begin, end), values in zip(times, zip(*columns, strict=True), strict=True)
    ]


def compute_rates_at(
    samples: list[tuple[float | None, float | None]],
    idle_s: float,
    times: list[tuple[float, float]],
) -> list[float | None]:
    """Return the rate of one counter in each of the periods."""
    known = [(at_s, value) for at_s, value in samples if at_s is not None and value is not None]
    grown = time_series.compute_reading_rates(time_series.find_new_readings(known, idle_s))
    ends = [end for _, end, _ in grown]
    places = [bisect_left(ends, end) for _, end in times]
    return [
        grown[index][2] if index < len(grown) and grown[index][0] <= begin else None
        for index, (begin, _) in zip(places, times, strict=True)
    ]


def drop_close_samples(lines: list[Counters]) -> list[Counters]:
    """Return the samples without those that follow another too closely for a rate.

    The last sample is taken when the job ends, possibly 1 ms after the one before. Usage that is
    counted between them (the CPU time of a process that ended) would look like a hundred busy
    CPUs.
    """
    times = [time for time, *_ in lines if time is not None]
    periods = [after - before for before, after in pairwise(times)]
    least = max(statistics.median(periods) / 2, (times[-1] - times[0]) / MAX_POINTS)
    spaced = lines[:1]
    for line in lines[1:]:
        if (line[0] or 0.0) - (spaced[-1][0] or 0.0) >= least:
            spaced.append(line)
    if spaced[-1] is not lines[-1]:
        spaced[-1:] = [lines[-1]] if len(spaced) > 1 else [spaced[0], lines[-1]]
    return spaced


def plot_times(variant: str, summary: Summary, traces: list[Trace]) -> Drawing:
    """Draw panels below each other, with runs side by side."""
    energy = any(trace.has_energy for trace in traces)
    panels: list[Panel] = [draw_power] if energy else []
    panels.append(draw_cpu)
    if traffic := any(v for trace in traces for v in list_network_rates(trace)):
        panels.append(draw_network)
    varied = netem_trace.has_variation([trace.steps for trace in traces])
    panels += [partial(draw_link, quantity) for quantity in varied]
    figure = drawing.new_figure(0.8 + 1.2 * len(panels))
    grid = figure.subplots(len(panels), len(traces), squeeze=False, sharex="col", sharey="row")
    highest = [0.0] * len(panels)
    conditions = [trace.group.label for trace in traces]
    labels = label_fitting.wrap_titles(conditions, TITLE // len(traces))
    for column, trace in enumerate(traces):
        for row, panel in enumerate(panels):
            panel(grid[row, column], traces, trace)
            top = max((v for line in grid[row, column].lines for v in line.get_ydata()), default=0)
            highest[row] = max(highest[row], top)
            grid[row, column].set_ylim(0, 1.35 * highest[row] or 1)  # leaves room for the legend
        grid[-1, column].set_xlim(left=0)  # after all panels exist, which share the axis
        grid[-1, column].set_xlabel("time since the job's start (s)")
        grid[0, column].set_title(f"{labels[column]}\n{trace.run.run_id}".lstrip(), fontsize=8.5)
    label_fitting.set_title(figure, variant)
    for row in range(len(panels)):
        for column in range(1, len(traces)):
            grid[row, column].set_ylabel("")
    return Drawing(
        name=drawing.make_slug("time", variant),
        title=f"{variant}: one run over time",
        caption=format_caption(summary, traces, energy, traffic),
        figure=figure,
        columns=(*COLUMNS, *NETWORK_COLUMNS),
        rows=[cells for trace in traces for cells in data_rows(variant, trace)],
    )


def build_lines(trace: Trace, counter: str) -> list[tuple[str, list[float], list[float]]]:
    """Return (node, times, rates) of the nodes with the counter, without periods that lack it."""
    index = COUNTERS.index(counter)
    found = []
    for node, periods in list(trace.nodes.items())[:MAX_NODES]:
        known = [(a, b, v[index]) for a, b, v in periods if v[index] is not None]
        if known:  # a step also needs the start of the first period
            times = [known[0][0], *(end for _, end, _ in known)]
            values = [known[0][2], *(value for *_, value in known)]
            found.append((node, times, [value or 0.0 for value in values]))
    return found


def draw_lines(
    axes: Axes, trace: Trace, counter: str, factor: float, dashes: bool, label: str
) -> None:
    """Draw a line per node; colors and dashes distinguish nodes, or dashes the direction."""
    for index, (node, times, values) in enumerate(build_lines(trace, counter)):
        dash = DASHES[1] if dashes else DASHES[index % len(DASHES)] if not label else DASHES[0]
        name = f"{node} {label}".strip()
        scaled = [value / factor for value in values]
        axes.plot(
            times, scaled, drawstyle="steps-pre", linewidth=1.3, linestyle=dash,
            color=COLOURS[index % len(COLOURS)], label=name,
        )  # fmt: skip
    if axes.lines and not label:
        axes.legend(loc="upper right", ncols=3, fontsize=7.5, handlelength=2.6)


def draw_power(axes: Axes, traces: list[Trace], trace: Trace) -> None:
    axes.set_ylabel("power (W)")
    draw_lines(axes, trace, "energy_j", 1.0, dashes=False, label="")
    if not trace.has_energy:
        axes.text(0.5, 0.5, "no energy", transform=axes.transAxes, ha="center", style="italic")


def draw_cpu(axes: Axes, traces: list[Trace], trace: Trace) -> None:
    axes.set_ylabel("CPUs busy")
    draw_lines(axes, trace, "cpu_s", 1.0, dashes=False, label="")


def draw_network(axes: Axes, traces: list[Trace], trace: Trace) -> None:
    """Draw traffic in one unit for all runs, so that panels are comparable."""
    from matplotlib.lines import Line2D

    every = [value for one in traces for value in list_network_rates(one)]
    factor, unit = choose_prefix(max(every, default=None), "bytes_per_s")
    axes.set_ylabel(f"network ({unit})")
    draw_lines(axes, trace, "rx_bytes", factor, dashes=False, label="received")
    draw_lines(axes, trace, "tx_bytes", factor, dashes=True, label="sent")
    handles = [
        Line2D([], [], color="#333333", linestyle="-", label="received"),
        Line2D([], [], color="#333333", linestyle="--", label="sent"),
    ]
    axes.legend(handles=handles, loc="upper right", ncols=2, fontsize=7.5, handlelength=2.6)


def draw_link(
    quantity: netem_trace.Quantity, axes: Axes, traces: list[Trace], trace: Trace
) -> None:
    netem_trace.draw_steps(axes, quantity, trace.steps, trace.end_s)


def list_network_rates(trace: Trace) -> list[float]:
    """Return all rates in both directions."""
    counters = ("rx_bytes", "tx_bytes")
    return [
        value for name in counters for _, _, values in build_lines(trace, name) for value in values
    ]


def format_caption(summary: Summary, traces: list[Trace], energy: bool, traffic: bool) -> str:
    what = "Power of the node, CPUs" if energy else "CPUs"
    network = ", and network traffic of the node," if traffic else ""
    which = (
        "the baseline and the condition with the largest overhead"
        if len(traces) > 1
        else (traces[0].group.label or "this variant")
    )
    caption = (
        f"{what} used by the job{network} in the run nearest to the "
        f"median of {which} (n = 1 run each), from the differences between samples."
    )
    if any(trace.steps for trace in traces):
        caption += " Below: the link of a trace as the kernel was told, step by step."
    if not traffic:
        caption += " No network traffic was seen."
    if not energy:
        caption += f" No power: {find_no_energy_reason(summary, traces)}."
    most = max(len(trace.nodes) for trace in traces)
    if most > MAX_NODES:
        caption += f" The first {MAX_NODES} of {most} nodes; the CSV has all."
    return caption


def find_no_energy_reason(summary: Summary, traces: list[Trace]) -> str:
    """Return the reason from the records."""
    ids = {trace.run.run_id for trace in traces}
    reasons = (r.no_energy_reason for r in summary.data.records if r.run_id in ids)
    return next((reason.rstrip(".") for reason in reasons if reason), "the records have no energy")


def data_rows(variant: str, trace: Trace) -> list[tuple[object, ...]]:
    return [
        (variant, trace.group.label, trace.run.run_id, node, end, *values)
        for node, periods in trace.nodes.items()
        for _, end, values in periods
    ]


def draw_host_and_guest(joined: Joined, path: Path) -> None:
    """Draw two panels on one time axis, in the format of the path's suffix (svg, png, pdf)."""
    with drawing.use_style():
        figure = drawing.new_figure(4.0)
        power, traffic = figure.subplots(2, 1, sharex=True)
        power.set_ylabel("power (W)")
        draw_line(power, joined, joined.host, "energy_j", 1.0, 0, "host")
        if not power.lines:
            reason = joined.host.missing.get("energy_j", "no samples")
            power.text(0.5, 0.5, reason, transform=power.transAxes, ha="center", wrap=True)
        draw_traffic(traffic, joined)
        traffic.set_xlabel("time since the job's start (s)")
        traffic.set_xlim(0, joined.end_unix_s - joined.begin_unix_s)
        for axes in (power, traffic):
            top = max((value for line in axes.lines for value in line.get_ydata()), default=0)
            axes.set_ylim(0, 1.35 * top or 1)  # room for the legend
            if axes.lines:
                axes.legend(loc="upper right", ncols=4, fontsize=7.5)
        drawing.lay_out(figure)
        figure.savefig(path, metadata=drawing.make_metadata(path.suffix.removeprefix(".")))


def draw_traffic(axes: Axes, joined: Joined) -> None:
    """Draw received and sent bytes per second of guest and host."""
    sides = (("guest", joined.guest), ("host", joined.host))
    counters = (("rx_bytes", "received"), ("tx_bytes", "sent"))
    most = max(
        (
            value
            for _, side in sides
            for counter, _ in counters
            for value in compute_counter_rates(
                side, counter, joined.begin_unix_s, joined.end_unix_s
            )[1]
        ),
        default=0.0,
    )
    factor, unit = choose_prefix(most, "bytes_per_s")
    axes.set_ylabel(f"traffic ({unit})")
    for colour, (who, side) in enumerate(sides):
        for dash, (counter, what) in enumerate(counters):
            draw_line(axes, joined, side, counter, factor, colour, f"{who} {what}", dash)


def draw_line(
    axes: Axes, joined: Joined, side: Side, counter: str, factor: float, colour: int, label: str,
    dash: int = 0,
) -> None:  # fmt: skip
    """Draw the rates of a counter, if there are any."""
    times, values = compute_counter_rates(side, counter, joined.begin_unix_s, joined.end_unix_s)
    if times:
        axes.plot(
            times, [value / factor for value in values], drawstyle="steps-pre", linewidth=1.3,
            color=COLOURS[colour], linestyle=DASHES[dash], label=label,
        )  # fmt: skip
