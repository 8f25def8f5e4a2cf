"""Slurm's AdminComment, which is everybody's: ours stands in it below one key (docs/formats.md part 5).

plugins/node/job/comment_merge.c does the same as `merged`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard.facts.quantities import TOTALS

KEY = "steelyard"
MAX_BYTES = 65535  # Slurm cuts what is longer, without a word
IN_COMMENT = tuple(name for name, total in TOTALS.items() if total.in_comment)


class ForeignError(Exception):
    """It has to be left as it is; the words say why."""


def own(text: str) -> dict[str, Any] | None:
    """What Steelyard wrote, with null for what it left out; None: nothing. On PBS, whose comment is
    Steelyard's alone, it is the whole object."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    mine = document.get(KEY) if isinstance(document, dict) else None
    if isinstance(mine, dict):
        return whole(mine)
    return None if mine is None else dict(document)


def whole(mine: Mapping[str, Any]) -> dict[str, Any]:
    """With all that went without saying."""
    layer = "none" if mine.get("node_type") else None
    absent: dict[str, Any] = {
        KEY: 1,
        "node_type": None,
        "vm": layer,
        "container": layer,
        "kernel": None,
        "tags": {},
        "nodes": None,
        "nodes_weighed": mine.get("nodes"),
        "so_far": False,
        **dict.fromkeys(IN_COMMENT),
        "exclusive": None,
    }
    missing = mine.get("missing")
    reasons = missing.items() if isinstance(missing, dict) else ()
    by_name = {name: why for why, names in reasons if isinstance(names, list) for name in names}
    return absent | dict(mine) | ({"missing": by_name} if by_name else {})


def merged(text: str | None, mine: str) -> str:
    """`text` with `mine`, a line of JSON, below our key; what others wrote stays to the byte.

    ForeignError when that cannot be.
    """
    if not text or not text.strip():
        return f'{{"{KEY}":{mine}}}'
    check_object(text)
    kept = [whole for name, whole in members(text) if name != KEY]
    result = f"{{{','.join([*kept, f'{json.dumps(KEY)}:{mine}'])}}}"
    if len(result.encode()) > MAX_BYTES:
        raise ForeignError("what others wrote leaves no room")
    return result


def check_object(text: str) -> None:
    """ForeignError unless it is an object that has each name once."""
    try:
        document = json.loads(text, object_pairs_hook=unique, parse_constant=refused)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ForeignError("there is text of somebody else that is no JSON object")


def refused(word: str) -> None:
    """NaN and Infinity are none of JSON's words."""
    raise ValueError(word)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these; ValueError: a name stands there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name twice")
    return found


def members(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each member of a valid object."""
    decoder = json.JSONDecoder()
    at = after_blanks(text, text.index("{") + 1)
    while text[at] != "}":
        name, end = decoder.raw_decode(text, at)
        begin = after_blanks(text, after_blanks(text, end) + 1)
        _, end = decoder.raw_decode(text, begin)
        yield name, text[at:end]
        at = after_blanks(text, end)
        if text[at] == ",":
            at = after_blanks(text, at + 1)


def after_blanks(text: str, at: int) -> int:
    """The place of the next character that is none."""
    while text[at] in " \t\r\n":
        at += 1
    return at
