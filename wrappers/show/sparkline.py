"""A series as one line of letters."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = ".:-=+*#@"
UNKNOWN = "·"


def sparkline(series: Sequence[float | None], top: float | None = None) -> str:
    """From 0 to `top` (else the largest), a letter each; `·` for None."""
    highest = top or max((value for value in series if value is not None), default=0.0)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    letters, unknown = (BLOCKS, UNKNOWN) if encoding == "utf8" else (ASCII, " ")
    return "".join(
        unknown if value is None else letters[step(value, highest, len(letters))]
        for value in series
    )


def step(value: float, highest: float, steps: int) -> int:
    """Which of so many letters; the highest for the highest value alone, and what is as good."""
    if highest <= 0 or value <= 0:
        return 0
    return min(int(value / highest * steps), steps - 1)


def narrowed(series: Sequence[float | None], width: int) -> list[float | None]:
    """No more than `width` values: the means of neighbours that tell."""
    if len(series) <= width:
        return list(series)
    edges = [round(len(series) * n / width) for n in range(width + 1)]
    pieces = [series[a:b] for a, b in pairwise(edges)]
    known = [[value for value in piece if value is not None] for piece in pieces]
    return [sum(piece) / len(piece) if piece else None for piece in known]
