"""Numbers of things in sentences: `1 run`, `2 runs`, `3 to 5 runs`."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, what: str, plural: str | None = None) -> str:
    """`1 run`, `2 runs`; `plural`: where it is not the noun and an s."""
    return f"{number} {inflect(number, what, plural)}"


def inflect(number: int, what: str, plural: str | None = None) -> str:
    """`run` of 1, else `runs`; a verb by `inflect(number, "is", "are")`."""
    return what if number == 1 else plural or f"{what}s"


def counted_range(numbers: Iterable[int], what: str) -> str:
    """`1 run`, `5 runs`, `1 to 3 runs`: of the least and the largest number."""
    known = sorted(numbers)
    if known[0] == known[-1]:
        return counted(known[0], what)
    return f"{known[0]} to {counted(known[-1], what)}"
