"""Heat map: the overhead over the levels of two factors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.stats.overhead_verdict import SHOWN
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "metric", "others", "row_factor", "row_level", "column_factor", "column_level",
    "unit", "overhead", "low", "high", "n", "n_baseline", "verdict",
)  # fmt: skip
MAX_PANELS = 4
MAX_LEVELS = 12  # of a factor; more do not fit with their numbers
# The color map is light in the middle and dark at both ends, in blue and orange. Sign and number
# are in each cell, for gray print.
ACROSS = (55, 24)  # letters that fit below the cells of one panel, or of each of two
ROW_NAME = (24, 12)  # letters of a row's name in these cases
PANEL_TITLE = (label_fitting.TITLE, 34)  # letters of a line above a panel
NAME_LINES = 3  # of a column's name at most
COLOUR_MAP = "PuOr_r"

Grid = dict[tuple[str, str], Row]


def choose_factors(summary: Summary, rows: list[Row]) -> tuple[str, str] | None:
    """Return (rows, columns): the two factors with most levels among the overheads, or None."""
    compared = [row for row in rows if read_value(row) is not None]
    levels = {
        factor: len({row.group.levels.get(factor) for row in compared})
        for factor in summary.data.meta.factors
    }
    wide = sorted((f for f in levels if 1 < levels[f] <= MAX_LEVELS), key=lambda f: levels[f])
    return (wide[-2], wide[-1]) if len(wide) >= 2 else None


def draw_heat(summary: Summary, rows: list[Row]) -> Drawing | None:
    """Draw one variant and metric; None without two factors."""
    factors = choose_factors(summary, rows)
    if factors is None:
        return None
    with drawing.use_style():
        return plot_heat(summary, rows, factors)


def plot_heat(summary: Summary, rows: list[Row], factors: tuple[str, str]) -> Drawing:
    first = rows[0]
    panels = [(o, grid) for o, grid in group_panels(rows, factors).items() if has_overhead(grid)]
    levels = [list_levels(summary, rows, factor) for factor in factors]
    chosen = panels[:MAX_PANELS]
    columns = count_panels_beside(len(chosen), levels)
    shelves = math.ceil(len(chosen) / columns)
    names = format_tick_names(levels, columns)
    lines = max(name.count("\n") for name in names[1])
    figure = drawing.new_figure(0.9 + shelves * (0.7 + 0.14 * lines + 0.36 * len(levels[0])))
    grid = figure.subplots(shelves, columns, squeeze=False)
    values = (read_value(row) for _, cells in chosen for row in cells.values())
    limit = max((abs(value) for value in values if value), default=0.0)
    image: Any = None
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    titles = label_fitting.wrap_titles([o for o, _ in chosen], PANEL_TITLE[columns - 1])
    for axes, title, (_, cells) in zip(grid.flat, titles, chosen, strict=False):
        image = draw_panel(axes, cells, levels, names, limit, ACROSS[columns - 1])
        axes.set_xlabel(factors[1])
        axes.set_title(title, fontsize=8.5)
    for line in grid:
        line[0].set_ylabel(factors[0])
    figure.colorbar(image, ax=list(grid.flat), label="overhead (%)", shrink=0.9)
    label_fitting.set_title(figure, f"{first.group.variant}: {first.metric.name}")
    return Drawing(
        name=drawing.make_slug("heat", first.group.variant, first.metric.name),
        title=f"{first.group.variant}: overhead of {first.metric.name} over {' and '.join(factors)}",
        caption=format_caption(rows, factors, len(panels)),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for others, grid in panels for cells in data_rows(others, grid, factors)],
    )


def count_panels_beside(panels: int, levels: list[list[str]]) -> int:
    """Return 2 if the names of the columns fit in half of the figure, else 1."""
    letters = len(levels[1]) * (1 + max(map(len, levels[1])))
    return 2 if panels > 1 and letters <= ACROSS[1] else 1


def format_tick_names(levels: list[list[str]], columns: int) -> list[list[str]]:
    """Return the names next to the rows and, wrapped, below the columns."""
    beside = label_fitting.shorten_names(levels[0], ROW_NAME[columns - 1])
    each = ACROSS[columns - 1] // len(levels[1]) - 1
    below = label_fitting.shorten_names(levels[1], NAME_LINES * each)
    return [
        [beside[level] for level in levels[0]],
        [label_fitting.wrap_label(below[level], each) for level in levels[1]],
    ]


def has_overhead(grid: Grid) -> bool:
    return any(read_value(row) is not None for row in grid.values())


def group_panels(rows: list[Row], factors: tuple[str, str]) -> dict[str, Grid]:
    """Return the rows by the levels of all other factors."""
    panels: dict[str, Grid] = {}
    for row in rows:
        condition = row.group.levels
        others = ", ".join(f"{k}={v}" for k, v in condition.items() if k not in factors)
        key = (str(condition.get(factors[0])), str(condition.get(factors[1])))
        panels.setdefault(others, {})[key] = row
    return panels


def list_levels(summary: Summary, rows: list[Row], factor: str) -> list[str]:
    """Return the levels that occur, in the order of the study."""
    there = {str(row.group.levels.get(factor)) for row in rows}
    meta = summary.data.meta
    texts = (meta.level_text(factor, level) for level in meta.factors[factor])
    return [text for text in texts if text in there]


def read_value(row: Row) -> float | None:
    """Return the overhead in percent."""
    if row.overhead is None or row.overhead.value is None:
        return None
    return 100 * row.overhead.value


# Almost black and white, because a page replaces these by its own ink and paper (drawing.PAGE).
DARK, LIGHT = "#000001", "#fffffe"


def choose_text_colour(behind: Sequence[float]) -> str:
    """Return black or white, whichever has more contrast to the (red, green, blue, …) behind it.

    Relative luminance and the border at which both have the same contrast: WCAG 2.1.
    """
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in behind[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return DARK if (luminance + 0.05) ** 2 >= 0.05 * 1.05 else LIGHT


def draw_panel(
    axes: Axes,
    cells: Grid,
    levels: list[list[str]],
    names: list[list[str]],
    limit: float,
    across: int,
) -> Any:
    """Draw the colors with a number in each cell; see format_cell(). `across`: letters that fit."""
    import numpy as np

    numbers = [
        [read_value(cells[r, c]) if (r, c) in cells else None for c in levels[1]] for r in levels[0]
    ]
    shades = [[math.nan if v is None else v for v in line] for line in numbers]
    size = 8 if len(levels[1]) <= MAX_LEVELS // 2 else 6.5
    fits = len("baseline") < across // len(levels[1])
    image = axes.imshow(shades, cmap=COLOUR_MAP, vmin=-limit, vmax=limit, aspect="auto")
    for y, row_level in enumerate(levels[0]):
        for x, column_level in enumerate(levels[1]):
            row = cells.get((row_level, column_level))
            value = numbers[y][x]
            colour = (
                DARK if value is None else choose_text_colour(image.to_rgba(np.array([value]))[0])
            )
            text = format_cell(row, "baseline" if fits else "base")
            axes.text(x, y, text, ha="center", va="center", fontsize=size, color=colour)
    axes.set_xticks(range(len(levels[1])), names[1], fontsize=8)
    axes.set_yticks(range(len(levels[0])), names[0], fontsize=8)
    axes.grid(visible=False)
    return image


def format_cell(row: Row | None, baseline: str) -> str:
    """Format `+37`, `(−2)` if not shown to differ, a word for the baseline, `–` without value."""
    if row is None:
        return "–"
    value = read_value(row)
    if value is None:
        return baseline if row.group.label == row.group.baseline_label else "–"
    text = f"{value:+.{0 if abs(value) >= 10 else 1}f}".replace("-", "−")
    differs = row.verdict is not None and row.verdict.direction in SHOWN
    return text if differs else f"({text})"


def format_caption(rows: list[Row], factors: tuple[str, str], panels: int) -> str:
    n = counted_range((row.n for row in rows if row.n), "run")
    more = ""
    if panels > MAX_PANELS:
        more = f" Shown are {MAX_PANELS} of {panels} levels of the other factors; the CSV has all."
    return (
        f"Overhead of the mean {rows[0].metric.name} against the baseline in percent, over "
        f"{factors[0]} and {factors[1]}; in brackets where a difference is not shown (95 %, Holm); "
        f"n = {n} a cell.{more}"
    )


def data_rows(others: str, grid: Grid, factors: tuple[str, str]) -> Iterator[tuple[object, ...]]:
    for (row_level, column_level), row in grid.items():
        found = row.overhead
        yield (
            row.group.variant, row.metric.name, others, factors[0], row_level, factors[1],
            column_level, "1", found and found.value, found and found.low, found and found.high, row.n,
            found and found.n_baseline, row.verdict and row.verdict.text,
        )  # fmt: skip
