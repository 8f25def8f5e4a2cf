"""Reads Steelyard's part of Slurm's AdminComment, which is below one key (docs/formats.md part 5).

Other programs may use the rest. Only `steelyard-slurmdb` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from steelyard.facts.quantities import TOTALS

KEY = "steelyard"
IN_COMMENT = tuple(name for name, total in TOTALS.items() if total.in_comment)


def read_own_comment(text: str) -> dict[str, Any] | None:
    """Return what Steelyard wrote, with omitted values filled in; None: nothing.

    On PBS, where the comment is Steelyard's alone, it is the whole object.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    mine = document.get(KEY) if isinstance(document, dict) else None
    if isinstance(mine, dict):
        return fill_in_defaults(mine)
    return None if mine is None else dict(document)


def fill_in_defaults(mine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comment with all omitted defaults."""
    layer = "none" if mine.get("node_type") else None
    absent: dict[str, Any] = {
        KEY: 1,
        "node_type": None,
        "vm": layer,
        "container": layer,
        "kernel": None,
        "tags": {},
        "nodes": None,
        "nodes_measured": mine.get("nodes"),
        "partial": False,
        "so_far": False,
        **dict.fromkeys(IN_COMMENT),
        "exclusive": None,
    }
    missing = mine.get("missing")
    reasons = missing.items() if isinstance(missing, dict) else ()
    by_name = {name: why for why, names in reasons if isinstance(names, list) for name in names}
    return absent | dict(mine) | ({"missing": by_name} if by_name else {})


def is_partial(comment: Mapping[str, Any]) -> bool:
    """Whether its totals lack nodes of the job, or may lack some."""
    nodes = comment.get("nodes")
    return nodes is None or comment.get("nodes_measured") != nodes
