"""Long names in figures: all text is inside, no text overlaps, and no two names are equal."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from types import ModuleType

import pytest
from matplotlib.axis import Tick
from matplotlib.figure import Figure
from matplotlib.text import Text

from steelyard.analysis.figures.bar_chart import draw_bars
from steelyard.analysis.figures.box_plot import draw_boxes
from steelyard.analysis.figures.drawing import Drawing, lay_out, use_style
from steelyard.analysis.figures.forest_plot import draw_forest
from steelyard.analysis.figures.heat_map import draw_heat
from steelyard.analysis.figures.iterations import draw_iterations
from steelyard.analysis.figures.label_fitting import (
    format_short_labels,
    make_legend,
    shorten_name,
    shorten_names,
    wrap_label,
    wrap_titles,
)
from steelyard.analysis.figures.line_plot import draw_lines
from steelyard.analysis.figures.mpi_time_shares import draw_stack
from steelyard.analysis.figures.rtt import draw_rtt
from steelyard.analysis.figures.run_series import draw_series
from steelyard.analysis.figures.time_series import draw_times
from steelyard.analysis.summary import numeric_factors
from steelyard.analysis.summary.numeric_factors import build_factor_series
from steelyard.analysis.summary.summary import Summary, summarize

IMAGE = "podman:registry.example.org/group/debian"
FACTORS = {
    "network": [
        "none",
        "delay=10ms",
        "delay=25ms",
        "delay=50ms~5ms/normal,loss=0.1%",
        "delay=99ms",
    ],
    "node_type": ["physical", "virtual"],
    "launcher": ["bare", f"{IMAGE}:12-slim", f"{IMAGE}:13-slim"],
}
BASELINE = {"network": "none", "node_type": "physical", "launcher": "bare"}
SHARES = {"compute_share": 0.6, "communication_share": 0.3, "init_share": 0.1}
URL = "root://data.example.org:1094//store/user/someone/run2026/events-of-a-long-name.root"

METRIC = "seconds_per_gigabyte"


@pytest.fixture(scope="module")
def summary(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """30 conditions of long names, of one benchmark with a long parameter."""
    maker = synthetic.StudyMaker("long", FACTORS, BASELINE)
    chance = random.Random(4)
    levels = list(itertools.product(*FACTORS.values()))
    for number, level in itertools.product(range(1, 5), levels):
        condition = dict(zip(FACTORS, level, strict=True))
        place = levels.index(level)
        run = maker.run("xrootd", {"url": URL}, condition, number, elapsed_s=20.0)
        for iteration in range(1, 4):
            seconds = 20 + place + chance.gauss(0, 0.3)
            maker.result(run, METRIC, seconds, "s_per_GB", iteration=iteration)
        for name, share in SHARES.items():
            maker.result(run, name, share * chance.gauss(1, 0.01), "1", None, primary=False)
        maker.record(run, "n1", 20.0, energy_j=900 + chance.gauss(0, 9), rtt_median_s=0.01 + place)
        maker.samples(run, "n1", 20.0, watts=90)
    return summarize(maker.write(tmp_path_factory.mktemp("long")))


@pytest.fixture(scope="module")
def drawings(summary: Summary) -> dict[str, Drawing]:
    (variant,) = summary.variants
    rows = [row for row in summary.rows if row.metric.name == METRIC]
    (axis,) = numeric_factors.find_axes({"network": summary.data.meta.factors["network"]})
    panels = list(build_factor_series(summary, variant, axis, [METRIC, "energy_j"]))
    ((_, time),) = draw_times(summary, [variant])
    return {
        "bars": draw_bars(summary, rows),
        "series": draw_series(summary, rows),
        "iterations": found(draw_iterations(summary, rows)),
        "time": time,
        "boxes": draw_boxes(panels),
        "lines": draw_lines(panels[0]),
        "heat": found(draw_heat(summary, rows)),
        "stack": found(draw_stack(summary, variant)),
        "round-trip": found(draw_rtt(summary)),
        "overheads": found(draw_forest(summary)),
        "overheads of a narrow page": found(draw_forest(summary, narrow=True)),
    }


def found(drawing: Drawing | None) -> Drawing:
    assert drawing is not None
    return drawing


def drawn_texts(figure: Figure) -> list[Text]:
    """Without the labels of ticks beyond an axis' ends, which matplotlib has and does not draw."""
    labels = {label for tick in figure.findobj(Tick) for label in (tick.label1, tick.label2)}
    drawn = [text for text in figure.findobj(Text) if text not in labels]
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        params = axis.get_tick_params()
        if not params.get("labelleft", params.get("labelbottom")):
            continue  # a shared axis, labelled elsewhere
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
        drawn += [label for place, label in ticks if low <= place <= high]
    return [text for text in drawn if text.get_visible() and text.get_text().strip()]


KINDS = (
    "bars", "series", "iterations", "time", "boxes", "lines", "heat", "stack", "round-trip",
    "overheads", "overheads of a narrow page",
)  # fmt: skip


