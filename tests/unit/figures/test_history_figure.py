"""The figure of a history: what is in it, whatever the names and numbers are."""

from __future__ import annotations

import itertools

import pytest
from matplotlib.text import Text

from steelyard.analysis.figures.drawing import lay_out, use_style
from steelyard.analysis.figures.history import (
    MAX_NOTES,
    MAX_PANELS,
    NARROW,
    WIDE,
    Shape,
    build_segments,
    draw_history,
    list_notes,
)

from ..history.made_sessions import STATE, Plan, history_of

SESSIONS, STEP = 16, 10


def slower(number: int, node: str) -> float:
    return 10.4 if number >= STEP else 10.0


def test_notes_name_the_session_and_what_changed() -> None:
    plan = Plan(
        seconds=lambda n, node: 13.0 if n >= STEP and node == "n3" else 10.0,
        state=lambda n, node: STATE | {"kernel.release": f"6.{n >= STEP:d}"},
    )
    assert list(list_notes(history_of(plan, SESSIONS))) == [
        "1  2026-11-11: only n3; kernel 6.0 → 6.1"
    ]


def test_a_step_with_nothing_else_is_told_so() -> None:
    (note,) = list_notes(history_of(Plan(seconds=slower), SESSIONS))
    assert note == "1  2026-11-11: nothing else changed"


@pytest.mark.parametrize("shape", [WIDE, NARROW])
def test_long_names_take_few_lines(shape: Shape) -> None:
    plan = Plan(
        seconds=slower,
        state=lambda n, node: STATE | {f"tag{k}": f"{n >= STEP}{'x' * 70}" for k in range(9)},
    )
    (note,) = list_notes(history_of(plan, SESSIONS), shape)
    lines = note.split("\n")
    assert len(lines) == shape.note_lines
    assert lines[-1].endswith(" …")
    assert all(len(line) <= shape.note_letters + 4 for line in lines)


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("words", ["2026-11-{:02}", "after-update-of-the-kernel-{}", "{}"])
@pytest.mark.parametrize("number", [1, 7, 30, 300])
def test_no_words_of_the_figure_overlap(narrow: bool, words: str, number: int) -> None:
    plan = Plan(seconds=slower, name=words.format, variants=["npb kernel=cg class=B profile=true"])
    drawn = draw_history(history_of(plan, number), narrow)
    assert drawn is not None
    with use_style():
        lay_out(drawn.figure)
        drawn.figure.canvas.draw()
    (axes, *_) = drawn.figure.axes
    width = drawn.figure.bbox.width
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    for left, right in itertools.pairwise(boxes):
        assert left.x1 < right.x0
    title = next(one for one in axes.findobj(Text) if one.get_text() == axes.get_title("left"))
    assert title.get_window_extent().x1 <= width
    assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)


@pytest.mark.parametrize("number", [1, 2, SESSIONS, 400])
def test_the_csv_has_every_session_with_values(number: int) -> None:
    found = history_of(Plan(seconds=slower, nodes=lambda n: () if n == 1 else ("n1", "n2")), number)
    drawn = draw_history(found)
    assert drawn is not None
    assert len(drawn.rows) == (number - 1 if number > 1 else 1)
    (axes, *_) = drawn.figure.axes
    assert axes.get_xlim()[1] >= number - 1


@pytest.mark.parametrize(("number", "texts"), [(40, {"1", "2"}), (300, {"1, 2"})])
def test_numbers_of_near_steps_are_one_text(number: int, texts: set[str]) -> None:
    """Beside each other 1 and 2 were 12."""
    plan = Plan(seconds=lambda n, node: 10.0 * (1.1 if n >= 10 else 1) * (1.2 if n >= 18 else 1))
    drawn = draw_history(history_of(plan, number), narrow=True)
    assert drawn is not None
    assert {one.get_text() for one in drawn.figure.axes[0].texts} == texts


def test_levels_in_the_csv_are_those_of_the_stretches() -> None:
    drawn = draw_history(history_of(Plan(seconds=slower), SESSIONS))
    assert drawn is not None
    levels = [row[drawn.columns.index("level")] for row in drawn.rows]
    assert levels[:STEP] == [pytest.approx(10, abs=0.03)] * STEP
    assert levels[STEP:] == [pytest.approx(10.4, abs=0.03)] * (SESSIONS - STEP)


def test_a_drift_is_a_sloped_line() -> None:
    found = history_of(Plan(seconds=lambda n, node: 10.0 * (1 + 0.002 * n)), 60)
    (one,) = build_segments(found.series[0])
    assert (one.begin, one.end) == (0, 60)
    assert one.first == pytest.approx(10.0, abs=0.1)
    assert one.last == pytest.approx(11.18, abs=0.1)


def test_many_series_and_steps_are_bounded_and_the_caption_says_so() -> None:
    plan = Plan(
        seconds=lambda n, node: 10.0 * 1.05 ** (n // 8),
        variants=[f"app n={n}" for n in range(MAX_PANELS + 3)],
    )
    found = history_of(plan, 100)
    drawn = draw_history(found)
    assert drawn is not None
    assert len(found.events) > MAX_NOTES
    assert len(list(list_notes(found))) == MAX_NOTES
    assert f"The first {MAX_PANELS} of {MAX_PANELS + 3} figures" in drawn.caption


def test_without_a_value_there_is_no_figure() -> None:
    assert draw_history(history_of(Plan(nodes=lambda n: ()), 3)) is None
