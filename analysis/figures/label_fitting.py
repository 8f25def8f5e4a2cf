"""Fits names into figures by cutting or wrapping, and places names next to points.

Tables and the figures' CSV have the names complete. Names next to points cover as few points and
other names as possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matplotlib.text import Text
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from steelyard.analysis.summary.rows import Group
    from steelyard.analysis.summary.summary import Summary


BETWEEN = " · "  # separates the levels of a condition
LABEL = 44  # letters that fill half of a figure's width
LEAST = 8  # letters that each level keeps
TITLE = 92  # letters of a title across the figure
HALF_LEGEND, WHOLE_LEGEND = 38, 84  # letters of an entry, two in a row or one
LEGEND_LINE_IN = 0.18
BREAKS = "=,;/:~- "  # a name may be broken after these
ITEM = re.compile(r",[^, ]+")  # of a level that is a list; the first item names the level


def shorten_name(name: str, most: int) -> str:
    """Return a name of at most `most` letters without its middle: `podman:doc…n:12-slim`."""
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def remove_common_parts(names: Sequence[str]) -> list[str]:
    """Return what differs between names such as `delay=2ms,to=10.0.0.8/29`: `delay=2ms,…`.

    Names that are no lists, such as headings, are ignored in the comparison.
    """
    parts = [found for name in names if (found := ITEM.findall(name))]
    common = set(parts[0]).intersection(*parts[1:]) if len(parts) > 1 else set()
    return [ITEM.sub(lambda item: ",…" if item[0] in common else item[0], name) for name in names]


def shorten_names(names: Sequence[str], most: int) -> dict[str, str]:
    """Return the short form of each name; equal short forms get a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    too_long = len(names) > 1 and max(map(len, names)) > most
    for name, core in zip(names, remove_common_parts(names) if too_long else names, strict=True):
        short, number = shorten_name(core, most), 2
        while short in taken:
            short = f"{shorten_name(core, most - len(str(number)) - 1)}#{number}"
            number += 1
        found[name] = short
        taken.add(short)
    return found


def format_short_labels(
    summary: Summary, groups: Sequence[Group], most: int = LABEL
) -> tuple[list[str], str]:
    """Return the levels of varied factors, at most `most` letters together, and the factors' names.

    Each level keeps LEAST letters, so that many factors may need more.
    """
    names = [name for name in summary.data.meta.factors if len(format_levels(groups, name)) > 1]
    if not names:
        return [shorten_name(group.label, most) or "all runs" for group in groups], ""
    labels: list[str] = []
    for each in range(most, LEAST - 1, -1):
        short_names = {name: shorten_names(format_levels(groups, name), each) for name in names}
        labels = [
            BETWEEN.join(short_names[n][format_level(group, n)] for n in names) for group in groups
        ]
        if max(map(len, labels)) <= most:
            break
    return labels, BETWEEN.join(names)


def format_level(group: Group, factor: str) -> str:
    return group.levels.get(factor, "–")


def format_levels(groups: Sequence[Group], factor: str) -> list[str]:
    return list(dict.fromkeys(format_level(group, factor) for group in groups))


def wrap_label(label: str, most: int) -> str:
    """Wrap a label to lines of at most `most` letters; each level starts a line."""
    lines = []
    for rest in label.split(BETWEEN):
        while len(rest) > most:
            at = max(rest.rfind(mark, 0, most) for mark in BREAKS) + 1
            at = at if 2 * at >= most else most
            lines.append(rest[:at].rstrip())
            rest = rest[at:]
        lines.append(rest)
    return "\n".join(lines)


def wrap_titles(titles: Sequence[str], most: int) -> list[str]:
    """Wrap `a=1, b=2` to lines of at most `most` letters; different levels stay different."""
    short_names = shorten_names(
        list(dict.fromkeys(phrase for t in titles for phrase in t.split(", "))), most - 1
    )
    found = []
    for title in titles:
        lines = [""]
        for phrase in title.split(", "):
            joined = f"{lines[-1]}, {short_names[phrase]}" if lines[-1] else short_names[phrase]
            fits = not lines[-1] or len(joined) < most
            lines[-1:] = [joined] if fits else [f"{lines[-1]},", short_names[phrase]]
        found.append("\n".join(lines))
    return found


