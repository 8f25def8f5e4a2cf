"""What a cluster's database says that a job used, where the accounting has it no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steelyard.analysis.collect.job_view import JobView
from steelyard.analysis.stats.number_format import binary
from steelyard.wrappers.base import console
from steelyard.wrappers.show import terminal
from steelyard.wrappers.show.terminal import format_joules, group_by_reason

WORDS = {
    "energy_j": ("energy", format_joules),
    "cpu_s": ("CPU", console.format_seconds),
    "memory_used_bytes": ("memory", binary),
    "read_bytes": ("read", console.format_bytes),
    "write_bytes": ("written", console.format_bytes),
}
SOURCES = {"records": "records", "admin_comment": "AdminComment", "accounting": "the accounting"}


def print_database_usage(view: JobView) -> None:
    """As `steelyard top` counts it: each figure with who said it, or why there is none."""
    kept = view.kept
    if kept is None:
        return
    console.print_line(f"as counted in {kept['database']}")
    if kept["tags"]:
        terminal.print_wrapped(
            "tags: " + ", ".join(f"{key}={value}" for key, value in kept["tags"].items())
        )
    for source, cells in group_by_source(kept).items():
        terminal.print_wrapped(f"by {source}: {', '.join(cells)}")
    missing = {name: why for name, why in kept["missing"].items() if name in WORDS}
    for why, names in group_by_reason(missing).items():
        terminal.print_wrapped(f"{', '.join(WORDS[name][0] for name in names)} not known: {why}")
    for mark in kept["marks"]:
        terminal.print_wrapped(f"marked: {mark}")


def group_by_source(kept: Mapping[str, Any]) -> dict[str, list[str]]:
    """The figures in words, by who said them."""
    found: dict[str, list[str]] = {}
    for name, (word, show) in WORDS.items():
        if kept[name] is not None:
            source = SOURCES[kept["sources"][name]]
            found.setdefault(source, []).append(f"{word} {show(kept[name])}")
    return found
