"""Comparisons between the commands of a `steelyard run`, and notes on single runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.basics import CONFIDENCE, find_outliers, median
from steelyard.analysis.stats.grouped_runs import MIN_BLOCKS, overhead_by_block
from steelyard.analysis.stats.overhead import Overhead, compute_overhead
from steelyard.wrappers.run.measurement import Measurement

METRIC = "elapsed"


@dataclass(frozen=True)
class Comparison:
    """How many times as long a command takes as the baseline.

    The limits of all comparisons hold simultaneously in 95 % of cases. If they are None, `reason`
    says why."""

    place: int
    baseline: int
    ratio: float | None
    low: float | None
    high: float | None
    design: str  # description of the independent units
    reason: str | None

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def list_elapsed(runs: Sequence[Measurement]) -> list[float]:
    """Return the elapsed seconds of the valid runs."""
    return list(elapsed_by_round(runs).values())


def elapsed_by_round(runs: Sequence[Measurement]) -> dict[int, float]:
    """Return the elapsed seconds by the number of the run, which is the number of the round."""
    return {
        run.number: value
        for run in runs
        if run.counts and (value := run.values[METRIC]) is not None
    }


def find_fastest(runs: Sequence[Sequence[Measurement]]) -> int | None:
    """Return the index of the command with the smallest mean; None with fewer than two known
    means."""
    means = {index: sum(v) / len(v) for index, one in enumerate(runs) if (v := list_elapsed(one))}
    return min(means, key=means.__getitem__) if len(means) > 1 else None


def compare_commands(
    runs: Sequence[Sequence[Measurement]],
    baseline: int,
    in_rounds: bool,
    confidence: float = CONFIDENCE,
) -> list[Comparison]:
    """Compare every other command with the baseline and return the results, the smallest ratio
    first.

    The fastest command is selected by the same runs, so the intervals are corrected for all pairs
    of commands: they hold simultaneously with this confidence. Dunn (1961), "Multiple Comparisons
    among Means", JASA 56(293)."""
    known = [index for index in range(len(runs)) if list_elapsed(runs[index])]
    each = 1 - (1 - confidence) / max(math.comb(len(known), 2), 1)
    found = [
        compare_command(runs, index, baseline, in_rounds, each)
        for index in known
        if index != baseline
    ]
    return sorted(found, key=lambda one: one.ratio or 0.0)


def compare_command(
    runs: Sequence[Sequence[Measurement]],
    index: int,
    baseline: int,
    in_rounds: bool,
    confidence: float,
) -> Comparison:
    """Compare one command with the baseline. Rounds are pairs if enough have both runs: a
    disturbance of a round affects both."""
    ours, base = elapsed_by_round(runs[index]), elapsed_by_round(runs[baseline])
    pairs = [([value], [base[number]]) for number, value in ours.items() if number in base]
    found: Overhead
    if in_rounds and len(pairs) >= MIN_BLOCKS:
        found = overhead_by_block(pairs, confidence)
        rounds = len(ours.keys() | base.keys())
        of_all = "" if rounds == len(pairs) else f"of {rounds} "
        design = f"paired in {len(pairs)} {of_all}rounds"
    else:
        found = compute_overhead(list(ours.values()), list(base.values()), confidence)
        design = f"{found.n_condition} and {found.n_baseline} runs"
    ratio, low, high = (
        None if value is None else max(1 + value, 0.0)
        for value in (found.value, found.low, found.high)
    )
    return Comparison(index, baseline, ratio, low, high, design, found.reason)


def list_notes(runs: Sequence[Measurement], warmed_up: bool) -> list[str]:
    """Return notes on a slow first run and on outliers."""
    counted = [run for run in runs if run.counts and run.values[METRIC] is not None]
    values = list_elapsed(runs)
    if not values:
        return []
    apart = find_outliers(values).indices
    middle = median(values)
    found = []
    if 0 in apart and values[0] > middle and counted[0].number == 1:
        found.append(note_slow_first(values[0], middle, warmed_up))
        apart = apart[1:]
    if apart:
        found.append(note_outliers([(counted[i].number, values[i]) for i in apart], len(values)))
    return found


def note_memory_sources(runs: Sequence[Measurement]) -> list[str]:
    """Return a note on how memory was counted; the methods differ by a factor of two to four."""
    found = sorted(
        {run.memory_source for run in runs if run.memory_source and run.values["memory"]}
    )
    return [f"memory: {' or '.join(found)}"] if found else []


def note_unseen_usage(runs: Sequence[Measurement]) -> list[str]:
    """Return notes on CPU time and bytes that samples and wait4 alone may miss."""
    reasons = dict.fromkeys(run.unseen for run in runs if run.unseen and run.values["cpu"])
    return [f"cpu and bytes: {reason} (as root the kernel counts them)" for reason in reasons]


def note_slow_first(value: float, middle: float, warmed_up: bool) -> str:
    """Return a note on a slow first run, which found empty caches."""
    advice = "was that too little warm-up?" if warmed_up else "--warmup leaves it out"
    return f"the first run was slow ({format_seconds(value)}, the median {format_seconds(middle)}): {advice}"


def note_outliers(found: Sequence[tuple[int, float]], n: int) -> str:
    """Return a note on the outliers, which remain in the figures."""
    few = ", ".join(f"run {number}: {format_seconds(value)}" for number, value in found[:3])
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    verb = "stands" if len(found) == 1 else "stand"
    return f"{len(found)} of {n} runs {verb} apart ({few}{more}): was the machine busy?"


def format_seconds(seconds: float) -> str:
    """Format a time with three digits and an SI prefix."""
    factor, name = number_format.choose_prefix(seconds, "s")
    return f"{seconds / factor:.3g} {name}"
