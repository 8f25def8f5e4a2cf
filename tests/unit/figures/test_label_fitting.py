"""Names beside points hide neither one another nor a point; no marker is cut off by its axis."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from steelyard.analysis.figures import energy_time
from steelyard.analysis.figures.drawing import DPI, Drawing, start_axis_at
from steelyard.analysis.summary.summary import summarize

FACTORS = {"delay_ms": [0, 20], "container": ["none", "podman"], "node_type": ["physical", "vm"]}
VARIANTS = ("npb kernel=cg class=B", "npb kernel=mg class=B")


@pytest.fixture
def crowded(synthetic: ModuleType, tmp_path: Path) -> Drawing:
    """Eight conditions of two variants, most of which cost nearly the same."""
    baseline = {name: levels[0] for name, levels in FACTORS.items()}
    maker = synthetic.StudyMaker("crowded", FACTORS, baseline)
    for kernel in ("cg", "mg"):
        for number, levels in enumerate(itertools.product(*FACTORS.values())):
            condition = dict(zip(FACTORS, levels, strict=True))
            for repeat in range(1, 4):
                elapsed_s = 10 + 0.02 * number + (3.0 if condition["delay_ms"] else 0) + repeat / 50
                parameters = {"kernel": kernel, "class": "B"}
                run = maker.run("npb", parameters, condition, repeat, elapsed_s=elapsed_s)
                maker.result(run, "seconds", elapsed_s - 1, "s")
                maker.record(run, "n1", elapsed_s, energy_j=100 * elapsed_s)
    drawing = energy_time.draw_energy_time(summarize(maker.write(tmp_path)))
    assert drawing is not None
    return drawing


def boxes(drawing: Drawing) -> list[list[Bbox]]:
    """Return the extents of the names of each panel."""
    figure = drawing.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    return [
        # That of the text alone, without the line that leads to it.
        [super(Annotation, one).get_window_extent(renderer) for one in axes.texts]
        for axes in figure.axes
    ]


def test_no_name_hides_another(crowded: Drawing) -> None:
    panels = boxes(crowded)
    assert [len(names) for names in panels] == [8, 8]
    for names in panels:
        for one, other in itertools.combinations(names, 2):
            assert Bbox.intersection(one.padded(-1), other.padded(-1)) is None


def test_names_lie_within_their_panel(crowded: Drawing) -> None:
    for axes, names in zip(crowded.figure.axes, boxes(crowded), strict=True):
        for one in names:
            assert axes.bbox.x0 <= one.x0 and one.x1 <= axes.bbox.x1 + 1


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
