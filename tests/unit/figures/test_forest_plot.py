"""The words beside the intervals of the forest plot: in the unit of its axis, percent."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis.figures import forest_plot


@pytest.mark.parametrize(
    ("overhead", "text"),
    [
        ((0.81, 0.79, 0.83), "+81.0 % (79.0 … 83.0)"),
        ((1.2, 1.15, 1.25), "+120 % (115 … 125)"),
        ((11.0, 9.0, 13.0), "+1100 % (900 … 1300)"),
        ((-0.25, -0.27, -0.23), "−25.0 % (−27.0 … −23.0)"),
    ],
)
def test_an_overhead_of_more_than_its_baseline_is_in_percent_too(
    overhead: tuple[float, float, float], text: str
) -> None:
    row: Any = SimpleNamespace(
        overhead=SimpleNamespace(**dict(zip(("value", "low", "high"), overhead, strict=True)))
    )
    assert forest_plot.format_overhead(row) == text
