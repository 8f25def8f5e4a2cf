"""Slurm's short form of node lists: `n[1-2,07-09],login` -> n1, n2, n07, n08, n09, login."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from steelyard.analysis.base.errors import UsageError

# A wrong list (n[1-999999999]) must not fill the memory; the largest clusters have some 10^4.
MAX_NODES = 1_000_000


def split_outside_brackets(text: str) -> list[str]:
    """`n[1,2],m` -> [`n[1,2]`, `m`]."""
    return re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text)


def expand_range(text: str, whole: str) -> Iterator[str]:
    """`07-09` -> 07, 08, 09; the first number's zeros give the width."""
    first, dash, last = text.partition("-")
    if not first.isascii() or not first.isdigit() or (dash and not last.isdigit()):
        raise UsageError(f"node list '{whole}': '{text}' is no number or range of numbers", whole)
    low, high = int(first), int(last) if dash else int(first)
    if high - low >= MAX_NODES:
        raise UsageError(f"node list '{whole}': '{text}' names more than {MAX_NODES} nodes", whole)
    return (str(number).zfill(len(first)) for number in range(low, high + 1))


def expand_ranges(text: str, whole: str) -> list[str]:
    """`1-2,07` -> 1, 2, 07."""
    found = itertools.chain.from_iterable(expand_range(part, whole) for part in text.split(","))
    numbers = list(itertools.islice(found, MAX_NODES + 1))
    if len(numbers) > MAX_NODES:
        raise UsageError(f"node list '{whole[:80]}': more than {MAX_NODES} nodes", whole)
    return numbers


def expand_nodes(text: str) -> list[str]:
    """Names of a node list, in its order; UsageError when it is none."""
    names: list[str] = []
    for part in split_outside_brackets(text.strip()):
        pieces = re.split(r"\[([^\]]*)\]", part)
        if any("[" in piece or "]" in piece for piece in pieces):
            raise UsageError(f"node list '{text}': brackets do not match in '{part}'", text)
        # Every second piece stood in brackets.
        choices = [
            expand_ranges(piece, text) if index % 2 else [piece]
            for index, piece in enumerate(pieces)
        ]
        if len(names) + math.prod(map(len, choices)) > MAX_NODES:
            raise UsageError(f"node list '{text[:80]}': more than {MAX_NODES} nodes", text)
        names += ("".join(combination) for combination in itertools.product(*choices))
    return names
