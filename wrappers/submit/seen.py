"""Which difference a study would see with its repeats, from the spread of earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.planning import (
    STOPPING_CONFIDENCE,
    difference_seen,
    repeats_to_see,
)
from steelyard.analysis.summary.earlier import Earlier
from steelyard.wrappers.study.planned import Run
from steelyard.wrappers.study.study import Study

WANTED = (0.01, 0.02, 0.05, 0.1)  # differences for which the repeats are told
GUESSES = (0.01, 0.05, 0.2)  # spreads, where no earlier run tells one


@dataclass(frozen=True)
class Sight:
    """Of one variant: what is seen in four studies of five, and the repeats that others need."""

    variant: str
    spread: float  # standard deviation as a share of the mean
    runs: int  # earlier ones from which it is known; 0: it is a guess
    seen: float | None  # share of the mean; None: too few repeats for a test
    repeats_for: dict[str, int | None]


def comparisons(runs: Sequence[Run]) -> int:
    """How many conditions are held against a baseline."""
    kinds = {(run.variant, run.condition_label) for run in runs if not run.is_baseline}
    return len(kinds)


def level_of(study: Study, runs: Sequence[Run]) -> float:
    """The chance of an error that a test is allowed: shared by all comparisons, as Holm's first
    step does it."""
    confidence = CONFIDENCE if study.stop is None else STOPPING_CONFIDENCE
    return (1 - confidence) / max(1, comparisons(runs))


def sights(study: Study, runs: Sequence[Run], earlier: Earlier) -> list[Sight]:
    """For each variant; guesses where nothing is known of any."""
    level = level_of(study, runs)
    first = {run.variant: run for run in sorted(runs, key=lambda run: run.is_baseline)}
    found = []
    for variant, run in first.items():
        seen, _ = earlier.of(run.benchmark, run.parameters, run.condition)
        if seen is not None and seen.spread:
            found.append(sight(study, variant, seen.spread, len(seen.main), level))
    return found or [sight(study, "any benchmark", spread, 0, level) for spread in GUESSES]


def sight(study: Study, variant: str, spread: float, runs: int, level: float) -> Sight:
    """By the power of a t test."""
    blocks = study.blocks if study.blocks < study.repeat else None
    found = difference_seen(study.repeat, level, blocks)
    return Sight(
        variant=variant,
        spread=spread,
        runs=runs,
        seen=None if found is None else found * spread,
        repeats_for={f"{share:.0%}": repeats_to_see(share / spread, level) for share in WANTED},
    )
