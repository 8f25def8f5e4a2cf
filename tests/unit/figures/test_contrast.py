"""Colours of the page and of figures against what is behind them: WCAG 2.1, AA."""

from __future__ import annotations

import dataclasses
import importlib.resources
import re

import pytest

from steelyard.analysis.figures.drawing import COLOURS, inline_svg
from steelyard.analysis.figures.forest_plot import LOOKS, draw_forest
from steelyard.analysis.figures.heat_map import COLOUR_MAP, DARK, LIGHT, choose_text_colour
from steelyard.analysis.summary.summary import Summary

TEXT, GRAPHICS = 4.5, 3.0  # success criteria 1.4.3 and 1.4.11
CSS = (
    importlib.resources.files("steelyard.analysis.report").joinpath("report.css").read_text("utf-8")
)
WHITE = "#ffffff"


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.1 defines it."""
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(2 * digit for digit in digits)
    channels = (int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """From 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def variables(dark: bool) -> dict[str, str]:
    """The page's own colours, as a reader has them light or dark."""
    roots = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    assert len(roots) == 2
    light, instead = (dict(re.findall(r"(--\w+): (#\w+)", root)) for root in roots)
    assert light.keys() == instead.keys()
    return light | instead if dark else light


def declared(name: str, dark: bool = False) -> list[str]:
    """The colours that a property is given anywhere in the page; var() is looked up."""
    values = re.findall(
        rf"(?<![-\w]){name}: ([^;}}]+)", re.sub(r":root \{.*?\}", "", CSS, flags=re.DOTALL)
    )
    known = variables(dark)
    named = (re.sub(r"var\((--\w+)\)", lambda m: known[m[1]], value) for value in values)
    return [value for text in named for value in re.findall(r"#[0-9a-fA-F]{3,6}\b", text)]


def test_the_formula_knows_black_and_white_and_the_border_of_aa() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", WHITE) > TEXT > contrast("#777777", WHITE)


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_every_background_of_the_page(dark: bool) -> None:
    known = variables(dark)
    behind = [known[name] for name in ("--paper", "--soft", "--found")]
    text = [c for c in declared("color", dark) if (luminance(c) > 0.3) is dark]
    assert len(text) >= 7 and {known[n] for n in ("--ink", "--quiet", "--link")} <= set(text)
    worst = {(t, b): contrast(t, b) for t in text for b in behind}
    assert {pair: value for pair, value in worst.items() if value < TEXT} == {}


def test_badges_are_legible() -> None:
    badges = re.findall(r"\.badge \{[^}]*background: (#\w+)", CSS)
    assert len(badges) == 3  # note, error, warning
    assert all(contrast("#fff", background) >= TEXT for background in badges)


@pytest.mark.parametrize("dark", [False, True])
def test_the_focus_is_seen(dark: bool) -> None:
    (outline,) = declared("outline", dark)
    for name in ("--paper", "--soft"):
        assert contrast(outline, variables(dark)[name]) >= GRAPHICS


def test_lines_and_marks_stand_out_where_the_page_is_dark() -> None:
    """Of figures that keep their colours; ink, paper and grid are the page's own."""
    paper = variables(dark=True)["--paper"]
    looks = {colour for colour, _, _ in LOOKS.values()}
    marks = {*COLOURS, *looks}
    assert {c: contrast(c, paper) for c in marks if contrast(c, paper) < GRAPHICS} == {}


def test_a_page_gives_figures_its_own_ink(demo_summary: Summary) -> None:
    """Nothing black or white is left in them, which the one or the other page would swallow."""
    drawing = draw_forest(demo_summary)
    assert drawing is not None
    svg = inline_svg(drawing)
    assert "currentColor" in svg and "var(--paper)" in svg
    assert not re.search(r"#000000|#ffffff|black|white", svg)


def test_cpu_seconds_that_hold_others_time_are_in_no_picture_of_overheads(
    demo_summary: Summary,
) -> None:
    """A guest's +7605 % of them had led it, beside a finding that they are not to be trusted."""

    def shown(summary: Summary) -> tuple[set[object], str]:
        drawing = draw_forest(summary)
        assert drawing is not None
        return {row[3] for row in drawing.rows}, drawing.caption

    before, caption = shown(demo_summary)
    assert "cpu_s" in before and "SY32" not in caption
    records = [dataclasses.replace(record, vm="uml") for record in demo_summary.data.records]
    data = dataclasses.replace(demo_summary.data, records=records)
    after, caption = shown(dataclasses.replace(demo_summary, data=data))
    assert after == before - {"cpu_s"} and "SY32" in caption


def test_lines_and_marks_of_figures_stand_out_from_white() -> None:
    assert {c: contrast(c, WHITE) for c in COLOURS if contrast(c, WHITE) < GRAPHICS} == {}


def test_numbers_in_heat_maps_are_legible_on_every_colour() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    cells = [colormaps[COLOUR_MAP](step / 100) for step in range(101)]
    assert min(contrast(choose_text_colour(cell), to_hex(cell)) for cell in cells) >= TEXT
    assert {choose_text_colour(cell) for cell in cells} == {DARK, LIGHT}  # not the page's
