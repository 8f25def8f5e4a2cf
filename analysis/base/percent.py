"""Shares that people write as percent: `1%`, `0.5 %`."""

from __future__ import annotations

import re

PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)\s?%")


def share_of(text: object) -> float | None:
    """0.02 of `2%`; None unless it is a text of more than 0 and less than 100 percent."""
    match = PERCENT.fullmatch(text) if isinstance(text, str) else None
    return float(match[1]) / 100 if match and float(match[1]) else None
