"""The figure of all claims: intervals of a study compared with what the paper claims and prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, Drawing
from steelyard.analysis.papers.paper import Paper
from steelyard.analysis.papers.verdicts import FAILS, HOLDS, OVERHEAD, Evidence, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "claim", "condition", "verdict", "value", "low", "high", "printed", "claimed_low", "claimed_high",
)  # fmt: skip
LETTERS = 84  # of a claim above its interval
LINE_IN = 0.17
INTERVAL = 2.0  # lines
FAR = 4.0  # overheads beyond ± 400 % are arrows at the edge
COLOUR = {HOLDS: COLOURS[2], FAILS: COLOURS[5]}
UNSURE = "#777777"


def draw_claims(paper: Paper, verdicts: Sequence[Verdict]) -> Drawing | None:
    """Draw each overhead with its interval and what is claimed and printed; None without any."""
    chosen = [
        (one, evidence)
        for one in verdicts
        if one.claim.kind == OVERHEAD
        for evidence in one.evidence
        if evidence.low is not None
    ]
    if not chosen:
        return None
    with drawing.use_style():
        return plot_claims(paper, chosen)


def plot_claims(paper: Paper, chosen: Sequence[tuple[Verdict, Evidence]]) -> Drawing:
    """Draw each claim's text above its interval, since there is no room next to it."""
    names = [format_label(one, evidence) for one, evidence in chosen]
    lines = sum(name.count("\n") + 1 + INTERVAL for name in names)
    figure = drawing.new_figure(1.1 + LINE_IN * lines)
    axes = figure.add_subplot()
    ends = find_limits(chosen)
    y = 0.0
    for name, (one, evidence) in zip(names, chosen, strict=True):
        tall = name.count("\n") + 1
        axes.text(0.005, y + 0.2, name, transform=axes.get_yaxis_transform(), va="top",
                  fontsize=8.5,
                  bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0})  # fmt: skip
        draw_claim(axes, one, evidence, y + tall + INTERVAL / 2, ends)
        y += tall + INTERVAL
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks([])
    axes.set_ylim(y, 0)
    axes.set_xlim(*ends)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        "overhead (%)\nline: our 95 % interval, diamond: as printed, band: what is claimed"
    )
    axes.set_title(f"{paper.short}: claims", loc="left")
    return Drawing(
        name=drawing.make_slug("claims", paper.name),
        title=f"Claims of {paper.short} beside this study",
        caption=(
            "The overhead of each comparison that a claim is of, with its 95 % interval: green where "
            "the claim holds, red where it does not, grey where nobody can tell. Diamonds are sizes as "
            "printed, of the paper's own machines; bands are what is claimed. What lies beyond "
            f"± {100 * FAR:.0f} % is an arrow at the edge; the CSV has its size."
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[
            (
                one.claim.words, evidence.condition, evidence.outcome, evidence.value, evidence.low, evidence.high,
                one.claim.printed_share, one.claim.low, one.claim.high,
            )
            for one, evidence in chosen
        ],
    )  # fmt: skip


def format_label(one: Verdict, evidence: Evidence) -> str:
    """Return the claim, and below it the condition of the overhead."""
    return "\n".join(
        [*textwrap.wrap(one.claim.words, LETTERS), *textwrap.wrap(evidence.where, LETTERS)[:2]]
    )


def find_limits(chosen: Sequence[tuple[Verdict, Evidence]]) -> tuple[float, float]:
    """Return the ends of the axis in %: all intervals and printed sizes, up to ± FAR."""
    every = [0.0]
    for one, evidence in chosen:
        every += [
            v for v in (evidence.low, evidence.high, one.claim.printed_share) if v is not None
        ]
    low, high = (100 * min(max(v, -FAR), FAR) for v in (min(every), max(every)))
    room = 0.08 * (high - low) or 1.0
    return low - room, high + room


def draw_claim(
    axes: Axes, one: Verdict, evidence: Evidence, y: float, ends: tuple[float, float]
) -> None:
    """Draw band, interval and diamond of one line."""
    assert evidence.low is not None and evidence.high is not None and evidence.value is not None
    claim, colour = one.claim, COLOUR.get(evidence.outcome, UNSURE)
    left = ends[0] if claim.low is None else 100 * claim.low
    right = ends[1] if claim.high is None else 100 * claim.high
    axes.barh(y, right - left, 0.7 * INTERVAL, left=left, color=COLOURS[0], alpha=0.12)
    low, high, value = (
        100 * min(max(v, -FAR), FAR) for v in (evidence.low, evidence.high, evidence.value)
    )
    axes.plot([low, high], [y, y], color=colour, linewidth=1.6)
    for end, mark in ((low, "|"), (high, "|"), (value, "o")):
        axes.plot(end, y, draw_arrow(end) or mark, color=colour, markersize=4 if mark == "o" else 6)
    if claim.printed_share is not None:
        printed = 100 * min(max(claim.printed_share, -FAR), FAR)
        axes.plot(
            printed, y, draw_arrow(printed) or "D", markersize=5.5, markerfacecolor="none",
            markeredgecolor="#333333",
        )  # fmt: skip


def draw_arrow(percent: float) -> str | None:
    """Return an arrow marker at the edge for a value at or beyond it, else None."""
    return None if abs(percent) < 100 * FAR else ">" if percent > 0 else "<"