def set_title(figure: Figure, text: str) -> None:
    """Set a title above all panels at the figure's left edge, where wide labels leave it room."""
    figure.suptitle(shorten_name(text, TITLE), x=0.01, ha="left", fontsize=9.5)


@dataclass(frozen=True, slots=True)
class Legend:
    """Entries below a figure, how many are in a row, and the height that all of them need."""

    labels: list[str]
    columns: int
    height_in: float


def make_legend(entries: Sequence[str]) -> Legend:
    columns = 2 if max(map(len, entries), default=0) <= HALF_LEGEND else 1
    short_names = shorten_names(list(dict.fromkeys(entries)), WHOLE_LEGEND)
    lines = -(-len(entries) // columns) if len(entries) > 1 else 0
    return Legend([short_names[entry] for entry in entries], columns, LEGEND_LINE_IN * lines)


FONT = 7.5
MARK = 4.0  # points (1/72 in) on each side of a point that its marker covers
NEAR, FAR = 6.0, 14.0  # from a point to its name; a name at a far place has a line to its point
MOST_LINES = 6  # lines of text above and below a point that are tried
OUTSIDE = 4.0  # cost of a pixel outside the axes, relative to a covered one
LINE = {"arrowstyle": "-", "linewidth": 0.5, "color": "0.5", "shrinkA": 0, "shrinkB": 3}

Spot = tuple[float, float]


def name_points(axes: Axes, spots: Sequence[Spot], names: Sequence[str]) -> None:
    """Write the names at `spots`, which are in the axes' units; the figure must have its layout."""
    figure: Any = axes.figure
    scale, renderer = figure.dpi / 72, figure.canvas.get_renderer()
    centres = axes.transData.transform(spots)
    taken = [Bbox.from_bounds(x, y, 0, 0).padded(MARK * scale) for x, y in centres]
    for spot, name in zip(spots, names, strict=True):
        annotation = axes.annotate(
            name, spot, (0, 0), textcoords="offset points", fontsize=FONT, arrowprops=LINE
        )
        annotation.set_in_layout(False)
        annotation.update_positions(renderer)
        at_point = Text.get_window_extent(annotation, renderer)  # without its line
        found = []
        for order, (off, position) in enumerate(list_places(at_point, scale)):
            box = at_point.translated(position[0] * scale, position[1] * scale)
            found.append((count_hidden_pixels(box, taken, axes.bbox), order, off, position, box))
        _, _, off, position, box = min(found, key=lambda one: one[:2])
        annotation.set_position(position)
        if annotation.arrow_patch is not None:
            annotation.arrow_patch.set_visible(off > NEAR)
        taken.append(box)


def list_places(at_point: Bbox, scale: float) -> Iterator[tuple[float, Spot]]:
    """Yield distances and starting positions of a name, in points of 1/72 in, the best first."""
    width, height = at_point.width / scale, at_point.height / scale
    for lines in range(MOST_LINES):
        off = NEAR if lines < 2 else FAR
        for y in (lines, -lines):
            for x in (off, -off - width):
                yield off, (x, y * height - height / 2)


def count_hidden_pixels(box: Bbox, taken: Sequence[Bbox], axes: Bbox) -> float:
    """Return the pixels of a name that cover others or are outside the axes, which cost more."""
    inside = compute_area(Bbox.intersection(box, axes))
    return OUTSIDE * (compute_area(box) - inside) + sum(
        compute_area(Bbox.intersection(box, other)) for other in taken
    )


def compute_area(box: Bbox | None) -> float:
    """Return square pixels; 0 for None, the intersection of disjoint boxes."""
    return 0.0 if box is None else box.width * box.height
