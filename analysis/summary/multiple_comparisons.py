"""Families of comparisons: what their tests say, corrected for how many are told at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from steelyard.analysis.stats.overhead import Evidence
from steelyard.analysis.stats.significance_tests import holm


def correct(family: Mapping[int, Evidence]) -> dict[int, Evidence]:
    """By place: p of differences by Holm for all of them, those of the margin likewise."""
    p = by_holm({place: one.p for place, one in family.items()})
    near = by_holm({place: one.p_equivalent for place, one in family.items()})
    no_worse = by_holm({place: one.p_non_inferior for place, one in family.items()})
    return {
        place: replace(
            one,
            p=p.get(place),
            family=len(p),
            p_equivalent=near.get(place),
            p_non_inferior=no_worse.get(place),
        )
        for place, one in family.items()
    }


def by_holm(tests: Mapping[int, float | None]) -> dict[int, float]:
    """Those that there are, corrected for all of these."""
    known = {place: p for place, p in tests.items() if p is not None}
    return dict(zip(known, holm(list(known.values())), strict=True))
