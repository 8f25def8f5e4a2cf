"""Slurm's short form of node lists: `n[1-2,07-09],login` is n1, n2, n07, n08, n09, login."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from steelyard.analysis.base.errors import UsageError

# A wrong list (n[1-999999999]) must not fill the memory; the largest clusters have about 10^4
# nodes.
MAX_NODES = 1_000_000
MAX_DIGITS = 30
SHOWN_CHARACTERS = 80


def shorten(text: str) -> str:
    """Shorten a list to fit into a line."""
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def describe_error(node_list: str, what: str) -> UsageError:
    """Return the error for a list in one line, however long the list is."""
    return UsageError(f"node list '{shorten(node_list)}': {what}", shorten(node_list))


def split_outside_brackets(text: str) -> list[str]:
    """Split `n[1,2],m` into `n[1,2]` and `m`."""
    return re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text)


def is_number(text: str) -> bool:
    """Whether the text is all digits, and not longer than any node's number."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def expand_range(text: str, node_list: str) -> Iterator[str]:
    """Yield 07, 08, 09 for `07-09`; the first number gives the width."""
    first, dash, last = text.partition("-")
    if not is_number(first) or (dash and not is_number(last)):
        raise describe_error(node_list, f"'{shorten(text)}' is no number or range of numbers")
    low, high = int(first), int(last) if dash else int(first)
    if high - low >= MAX_NODES:
        raise describe_error(node_list, f"'{text}' names more than {MAX_NODES} nodes")
    return (str(number).zfill(len(first)) for number in range(low, high + 1))


def expand_ranges(text: str, node_list: str) -> list[str]:
    """Return 1, 2, 07 for `1-2,07`."""
    found = itertools.chain.from_iterable(expand_range(item, node_list) for item in text.split(","))
    numbers = list(itertools.islice(found, MAX_NODES + 1))
    if len(numbers) > MAX_NODES:
        raise describe_error(node_list, f"more than {MAX_NODES} nodes")
    return numbers


def expand_nodes(text: str) -> list[str]:
    """Return the names of a node list, in order; raise UsageError for an invalid list."""
    names: list[str] = []
    for item in split_outside_brackets(text.strip()):
        pieces = re.split(r"\[([^\]]*)\]", item)
        if any("[" in piece or "]" in piece for piece in pieces):
            raise describe_error(text, f"brackets do not match in '{shorten(item)}'")
        choices: list[list[str]] = []
        for index, piece in enumerate(pieces):  # every second piece was in brackets
            choices.append(expand_ranges(piece, text) if index % 2 else [piece])
            if len(names) + math.prod(map(len, choices)) > MAX_NODES:
                raise describe_error(text, f"more than {MAX_NODES} nodes")
        names += ("".join(combination) for combination in itertools.product(*choices))
    return names
