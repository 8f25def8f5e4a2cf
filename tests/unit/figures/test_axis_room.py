"""No marker is cut off by the top of its axis, however little the values differ."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from steelyard.analysis.figures.drawing import DPI, start_axis_at

MARKER_POINTS = 4.5


@pytest.mark.parametrize("values", [[900.0, 900.001], [900.0, 900.0], [1.0, 900.0], [0.0, 0.0]])
@pytest.mark.parametrize("bottom", [0.0, -50.0])
def test_the_highest_marker_fits(values: list[float], bottom: float) -> None:
    figure = Figure(figsize=(2.2, 2.3), dpi=DPI)
    axes = figure.add_subplot()
    axes.plot(range(len(values)), values, marker="o", markersize=MARKER_POINTS)
    start_axis_at(axes, bottom)
    low, high = axes.get_ylim()
    assert low == bottom
    room_points = (high - max(values)) / (high - low) * axes.bbox.height * 72 / DPI
    assert room_points > MARKER_POINTS / 2