def check_texts(figure: Figure) -> None:
    """Check that no text is cut or overlaps another one."""
    with use_style():
        lay_out(figure)
        figure.canvas.draw()  # type: ignore[attr-defined]
        boxes = [(text.get_text(), text.get_window_extent()) for text in drawn_texts(figure)]
    assert len(boxes) > 5
    width, height = figure.bbox.width, figure.bbox.height
    for words, box in boxes:
        assert box.x0 > -2 and box.x1 < width + 2, words
        assert box.y0 > -2 and box.y1 < height + 2, words
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        across = min(one.x1, other.x1) - max(one.x0, other.x0)
        down = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert across < 2 or down < 2, (a, b)


@pytest.mark.filterwarnings("error::UserWarning")  # of a layout that finds no room
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_cut_or_lies_on_another(drawings: dict[str, Drawing], kind: str) -> None:
    check_texts(drawings[kind].figure)


def test_two_panels_of_a_heat_map_have_room_for_their_words(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Narrow cells of the baseline, and a long level above them."""
    factors = {
        "threads": [1, 2, 4, 8],
        "kind": ["short", "a rather long level name of the first kind"],
        "inp": ["in1", "in2", "input of a long name"],
    }
    maker = synthetic.StudyMaker("two", factors, {"kind": "short", "inp": "in2"})
    for number, level in itertools.product(range(1, 4), itertools.product(*factors.values())):
        run = maker.run("app", {}, dict(zip(factors, level, strict=True)), number, elapsed_s=1.0)
        maker.result(run, "seconds", 1.0 + 0.01 * number, "s")
    summary = summarize(maker.write(tmp_path))
    rows = [row for row in summary.rows if row.metric.name == "seconds"]
    drawing = found(draw_heat(summary, rows))
    assert len(drawing.figure.axes) == 3, "two panels and the scale of colors"
    check_texts(drawing.figure)


def test_a_level_that_is_no_number_is_named_below_the_lines(drawings: dict[str, Drawing]) -> None:
    for kind in ("lines", "boxes"):
        assert "Not on this axis: delay=50ms~5ms/normal,loss=0.1%." in drawings[kind].caption
    assert "no number" not in drawings["heat"].caption


def test_what_levels_have_in_common_makes_room_for_what_differs() -> None:
    end = "to=10.99.250.8/29"
    names = [f"rate=20mbit,{end}", f"rate=20mbit,delay=25ms,{end}", f"rate=20mbit,delay=50ms,{end}"]
    assert list(shorten_names(names, 30).values()) == [
        "rate=20mbit,…",
        "rate=20mbit,delay=25ms,…",
        "rate=20mbit,delay=50ms,…",
    ]
    assert list(shorten_names(names, 60).values()) == names, (
        "where there is room nothing is left out"
    )
    assert shorten_names(names[:1], 9) == {names[0]: "rate…8/29"}, "nothing to compare with"
    rows = [f"rate=20mbit,delay={ms}ms,to=10.68.116.8/29 · seconds" for ms in (25, 50)]
    assert list(shorten_names(["xrootd", *rows], 46).values()) == [
        "xrootd", "rate=20mbit,delay=25ms,… · seconds", "rate=20mbit,delay=50ms,… · seconds",
    ], "a heading among them leaves out nothing, and keeps nothing in"  # fmt: skip


def test_names_that_look_alike_when_cut_get_numbers() -> None:
    names = ["a" * 20 + "1" + "b" * 20, "a" * 20 + "2" + "b" * 20, "short"]
    found = shorten_names(names, 9)
    assert list(found) == names
    assert len(set(found.values())) == 3
    assert max(map(len, found.values())) <= 9
    assert found["short"] == "short"


def test_labels_of_conditions_stay_apart_and_in_bounds(summary: Summary) -> None:
    labels, names = format_short_labels(summary, summary.groups)
    assert names == "network · node_type · launcher"
    assert len(set(labels)) == len(labels) == 30
    assert max(map(len, labels)) <= 44


def test_short_names_are_left_alone(demo_summary: Summary) -> None:
    groups = [g for g in demo_summary.groups if g.variant == "hpl N=4000"]
    assert format_short_labels(demo_summary, groups) == (["1", "2"], "clients")
    assert shorten_name("delay=10ms", 10) == "delay=10ms"
    assert make_legend(["a=1", "a=2"]).columns == 2
    assert make_legend(["a" * 60, "a=2"]).columns == 1


def test_lines_break_behind_signs_and_never_lose_a_letter() -> None:
    label = "delay=50ms~5ms/normal · virtual"
    assert wrap_label(label, 12) == "delay=50ms~\n5ms/normal\nvirtual"
    assert wrap_label("x" * 25, 10).replace("\n", "") == "x" * 25


def test_conditions_on_lines_keep_what_tells_them_apart() -> None:
    titles = [f"network=delay=25ms, launcher={IMAGE}:{tag}, node_type=virtual" for tag in "ab"]
    found = wrap_titles(titles, 30)
    assert found[0] != found[1]
    assert all(len(line) <= 30 for title in found for line in title.split("\n"))
    assert found[0].startswith("network=delay=25ms,\nlauncher=podm")
    assert found[0].endswith(",\nnode_type=virtual")
    assert wrap_titles(["a=1, b=2"], 30) == ["a=1, b=2"]
