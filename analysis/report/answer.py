"""Describes the study's result in a few sentences with numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.base.benchmark_traits import is_elapsed_figure
from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.report.node_comparisons import describe_comparisons
from steelyard.analysis.report.phrases import (
    describe_between,
    describe_level,
    describe_no_worse,
    describe_overhead,
    find_limits,
    find_wording,
    format_interval,
    format_mean_and_n,
    is_exact,
    join_phrases,
)
from steelyard.analysis.stats.overhead_verdict import SHOWN, Direction
from steelyard.analysis.summary.node_comparisons import build_node_comparisons
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.shared_node_energy import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.study_data import list_within_factors
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

MAX_MEANS = 3  # in a study without comparisons
MAX_CONDITIONS = 6  # with a sentence each
MAX_NAMES = 4  # of one kind in a sentence
NARROW = 0.1  # limit of an interval's ends up to which the difference is small; above it is noise


def describe_answer(summary: Summary) -> list[str]:
    """Return the results in sentences: one per condition, then comparison counts and energy."""
    found = [
        *describe_comparisons(build_node_comparisons(summary)),
        *describe_costs(summary),
        describe_counts(summary),
        describe_energy(summary),
    ]
    return [text for text in found if text]


def describe_costs(summary: Summary) -> list[str]:
    """Describe what each condition costs in the main figures, the largest difference first."""
    judged = [row for row in summary.compared_rows(primary=True) if row.verdict]
    if not judged:
        return (
            []
            if list_within_factors(summary.data.meta) == [NODE]
            else [describe_uncompared(summary)]
        )
    if all(direction(row) is Direction.UNKNOWN for row in judged):
        return [
            "No main figure can be judged against the baseline: the table of overheads says why."
        ]
    return describe_rows(Namer.of(summary), judged)


def describe_elapsed_times(summary: Summary) -> list[str]:
    """Describe the runs' elapsed_s, which includes what starts and ends around a main figure."""
    rows = [
        row for row in summary.compared_rows() if row.metric.name == "elapsed_s" and row.verdict
    ]
    judged = [row for row in rows if direction(row) is not Direction.UNKNOWN]
    return describe_rows(replace(Namer.of(summary), has_many=False), judged)


def describe_rows(namer: Namer, judged: Sequence[Row]) -> list[str]:
    """Return a paragraph for each condition, with a sentence for each figure."""
    by_condition: dict[str, list[Row]] = {}
    for row in judged:
        by_condition.setdefault(namer.name_condition(row), []).append(row)
    ranked = sorted(by_condition, key=lambda name: rank(by_condition[name]))
    found = [
        " ".join(build_sentences(namer, name, by_condition[name]))
        for name in ranked[:MAX_CONDITIONS]
    ]
    if remaining := len(ranked) - len(found):
        more = f"{counted(remaining, 'more condition')} {'is' if remaining == 1 else 'are'}"
        found.append(f"{more} in the figure and the table.")
    return found


