"""What `steelyard doctor` says about one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do where it is not as it should be."""

    name: str
    state: Literal["ok", "warning", "missing"]
    found: str
    advice: str = ""
