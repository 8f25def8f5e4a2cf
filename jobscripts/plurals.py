"""Numbers with nouns: `1 run`, `2 runs`, `3 to 5 runs`."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, what: str, plural: str | None = None) -> str:
    """Return `1 run` or `2 runs`; `plural` is for nouns without a plain s."""
    return f"{number} {inflect(number, what, plural)}"


def inflect(number: int, what: str, plural: str | None = None) -> str:
    """Return `run` for 1, else `runs`; for a verb: `inflect(number, "is", "are")`."""
    return what if number == 1 else plural or f"{what}s"


def counted_range(numbers: Iterable[int], what: str) -> str:
    """Return `1 run`, `5 runs`, `1 to 3 runs`, from the least to the largest number."""
    known = sorted(numbers)
    if known[0] == known[-1]:
        return counted(known[0], what)
    return f"{known[0]} to {counted(known[-1], what)}"
