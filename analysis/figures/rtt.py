"""Round-trip times that the kernel measured on the job's own sockets, by condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, Drawing
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.database_connection import open_database

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from steelyard.analysis.summary.summary import Summary

COLUMNS = ("condition", "source", "n", "p5_s", "p25_s", "median_s", "p75_s", "p95_s")
SAMPLES, JOBS, PROBE = "samples", "jobs", "probe"
WIDE = 30  # the longest line's end divided by the least median, above which the axis is logarithmic

# A row of COLUMNS; the database computes the quantiles because there may be many samples.
Box = tuple[str, str, int, float, float, float, float, float]


def draw_rtt(summary: Summary) -> Drawing | None:
    """Draw the round-trip times of a study; None if none were measured."""
    boxes = read_boxes(summary)
    if not boxes:
        return None
    with drawing.use_style():
        return plot_rtt(summary, boxes)


def read_boxes(summary: Summary) -> list[Box]:
    """Return the quantiles of samples, of the jobs' medians, and of the probes during the jobs."""
    counted = [run.run_id for run in summary.data.runs if run.counts]
    quantiles = "quantile_cont(v, [0.05, 0.25, 0.5, 0.75, 0.95])"
    with open_database(summary.data.folder) as connection:
        rows = connection.execute(
            f"""
            WITH used AS (
                SELECT run_id, attempt, condition_label AS label FROM runs
                WHERE run_id IN (SELECT unnest(?))),
            readings AS (
                SELECT label, '{SAMPLES}' AS source, rtt_s AS v
                FROM samples JOIN used USING (run_id, attempt) WHERE rtt_s IS NOT NULL
                UNION ALL
                SELECT label, '{JOBS}', rtt_median_s
                FROM records JOIN used USING (run_id, attempt) WHERE rtt_median_s IS NOT NULL
                UNION ALL
                SELECT label, '{PROBE}', unnest([rtt_during_start_s, rtt_during_end_s])
                FROM network JOIN used USING (run_id, attempt))
            SELECT label, source, count(*), {quantiles} FROM readings
            WHERE isfinite(v) GROUP BY label, source
            """,
            [counted],
        ).fetchall()
    found = {(label, source): (label, source, n, *five) for label, source, n, five in rows}
    order = [(label, source) for label in summary.labels for source in (SAMPLES, JOBS, PROBE)]
    return [found[key] for key in order if key in found]


def plot_rtt(summary: Summary, boxes: list[Box]) -> Drawing:
    labels = [label for label in summary.labels if any(box[0] == label for box in boxes)]
    factor, unit = choose_prefix(max(box[5] for box in boxes), "s")
    figure = drawing.new_figure(1.1 + 0.5 * len(labels))
    axes = figure.add_subplot()
    for number, source in enumerate((SAMPLES, JOBS, PROBE)):
        draw_source(axes, [box for box in boxes if box[1] == source], labels, number, factor)
    by_label = {group.label: group for group in summary.groups}
    names, what = label_fitting.format_short_labels(summary, [by_label[label] for label in labels])
    axes.set_yticks(range(len(labels)), names)
    axes.set_ylabel(what)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    if has_wide_range(boxes):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")  # the default formatter would need math text
    else:
        axes.set_xlim(left=0)
    axes.set_xlabel(f"round-trip time ({unit})")
    label_fitting.set_title(figure, "Round-trip times")
    figure.legend(loc="outside lower center", ncols=3)
    return Drawing(
        name="round-trip-times",
        title="Round-trip times by condition",
        caption=format_caption(boxes),
        figure=figure,
        columns=COLUMNS,
        rows=[tuple(box) for box in boxes],
    )


def has_wide_range(boxes: list[Box]) -> bool:
    """Return whether some medians would be indistinguishable from 0 on a linear axis."""
    least = min((box[5] for box in boxes if box[5] > 0), default=1.0)
    return max(box[7] for box in boxes) > WIDE * least


NAMES = {
    SAMPLES: "means of the job's sockets at a reading",
    JOBS: "medians of jobs on a node",
    PROBE: "probe to the peer",
}


def draw_source(
    axes: Axes, boxes: list[Box], labels: list[str], number: int, factor: float
) -> None:
    """Draw a line from the 5th to the 95th percentile, a bar over the middle half, the median."""
    colour, mark = COLOURS[number], "osD"[number]
    spots = [labels.index(box[0]) + 0.24 * (number - 1) for box in boxes]
    if not boxes:
        return
    low, left, middle, right, high = (
        [float(box[3 + i]) / factor for box in boxes] for i in range(5)
    )
    axes.hlines(spots, low, high, color=colour, linewidth=1.0)
    axes.hlines(spots, left, right, color=colour, linewidth=5.0, alpha=0.45)
    axes.plot(
        middle, spots, linestyle="", marker=mark, markersize=4.5, color=colour,
        markeredgecolor="#222222", markeredgewidth=0.6, label=NAMES[boxes[0][1]],
    )  # fmt: skip


def format_caption(boxes: list[Box]) -> str:
    counts = {
        source: sum(box[2] for box in boxes if box[1] == source)
        for source in dict.fromkeys(box[1] for box in boxes)
    }
    counts_text = ", ".join(f"{NAMES[source]}: n = {number}" for source, number in counts.items())
    return (
        "Round-trip times of each condition: mark at the median, bar over the middle half, line "
        f"from the 5th to the 95th percentile. {counts_text}."
    )
