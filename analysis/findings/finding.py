"""What a finding is: its kind, with code and advice, and what was found in a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from steelyard.analysis.summary.summary import Group, Summary


class Severity(Enum):
    """How much a finding matters; the value is the word in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding; its code is never given to another.

    `title`: what it is; `why`: why it matters; `advice`: what to do about it, as the report says
    it; `example`: what it says of a study; `source`: a publication, or the page that explains it.
    """

    code: str
    severity: Severity
    title: str
    why: str
    advice: str
    example: str
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: a sentence with numbers, and where."""

    kind: Kind
    text: str
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding, and the check that finds it in a study."""

    kind: Kind
    check: Callable[[Summary], Iterator[Finding]]


def place(group: Group) -> str:
    """`variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def counted(number: int, what: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {what}" + ("" if number == 1 else "s")
