"""Iterations inside the runs: a line per node, and one through the average of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.figures import COLOURS, DASHES, MARKERS
from steelyard.analysis.stats import Interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK_EVERY = 6  # iterations between the marks that tell nodes apart
GAP = 0.12  # of the axes' height between the numbers of two averages
MAX_NODES = len(MARKERS)  # lines of one colour that can be told apart


@dataclass(frozen=True)
class Level:
    """What is drawn in one colour: nodes under one condition, and their average."""

    name: str
    place: int  # of its colour and dashes
    average: Interval | None  # None: no values
    lines: Sequence[tuple[int, Sequence[float]]]  # (number of the node from 0, its iterations)

    @property
    def look(self) -> dict[str, Any]:
        return {"color": COLOURS[self.place], "linestyle": DASHES[self.place % len(DASHES)]}


def draw_panel(axes: Axes, levels: Sequence[Level], without: str) -> None:
    """A line per node and one through each average; `without`: words where there is none."""
    longest = 0
    for level in levels:
        for node, values in level.lines:
            longest = max(longest, len(values))
            axes.plot(
                range(1, len(values) + 1), values, **level.look, linewidth=0.9,
                marker=MARKERS[node], markersize=3.5, markeredgecolor="#333333",
                markeredgewidth=0.3, markevery=marked(node, len(values)),
            )  # fmt: skip
        if level.average is not None:
            dashes = level.look["linestyle"]
            axes.axhline(level.average.mean, color="black", linestyle=dashes, linewidth=0.9)
    if not longest:
        axes.text(0.5, 0.5, without, transform=axes.transAxes, ha="center", style="italic")
    axes.set_xlim(0, 1.22 * (longest or 35))  # room for the numbers


def marked(node: int, length: int) -> tuple[int, int]:
    """(first, step) of a node's marks; of few iterations each has one."""
    return (node + 1, MARK_EVERY) if length > 2 * MARK_EVERY else (0, 1)


def label_averages(axes: Axes, levels: Sequence[Level]) -> None:
    """The averages as numbers at the right; when the axes' limits are set."""
    means = [level.average.mean for level in levels if level.average is not None]
    low, high = axes.get_ylim()
    for mean, place in zip(means, apart(means, GAP * (high - low)), strict=True):
        axes.annotate(
            f"{mean:.4g}", (1.0, place), xycoords=("axes fraction", "data"),
            xytext=(-2, 0), textcoords="offset points", ha="right", va="center", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "#999999", "pad": 1.2, "linewidth": 0.5},
        )  # fmt: skip


def apart(means: Sequence[float], gap: float) -> list[float]:
    """Where labels of means stand so that they do not hide each other: as near as `gap` allows.

    Neighbours that are too near form a block around their common middle (Barlow et al. (1972),
    "Statistical Inference under Order Restrictions", pool adjacent violators).
    """
    order = sorted(range(len(means)), key=lambda i: means[i])
    blocks: list[list[float]] = []  # of means less the room that the labels below take
    for rank, i in enumerate(order):
        blocks.append([means[i] - rank * gap])
        while len(blocks) > 1 and average(blocks[-2]) > average(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    fitted = [average(block) for block in blocks for _ in block]
    places = {i: fitted[rank] + rank * gap for rank, i in enumerate(order)}
    return [places[i] for i in range(len(means))]


def average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def legend(levels: Sequence[Level], nodes: Sequence[str]) -> Iterator[Any]:
    """Levels by colour and dashes, nodes by marks."""
    from matplotlib.lines import Line2D

    for level in levels:
        yield Line2D([], [], **level.look, label=level.name)
    for number, name in enumerate(nodes):
        yield Line2D([], [], color="#333333", linestyle="", marker=MARKERS[number], label=name)
