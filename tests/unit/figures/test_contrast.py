"""Colours of the page and of figures against what is behind them: WCAG 2.1, AA."""

from __future__ import annotations

import importlib.resources
import re

import pytest

from steelyard.analysis.figures.drawing import COLOURS
from steelyard.analysis.figures.heat import COLOUR_MAP, text_colour

TEXT, GRAPHICS = 4.5, 3.0  # success criteria 1.4.3 and 1.4.11
CSS = (
    importlib.resources.files("steelyard.analysis.report").joinpath("report.css").read_text("utf-8")
)
WHITE, SOFT = "#ffffff", "#f4f5f7"


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


def declared(name: str) -> list[str]:
    """The colours that a property is given anywhere in the page; var() is looked up."""
    values = re.findall(rf"(?<![-\w]){name}: ([^;}}]+)", CSS)
    variables = dict(re.findall(r"(--\w+): (#\w+)", CSS))
    named = (re.sub(r"var\((--\w+)\)", lambda m: variables[m[1]], value) for value in values)
    return [value for text in named for value in re.findall(r"#[0-9a-fA-F]{3,6}\b", text)]


def test_the_formula_knows_black_and_white_and_the_border_of_aa() -> None:
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#767676", WHITE) > TEXT > contrast("#777777", WHITE)


def test_text_stands_out_from_every_background_of_the_page() -> None:
    backgrounds = declared("background")
    light = [b for b in backgrounds if luminance(b) > 0.5]
    assert SOFT in light and "#fff3c4" in light  # that of a row which a link led to
    dark_text = [c for c in declared("color") if luminance(c) < 0.5]
    assert len(dark_text) >= 7
    worst = {(t, b): contrast(t, b) for t in dark_text for b in light}
    assert {pair: value for pair, value in worst.items() if value < TEXT} == {}


def test_badges_are_legible() -> None:
    dark = [b for b in declared("background") if luminance(b) < 0.5]
    assert len(dark) == 3  # note, error, warning
    assert all(contrast("#fff", background) >= TEXT for background in dark)


def test_the_focus_is_seen() -> None:
    (outline,) = declared("outline")
    assert contrast(outline, WHITE) >= GRAPHICS and contrast(outline, SOFT) >= GRAPHICS


def test_lines_and_marks_of_figures_stand_out_from_white() -> None:
    assert {c: contrast(c, WHITE) for c in COLOURS if contrast(c, WHITE) < GRAPHICS} == {}


def test_numbers_in_heat_maps_are_legible_on_every_colour() -> None:
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    names = {"black": "#000", "white": "#fff"}
    cells = [colormaps[COLOUR_MAP](step / 100) for step in range(101)]
    assert min(contrast(names[text_colour(cell)], to_hex(cell)) for cell in cells) >= TEXT
    assert {text_colour(cell) for cell in cells} == set(names)
