"""Style, saving, and inline SVG for all figures.

Figures are made without pyplot, so no state persists after a call.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from steelyard.analysis.summary.rows import Group
    from steelyard.analysis.summary.summary import Summary

FORMATS = ("svg", "pdf", "png", "csv")
WIDTH_IN = 6.6
NARROW_IN = 3.7  # width for a page on a telephone
DPI = 150
TOP_ROOM = 0.05  # of the axis, above the highest value
MAX_NAME = 120  # letters of a file's name without its suffix

# Okabe & Ito (2008), "Color Universal Design", without black and without the yellow that is hard to
# see on white; orange and sky blue are darker, so that a line of each has 3 : 1 against white (WCAG
# 2.1, 1.4.11).
COLOURS = ("#0072B2", "#C68400", "#009E73", "#CC79A7", "#3399D6", "#D55E00")
MARKERS = ("o", "s", "^", "D", "v", "P")
HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++")
DASHES = ("-", "--", ":", "-.")

STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "savefig.dpi": DPI,
    "text.parse_math": False,  # a study's names may contain dollar signs
    # Text stays text in SVG: small, searchable, and sharp; PDF and PNG embed the font.
    "svg.fonttype": "none",
    "svg.hashsalt": "steelyard",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its title, caption and numbers."""

    name: str  # base name of its files
    title: str
    caption: str
    figure: Figure = field(repr=False)
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]] = field(repr=False)
    page_only: bool = False  # another shape of a figure that is saved as files

    def _repr_png_(self) -> bytes:
        """Return the image that a notebook displays."""
        buffer = io.BytesIO()
        with use_style():
            lay_out(self.figure)
            self.figure.savefig(buffer, format="png")
        return buffer.getvalue()


@contextmanager
def use_style() -> Iterator[None]:
    """Apply the style while a figure is drawn or saved."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        yield


def new_figure(height_in: float) -> Figure:
    """Return an empty figure with a canvas that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def start_axis_at(axes: Axes, bottom: float = 0.0) -> None:
    """Set the vertical axis from `bottom` to above the highest marker.

    Matplotlib leaves a share of the values' range, which is almost nothing if they hardly
    differ.
    """
    highest = axes.dataLim.y1
    top = max(axes.get_ylim()[1], highest + TOP_ROOM * (highest - bottom))
    axes.set_ylim(bottom, top)


def save(drawing: Drawing, folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write NAME.svg, .pdf, .png and the data as .csv; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for suffix in formats:
        path = folder / f"{drawing.name}.{suffix}"
        if suffix == "csv":
            save_csv(drawing, path)
        else:
            with use_style():
                lay_out(drawing.figure)
                drawing.figure.savefig(path, format=suffix, metadata=make_metadata(suffix))
        paths.append(path)
    return paths


def lay_out(figure: Figure) -> None:
    """Compute the layout once for all formats.

    savefig would otherwise draw the figure without output before each format.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)  # "none" would leave an engine that causes the extra drawing


def make_metadata(suffix: str) -> dict[str, None]:
    """Return metadata with which the same data give the same file."""
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})


def save_csv(drawing: Drawing, path: Path) -> None:
    """Write the numbers of the figure; missing values are empty cells."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(drawing.columns)
        writer.writerows(drawing.rows)


def inline_svg(drawing: Drawing) -> str:
    """Return the figure as an <svg> element for a page with other figures.

    Ids are made unique or removed, coordinates keep two decimals (0.01 pt), and parts that only a
    separate file needs are left out.
    """
    buffer = io.StringIO()
    with use_style():
        lay_out(drawing.figure)
        drawing.figure.savefig(buffer, format="svg", metadata=make_metadata("svg"))
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:xmlns(?::\w+)?|version)="[^"]*"', "", svg)
    svg = svg.replace("xlink:href", "href")
    svg = re.sub(r"<[^>]+>", shorten_tag, svg)
    svg = re.sub("|".join(PAGE), make_page_colour, svg)
    return re.sub(r"\n\s*", "\n", prefix_ids(svg, drawing.name))


PAGE = dict.fromkeys(("#000000", "#222222", "#333333", "#444444"), "currentColor") | {
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--line)",
    "#b00000": "var(--bad)",
}


def make_page_colour(colour: re.Match[str]) -> str:
    """Return the page's own ink, paper or line color, which changes in a dark page."""
    return PAGE[colour[0]]


def shorten_tag(tag: re.Match[str]) -> str:
    """Return a tag with shortened coordinates; text between tags is unchanged."""
    return re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0])


def prefix_ids(svg: str, name: str) -> str:
    """Add a prefix to ids that are referenced, and remove the others."""
    prefix = "f" + hashlib.sha256(name.encode()).hexdigest()[:6]
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    used_ids = {first or second for first, second in used}

    def change(match: re.Match[str]) -> str:
        return f' id="{prefix}{match[1]}"' if match[1] in used_ids else ""

    svg = re.sub(r' id="([^"]*)"', change, svg)
    return re.sub(r'(href="#|url\(#)', rf"\g<1>{prefix}", svg)


def make_slug(*names: str) -> str:
    """Return a file name: `bars-filesystem-test-large-file-copy-seconds`.

    If that would lose a distinction between names (`level=-1`, `é`, the end of a long name), a
    checksum is appended.
    """
    joined = "-".join(names)
    name = re.sub(r"[^a-z0-9]+", "-", joined.lower()).strip("-")
    if len(name) <= MAX_NAME and not re.search(r"[^A-Za-z0-9]{2,}|[^\x00-\x7f]", joined):
        return name
    checksum = hashlib.sha256(joined.encode()).hexdigest()[:8]
    return f"{name[: MAX_NAME - 9].rstrip('-')}-{checksum}"


def colour_factor(summary: Summary) -> str | None:
    """Return the factor that colors show: the baseline's first with two levels or more, or any."""
    meta = summary.data.meta
    names = sorted(meta.factors, key=lambda name: name not in meta.baseline)
    return next((name for name in names if len(meta.factors[name]) > 1), None)


def level_index(summary: Summary, group: Group) -> int:
    """Return the index of a group's color, marker and hatch.

    With too many levels the index distinguishes only the baseline from all others.
    """
    factor = colour_factor(summary)
    if factor is None:
        return 0
    levels, level = summary.data.meta.factors[factor], group.condition.get(factor)
    if len(levels) > len(COLOURS):
        return 0 if group.label == group.baseline_label else 1
    return levels.index(level) if level in levels else 0
