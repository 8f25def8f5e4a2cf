"""Links from the report's numbers to the places in the page that list their runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steelyard.analysis.findings.finding import format_location
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary

EVERY_RUN = "runs"  # id of the section
# Text that may follow the name of a group or a run in a finding's place.
HEAD_ENDS = re.compile(r": | · |$")

Anchors = dict[tuple[str, str], str]


@dataclass(frozen=True)
class Place:
    """A finding's place; its head links to runs if there is an anchor."""

    anchor: str
    head: str
    rest: str


def run_anchors(summary: Summary) -> Anchors:
    """Return (variant, condition) -> id of the place in the page that lists its runs."""
    return {(g.variant, g.label): f"runs-{number}" for number, g in enumerate(summary.groups, 1)}


def find_anchor(anchors: Anchors, row: Row) -> str:
    return anchors[row.group.variant, row.group.label]


def variant_anchors(summary: Summary) -> dict[str, str]:
    """Return variant -> id of the list of all its runs."""
    return {variant: f"runs-of-{number}" for number, variant in enumerate(summary.variants, 1)}


def label_anchors(summary: Summary) -> dict[str, str]:
    """Return condition -> id of the list of its runs; for several variants that of all runs."""
    found: dict[str, str] = {}
    for (_, label), anchor in run_anchors(summary).items():
        found[label] = EVERY_RUN if label in found else anchor
    return found


def find_heads(summary: Summary) -> dict[str, str]:
    """Return the ids by the names that findings use: variants, groups, runs."""
    anchors = run_anchors(summary)
    heads = variant_anchors(summary)
    for group in summary.groups:
        anchor = anchors[group.variant, group.label]
        heads |= dict.fromkeys((run.run_id for run in group.runs), anchor)
        heads[format_location(group)] = anchor
    return heads


def link_places(places: Iterable[str], heads: dict[str, str]) -> Iterator[Place]:
    """Yield each place with its longest known head."""
    for text in places:
        ends = [match.start() for match in HEAD_ENDS.finditer(text)]
        end = max((end for end in ends if text[:end] in heads), default=0)
        yield Place(heads.get(text[:end], ""), text[:end], text[end:])
