"""Parses a condition as a user writes it: omitted factors have the level of the baseline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.summary.summary import Summary


def check_label(summary: Summary, condition: str | Mapping[str, Any]) -> str:
    """Return the label of a condition, whose order and separators do not matter.

    `condition` is `threads=2` or {"threads": 2}. Raises UsageError with the known labels.
    """
    factors = summary.data.meta.factors
    text = condition if isinstance(condition, str) else format_label(condition)
    wanted, base = (
        format_found_labels(summary, one)
        for one in (split_label(text, factors), list_baseline_parts(summary))
    )
    for label in summary.labels:
        named = format_found_labels(summary, split_label(label, factors))
        if (wanted and wanted <= named <= wanted | base) or text == label:
            return label
    known = "\n  ".join(summary.labels)
    raise UsageError(f"no condition '{text}'; the study has:\n  {known}", text)


def format_found_labels(summary: Summary, found: frozenset[str]) -> frozenset[str]:
    """Return the levels as they are printed: a level's display text also replaces its name."""
    meta = summary.data.meta
    pairs = (item.partition("=") for item in found)
    return frozenset(f"{name}={meta.level_text(name, level)}" for name, _, level in pairs)


def format_label(levels: Mapping[str, Any]) -> str:
    """Format `threads=2 cached=true`; labels have levels in TOML's form."""
    spellings = {True: "true", False: "false"}
    return " ".join(
        f"{name}={spellings[level] if isinstance(level, bool) else level}"
        for name, level in levels.items()
    )


def split_label(label: str, factors: Iterable[str]) -> frozenset[str]:
    """Split `a=1 b=2` and `a=1, b=2` into {a=1, b=2}; levels may contain blanks and commas."""
    names = "|".join(map(re.escape, factors))
    return frozenset(item for item in re.split(rf"[, ]+(?=(?:{names})=)", label.strip()) if item)


def list_baseline_parts(summary: Summary) -> frozenset[str]:
    """Return the levels of omitted factors; a factor that the baseline does not name has none."""
    meta = summary.data.meta
    every = (
        split_label(group.label, meta.factors) for group in summary.groups if group.is_baseline
    )
    return frozenset(
        item for found in every for item in found if item.partition("=")[0] in meta.baseline
    )
