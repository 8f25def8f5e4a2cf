"""Tests whether two sides were interleaved in time, so that drift affects both equally.

Blocks are those of the plan: after a failed run its block still counts as one of both sides. A
level that was added to a study, and a resubmitted run, have separate blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.summary.sampling_units import build_pairs, select_compared_runs

if TYPE_CHECKING:
    from steelyard.analysis.summary.rows import Row

Span = tuple[float, float]  # first and last start


@dataclass(frozen=True, slots=True)
class Interleaving:
    """The number of compared runs in blocks without a run of the other side.

    `spans` has the starts of both sides if one side ran completely before the other.
    """

    uninterleaved: int
    runs: int
    spans: tuple[Span, Span] | None = None

    @property
    def describe(self) -> str:
        """The remark to print at the comparison; empty if all runs took turns."""
        if self.spans is not None or self.uninterleaved == self.runs:
            return "the two sides did not take turns"
        return (
            f"{self.uninterleaved} of {self.runs} runs did not take turns"
            if self.uninterleaved
            else ""
        )


def check_interleaving(row: Row, base: Row) -> Interleaving:
    """Check the runs that the overhead compares; both rows need values."""
    sides = [
        [(run, side.group.blocks[run]) for run in side.run_ids]
        for side in select_compared_runs(row, base)
    ]
    runs, alone = sum(map(len, sides)), 0
    if build_pairs(row, base) is None:
        planned = [set(side.group.blocks.values()) for side in (base, row)]
        alone = sum(
            block is not None and block not in other
            for side, other in zip(sides, planned, strict=True)
            for _, block in side
        )
    ours, theirs = ([run for run, _ in side] for side in sides)
    return Interleaving(alone, runs, separate_spans((row, ours), (base, theirs)))


def separate_spans(*sides: tuple[Row, Sequence[str]]) -> tuple[Span, Span] | None:
    """Return the spans of starts of both sides; None if they overlap or are not known."""
    spans = []
    for row, run_ids in sides:
        ids = set(run_ids)
        starts = [run.start_unix_s for run in row.group.runs if run.run_id in ids]
        known = [start for start in starts if start is not None]
        if not known or len(known) < len(starts):
            return None
        spans.append((min(known), max(known)))
    mine, other = spans
    return (mine, other) if mine[1] < other[0] or other[1] < mine[0] else None
