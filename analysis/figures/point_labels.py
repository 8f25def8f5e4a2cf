"""Names beside points: each where it hides neither another name nor a point, as far as that can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.text import Text
from matplotlib.transforms import Bbox

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 7.5
MARK = 4.0  # points (1/72 in) to each side of a point that are its marker's
NEAR, FAR = 6.0, 14.0  # from a point to its name; to a far one a line leads
MOST_LINES = 6  # of names above and below a point
OUTSIDE = 4.0  # so much worse than to hide something
LINE = {"arrowstyle": "-", "linewidth": 0.5, "color": "0.5", "shrinkA": 0, "shrinkB": 3}

Spot = tuple[float, float]


def name_points(axes: Axes, spots: Sequence[Spot], names: Sequence[str]) -> None:
    """`spots` in the axes' units. The figure must have its layout by now."""
    figure: Any = axes.figure
    scale, renderer = figure.dpi / 72, figure.canvas.get_renderer()
    centres = axes.transData.transform(spots)
    taken = [Bbox.from_bounds(x, y, 0, 0).padded(MARK * scale) for x, y in centres]
    for spot, name in zip(spots, names, strict=True):
        words = axes.annotate(
            name, spot, (0, 0), textcoords="offset points", fontsize=FONT, arrowprops=LINE
        )
        words.set_in_layout(False)
        words.update_positions(renderer)
        at_point = Text.get_window_extent(words, renderer)  # without its line
        found = []
        for order, (off, place) in enumerate(list_places(at_point, scale)):
            box = at_point.translated(place[0] * scale, place[1] * scale)
            found.append((count_hidden_pixels(box, taken, axes.bbox), order, off, place, box))
        _, _, off, place, box = min(found, key=lambda one: one[:2])
        words.set_position(place)
        if words.arrow_patch is not None:
            words.arrow_patch.set_visible(off > NEAR)
        taken.append(box)


def list_places(at_point: Bbox, scale: float) -> Iterator[tuple[float, Spot]]:
    """How far off, and where from the point a name may begin, in points of 1/72 in; the best first."""
    width, height = at_point.width / scale, at_point.height / scale
    for lines in range(MOST_LINES):
        off = NEAR if lines < 2 else FAR
        for y in (lines, -lines):
            for x in (off, -off - width):
                yield off, (x, y * height - height / 2)


def count_hidden_pixels(box: Bbox, taken: Sequence[Bbox], axes: Bbox) -> float:
    """Pixels of a name that lie on others or outside."""
    inside = compute_area(Bbox.intersection(box, axes))
    return OUTSIDE * (compute_area(box) - inside) + sum(
        compute_area(Bbox.intersection(box, other)) for other in taken
    )


def compute_area(box: Bbox | None) -> float:
    """In square pixels; None: two that do not meet."""
    return 0.0 if box is None else box.width * box.height
