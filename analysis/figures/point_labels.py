"""Places names next to points so that they cover as few points and other names as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.text import Text
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
