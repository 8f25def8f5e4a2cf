"""The difference that a study can detect with its repeats, given the spread of earlier runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.planning import (
    MOST_REPEATS,
    STOPPING_CONFIDENCE,
    least_detectable_difference,
    repeats_to_detect,
)
from steelyard.analysis.summary.earlier_runs import EarlierRuns, Spread
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study

REQUESTED = (0.01, 0.02, 0.05, 0.1)  # differences for which the necessary repeats are reported
GUESSES = (0.01, 0.05, 0.2)  # assumed spreads if no earlier run has one
ANY = "any benchmark"


@dataclass(frozen=True)
class DetectableDifference:
    """The difference of one main figure that is detected in four studies of five, and the repeats
    that smaller ones need."""

    variant: str
    figure: str | None  # None: an assumed spread
    spread: float  # standard deviation inside a condition as a share of the mean
    runs: int  # number of earlier runs; 0: the spread is assumed
    near: str | None  # how similar these are to the study's
    seen: float | None  # share of the mean; None: too few repeats for a test
    repeats_for: dict[str, int | None]


def count_comparisons(study: Study, runs: Sequence[Run], earlier: EarlierRuns) -> int:
    """Return the number of tests that the report corrects for: one per main figure and
    condition."""
    compared = {(run.variant, run.condition_label): run for run in runs if not run.is_baseline}
    return sum(len(list_main_figures(study, run, earlier)) for run in compared.values())


def list_main_figures(study: Study, run: Run, earlier: EarlierRuns) -> list[str]:
    """Return the figures that earlier runs had, else all that the benchmark may have."""
    cost, _ = earlier.of(run.benchmark, run.parameters, run.condition)
    if cost is not None and cost.figures:
        return list(cost.figures)
    specs = study.benchmarks()[run.benchmark].specs(run.parameters)
    return [name for name, spec in specs.items() if spec.primary]


def significance_level(study: Study, runs: Sequence[Run], earlier: EarlierRuns) -> float:
    """Return the significance level of a test: all comparisons share the error probability, as in
    Holm's first step."""
    confidence = CONFIDENCE if study.stop is None else STOPPING_CONFIDENCE
    return (1 - confidence) / max(1, count_comparisons(study, runs, earlier))


def find_detectable_differences(
    study: Study, runs: Sequence[Run], earlier: EarlierRuns
) -> list[DetectableDifference]:
    """Return the difference for each main figure of each variant; with assumed spreads if none is
    known."""
    level = significance_level(study, runs, earlier)
    first = {run.variant: run for run in sorted(runs, key=lambda run: run.is_baseline)}
    found = []
    for variant, run in first.items():
        cost, basis = earlier.of(run.benchmark, run.parameters, run.condition)
        for figure in () if cost is None else cost.figures:
            spread = cost.spread(figure) if cost is not None else None
            if spread is not None and spread.share:
                found.append(
                    find_detectable_difference(study, variant, figure, spread, basis, level)
                )
    guesses = (Spread(share, 0) for share in GUESSES)
    return found or [
        find_detectable_difference(study, ANY, None, guess, None, level) for guess in guesses
    ]


def find_detectable_difference(
    study: Study, variant: str, figure: str | None, spread: Spread, basis: str | None, level: float
) -> DetectableDifference:
    """Return the difference by the power of the report's test."""
    found = least_detectable_difference(study.repeat, level, study.blocks)
    # A study with one repeat per block gets one block per added repeat.
    blocks = MOST_REPEATS if study.blocks == study.repeat else study.blocks
    repeats = {
        f"{share:.0%}": repeats_to_detect(share / spread.share, level, blocks)
        for share in REQUESTED
    }
    detectable = None if found is None else found * spread.share
    return DetectableDifference(
        variant, figure, spread.share, spread.runs, basis, detectable, repeats
    )
