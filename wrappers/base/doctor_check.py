"""A result of `steelyard doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """One check: what was found, and what to do if it is not as it should be."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    advice: str = ""