def build_sentences(namer: Namer, condition: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the sentences of a condition; the first names it."""
    lead = f"{condition[:1].upper()}{condition[1:]}, " if condition else ""
    for text in describe_differences(namer, rows):
        yield f"{lead}{text}."
        lead = ""


def direction(row: Row) -> Direction:
    return row.verdict.direction if row.verdict else Direction.UNKNOWN


def is_elapsed(row: Row) -> bool:
    """Return whether a row is a program's elapsed time, which follows the program's figures."""
    return is_elapsed_figure(row.group.variant, row.metric.name)


def rank(rows: Sequence[Row]) -> tuple[bool, float]:
    """Return the sort key of a condition: shown differences first, and among them the largest."""
    sizes = [row.overhead_size for row in rows if direction(row) in SHOWN]
    return not sizes, -max(sizes or [row.overhead_size for row in rows])


@dataclass(frozen=True)
class Namer:
    """Names conditions and their figures in a sentence."""

    bases: dict[tuple[str, str], Group]
    varied: tuple[str, ...]  # factors with several levels
    within: frozenset[str]  # factors whose levels each have their own baseline
    has_many: bool  # whether any variant has several main figures

    @classmethod
    def of(cls, summary: Summary) -> Namer:
        names = Counter(
            (r.group.variant, r.group.label) for r in summary.compared_rows(primary=True)
        )
        factors = summary.data.meta.factors
        return cls(
            {(group.variant, group.label): group for group in summary.groups},
            tuple(name for name, levels in factors.items() if len(levels) > 1),
            frozenset(list_within_factors(summary.data.meta)),
            max(names.values(), default=1) > 1,
        )

    def name_condition(self, row: Row) -> str:
        """Return `on virtual instead of physical nodes at size=400 (with cold caches)`.

        After `at` are the levels of factors that have their own baselines, in brackets what both
        sides have in common.
        """
        group = row.group
        base = self.bases.get((group.variant, group.baseline_label or ""))
        theirs = base.levels if base else {}
        levels = {n: group.levels[n] for n in self.varied if n in group.levels}
        different = [n for n in levels if levels[n] != theirs.get(n)]
        if base is None or not different:
            return f"with {group.label}" if group.label else ""
        is_one = len(different) == 1
        phrases = [
            describe_level(n, levels[n], theirs[n] if is_one and n in theirs else None)
            for n in different
        ]
        own = [f"{n}={levels[n]}" for n in levels if n in self.within and n not in different]
        same = [
            describe_level(n, levels[n]) for n in levels if n not in self.within.union(different)
        ]
        at = f" at {join_phrases(own)}" if own else ""
        return join_phrases(phrases) + at + (f" ({join_phrases(same)})" if same else "")

    def name_figure(self, row: Row) -> str:
        """Return the variant, with the metric's name if a variant has several."""
        name = row.group.variant
        return f"{name} ({row.metric.name})" if self.has_many else name


def describe_differences(namer: Namer, rows: Sequence[Row]) -> Iterator[str]:
    """Describe the differences one by one, then the other kinds of results."""
    ranked = sorted(rows, key=lambda row: (not is_elapsed(row), row.overhead_size), reverse=True)
    by_kind: dict[str, list[Row]] = {}
    for row in ranked:
        by_kind.setdefault(classify_row(row), []).append(row)
    for name, describe in KINDS.items():
        members = by_kind.get(name, [])
        yield from (f"{namer.name_figure(row)} {describe(row)}" for row in members[:MAX_NAMES])
        if remaining := members[MAX_NAMES:]:
            yield f"{len(remaining)} more like {'this is' if len(remaining) == 1 else 'these are'} in the table"
        if name == LITTLE_BEHIND:
            yield from describe_small_differences(namer, by_kind.get("little", []))


def describe_small_differences(namer: Namer, rows: Sequence[Row]) -> Iterator[str]:
    """Describe `a and b differ little: at most 1 % worse or 9 % better`.

    Both ends are reported, because a gain is no cost.
    """
    sided = [row for row in rows if row.metric.better is not None]
    if sided:
        found = [compute_bounds(row) for row in sided]
        worse, better = (format_upper_percent(max(ends)) for ends in zip(*found, strict=True))
        yield f"{have_small_differences(namer, sided)}: at most {worse} % worse or {better} % better"
    others = [row for row in rows if row.metric.better is None]
    if others:
        most = format_upper_percent(max(max(map(abs, find_limits(row))) for row in others))
        yield f"{have_small_differences(namer, others)}: at most {most} % to either side"


def have_small_differences(namer: Namer, rows: Sequence[Row]) -> str:
    names = join_names([namer.name_figure(row) for row in rows])
    return f"{names} {'differs' if len(rows) == 1 else 'differ'} little"


def compute_bounds(row: Row) -> tuple[float, float]:
    """Return how far the interval extends to the worse and to the better side."""
    low, high = find_limits(row)
    return (high, -low) if row.metric.better == "lower" else (-low, high)


def classify_row(row: Row) -> str:
    """Return a key of KINDS, or `little`."""
    found = direction(row)
    if found is Direction.NOT_SHOWN:
        return "little" if max(map(abs, find_limits(row))) <= NARROW else "noisy"
    return "shown" if found in SHOWN else found.name.lower()


def format_upper_percent(share: float) -> str:
    """Format an upper bound in percent, rounded up to two digits: `3`, `0.25`."""
    if share <= 0:
        return "0"
    places = 1 - math.floor(math.log10(100 * share))
    return f"{math.ceil(100 * share * 10**places - 1e-9) / 10**places:g}"


def join_names(names: Sequence[str]) -> str:
    """Join `a, b and c`; of many names the first ones and a count."""
    more = [f"{len(names) - MAX_NAMES} more"] if names[MAX_NAMES:] else []
    return join_phrases([*names[:MAX_NAMES], *more])


def is_uncertain(row: Row) -> str:
    """Describe what the interval shows and the corrected test does not."""
    p = "" if row.p is None else f" (p = {row.p:.2g})"
    return f"perhaps {describe_overhead(row)}, but chance alone could explain it{p}"


def includes_zero(row: Row) -> bool:
    low, high = find_limits(row)
    return low <= 0 <= high


def is_equivalent(row: Row) -> str:
    if is_exact(row) and find_limits(row) == (0, 0):
        return f"has exactly the same {find_wording(row).noun}"
    return f"stays within ± {100 * (row.margin or 0):g} %{format_interval(row)}"


def is_non_inferior(row: Row) -> str:
    return f"{describe_no_worse(row, f'{100 * (row.margin or 0):g} %')}{format_interval(row)}"


def is_noisy(row: Row) -> str:
    if math.isinf(find_limits(row)[0]):
        return "has no interval and cannot be judged"
    if not includes_zero(row):  # among many comparisons some interval misses 0 by chance
        p = "" if row.p is None else f", p = {row.p:.2g}"
        return f"is not shown to differ{format_interval(row)}{p}"
    return f"varies too much to tell: it {describe_between(row)}"


def is_unknown(row: Row) -> str:
    reason = row.verdict.text.removeprefix("cannot be judged: ") if row.verdict else ""
    return f"cannot be judged: {reason}"


KINDS = {
    "shown": describe_overhead,
    "perhaps": is_uncertain,
    "equivalent": is_equivalent,
    "non_inferior": is_non_inferior,
    "noisy": is_noisy,
    "unknown": is_unknown,
}

LITTLE_BEHIND = "non_inferior"  # small differences follow these, in one sentence


def describe_uncompared(summary: Summary) -> str:
    """Describe the means of a study without comparisons, or why there are none."""
    if not summary.data.runs:
        return "The study has no runs: nothing was measured."
    if not any(run.counts for run in summary.data.runs):
        return "No run has given a result that counts: there is nothing to compare."
    rows = [row for row in summary.rows if row.metric.is_primary and row.interval]
    means = "; ".join(describe_mean(row) for row in rows[:MAX_MEANS])
    sentence = "Nothing was compared: only one condition has values"
    return f"{sentence}. {means}." if means else f"{sentence}."


def describe_mean(row: Row) -> str:
    """Format `app: seconds 3.01 ± 0.02 s, n = 20`."""
    where = f"{row.group.variant} under {row.group.label}" if row.group.label else row.group.variant
    return f"{where}: {row.metric.name} {format_mean_and_n(row)}"


def describe_counts(summary: Summary) -> str:
    """Describe how many comparisons had which result, and how many runs gave results."""
    runs = summary.data.runs
    done = sum(run.counts for run in runs)
    rested = f"{done} of {counted(len(runs), 'run')} gave a result."
    directions = Counter(r.verdict.direction for r in summary.compared_rows(True) if r.verdict)
    if not directions:
        return rested
    counts = join_phrases(f"{directions[one]} {one.value}" for one in Direction if directions[one])
    number = counted(sum(directions.values()), "comparison")
    return f"Of {number} of main figures with the baseline: {counts}. {rested}"


def describe_energy(summary: Summary) -> str:
    """Describe the largest energy overhead, or why there is none."""
    rows = [
        row
        for row in summary.compared_rows()
        if row.metric.name == "energy_j" and row.overhead_size >= 0
    ]
    differing = [row for row in rows if direction(row) in SHOWN]
    if differing:
        return f"Energy differs most {describe_location(summary, max(differing, key=lambda row: row.overhead_size))}."
    if known := [row for row in rows if not math.isinf(find_limits(row)[0])]:
        row = max(known, key=lambda row: row.overhead_size)
        return f"Energy is not shown to differ; farthest apart {describe_location(summary, row)}."
    if rows and (found := rows[0].overhead):
        return f"No energy can be compared: {found.reason or 'no interval'}."
    shares = [row for row in summary.compared_rows() if row.metric.name == ENERGY_SHARES[0]]
    if shares:
        row = next((r for r in shares if direction(r) in SHOWN), shares[0])
        verdict = row.verdict.text if row.verdict else ""
        condition = Namer.of(summary).name_condition(row)
        return f"Energy of the jobs alone, above idle: {row.group.variant} {condition}: {verdict}."
    reasons = Counter(r.no_energy_reason for r in summary.data.records if r.no_energy_reason)
    if reasons:
        return f"No energy can be compared: {reasons.most_common(1)[0][0].rstrip('.')}."
    measured = [row for row in summary.rows if row.metric.name == "energy_j" and row.interval]
    if measured:
        return f"Energy, compared with nothing: {describe_mean(measured[0])}."
    return "No energy can be compared: no record has any."


def describe_location(summary: Summary, row: Row) -> str:
    """Format `with 2 clients instead of 1: app uses 12 % more energy (9 to 15 %)`."""
    namer = Namer.of(summary)
    comparison = describe_between(row) if includes_zero(row) else describe_overhead(row)
    return f"{namer.name_condition(row)}: {row.group.variant} {comparison}"
