"""The study's answer in a few sentences with numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.findings.finding import counted
from steelyard.analysis.report.terminal_text import mean_and_n
from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.overhead import (
    AS_TIMES,
    EXACT,
    NO_DURATION,
    SHOWN,
    Direction,
    Evidence,
    Side,
    amount,
    ends,
    in_times,
    percent,
)
from steelyard.analysis.summary.energy_metrics import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.summary import Group, Row, Summary

MAX_MEANS = 3  # of a study without comparisons
MAX_CONDITIONS = 6  # that have a sentence each
MAX_NAMES = 4  # of one kind in a sentence
NARROW = 0.1  # ends of an interval up to which it tells that there is little: above, it is noise


def answer(summary: Summary) -> list[str]:
    """What the study found: a sentence a condition, how many comparisons, energy."""
    found = [*costs(summary), tally(summary), energy(summary)]
    return [text for text in found if text]


def costs(summary: Summary) -> list[str]:
    """What each condition costs in the benchmarks' main figures, the largest difference first."""
    judged = [row for row in summary.compared(primary=True) if row.verdict]
    if not judged:
        return [uncompared(summary)]
    if all(direction(row) is Direction.UNKNOWN for row in judged):
        return [
            "No main figure can be judged against the baseline: the table of overheads says why."
        ]
    return describe_rows(Namer.of(summary), judged)


def whole_runs(summary: Summary) -> list[str]:
    """The same of the runs' elapsed_s: what starts and ends around a main figure is in it."""
    rows = [row for row in summary.compared() if row.metric.name == "elapsed_s" and row.verdict]
    judged = [row for row in rows if direction(row) is not Direction.UNKNOWN]
    return describe_rows(replace(Namer.of(summary), has_many=False), judged)


def describe_rows(namer: Namer, judged: Sequence[Row]) -> list[str]:
    """A sentence a condition."""
    by_name: dict[str, list[Row]] = {}
    for row in judged:
        by_name.setdefault(namer.condition(row), []).append(row)
    ranked = sorted(by_name, key=lambda name: rank(by_name[name]))
    said = [f"{name}: {'; '.join(parts(namer, by_name[name]))}." for name in ranked]
    if len(said) > MAX_CONDITIONS:
        said[MAX_CONDITIONS:] = [
            f"{len(said) - MAX_CONDITIONS} more conditions are in the figure and the table."
        ]
    return said


def direction(row: Row) -> Direction:
    return row.verdict.direction if row.verdict else Direction.UNKNOWN


def size(row: Row) -> float:
    return abs(row.overhead.value) if row.overhead and row.overhead.value is not None else -1.0


def rank(rows: Sequence[Row]) -> tuple[bool, float]:
    """Conditions with a difference first, of these that with the largest."""
    shown = [size(row) for row in rows if direction(row) in SHOWN]
    return not shown, -max(shown or [size(row) for row in rows])


@dataclass(frozen=True)
class Namer:
    """What conditions, and the figures in them, are called in a sentence."""

    bases: dict[tuple[str, str], Group]
    varied: tuple[str, ...]  # factors with several levels
    has_many: bool  # any variant has several main figures

    @classmethod
    def of(cls, summary: Summary) -> Namer:
        names = Counter((r.group.variant, r.group.label) for r in summary.compared(primary=True))
        factors = summary.data.meta.factors
        return cls(
            {(group.variant, group.label): group for group in summary.groups},
            tuple(name for name, levels in factors.items() if len(levels) > 1),
            max(names.values(), default=1) > 1,
        )

    def condition(self, row: Row) -> str:
        """`node_type=virtual (cache=cold)`: what is unlike the baseline, in brackets the rest."""
        group = row.group
        base = self.bases.get((group.variant, group.baseline_label or ""))
        theirs = base.condition if base else {}
        unlike = [n for n in self.varied if group.condition.get(n) != theirs.get(n)]
        alike = [n for n in self.varied if n not in unlike]
        words = ", ".join(f"{name}={group.condition.get(name)}" for name in unlike)
        rest = ", ".join(f"{name}={group.condition.get(name)}" for name in alike)
        if not words or base is None:
            return group.label or "all runs"
        return f"{words} ({rest})" if rest else words

    def figure(self, row: Row) -> str:
        """The variant, with the metric's name where that is needed."""
        return f"{row.group.variant} {row.metric.name}" if self.has_many else row.group.variant


def parts(namer: Namer, rows: Sequence[Row]) -> Iterator[str]:
    """Differences one by one, then what is within the margin, near nothing, or cannot be told."""
    ranked = sorted(rows, key=size, reverse=True)
    by_kind: dict[str, list[Row]] = {}
    for row in ranked:
        by_kind.setdefault(kind(row), []).append(row)
    for name, words in KINDS.items():
        members = by_kind.get(name, [])
        if members:
            texts = [words(namer.figure(row), row) for row in members[:MAX_NAMES]]
            more = f"; and {len(members) - MAX_NAMES} more alike" if members[MAX_NAMES:] else ""
            yield "; ".join(texts) + more
        if name == LITTLE_BEHIND:
            yield from little(namer, by_kind.get("little", []))


def little(namer: Namer, rows: Sequence[Row]) -> Iterator[str]:
    """`at most 1 % worse or 9 % better for a and b`: both ends, for a gain is no cost."""
    sided = [row for row in rows if row.metric.better is not None]
    if sided:
        found = [worse_and_better(row) for row in sided]
        worse, better = (upper(max(ends)) for ends in zip(*found, strict=True))
        names = listed([namer.figure(row) for row in sided])
        yield f"at most {worse} % worse or {better} % better for {names}"
    others = [row for row in rows if row.metric.better is None]
    if others:
        most = upper(max(max(map(abs, limits(row))) for row in others))
        yield f"at most {most} % apart for {listed([namer.figure(row) for row in others])}"


def worse_and_better(row: Row) -> tuple[float, float]:
    """How far its interval reaches to either side."""
    low, high = limits(row)
    return (high, -low) if row.metric.better == "lower" else (-low, high)


def kind(row: Row) -> str:
    """Which of KINDS, or `little`."""
    found = direction(row)
    if found is Direction.NOT_SHOWN:
        return "little" if max(map(abs, limits(row))) <= NARROW else "noisy"
    return "shown" if found in SHOWN else found.name.lower()


def limits(row: Row) -> tuple[float, float]:
    """Of its overhead, which has an interval; of bounds, which tell none: no limit."""
    found = row.overhead
    if found is None or found.low is None or found.high is None:
        return -math.inf, math.inf
    return found.low, found.high


def upper(share: float) -> str:
    """Percent rounded up to two digits: `3`, `0.25`: what is said to be nowhere exceeded."""
    if share <= 0:
        return "0"
    places = 1 - math.floor(math.log10(100 * share))
    return f"{math.ceil(100 * share * 10**places - 1e-9) / 10**places:g}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`, the first of many."""
    shown = [*names[:MAX_NAMES], *([f"{len(names) - MAX_NAMES} more"] if names[MAX_NAMES:] else [])]
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def difference(row: Row) -> str:
    """`12 % (9 … 15) more time`, `20 times as long (9 … 31)`."""
    found = row.overhead
    assert found is not None and found.value is not None
    low, high = limits(row)
    if found.value > AS_TIMES:
        return in_times(found.value, low, high, as_much(row)) + side_word(row, more=True)
    more = found.value > 0
    return f"{amount(found.value, low, high)} {comparative(row, more)} {noun(row)}{side_word(row, more)}"


def is_time(row: Row) -> bool:
    metric = row.metric
    return metric.unit == "s" and metric.better == "lower" and metric.name not in NO_DURATION


def comparative(row: Row, more: bool) -> str:
    """`more` of time and energy, `higher` of everything else."""
    if is_time(row) or row.metric.name == "energy_j":
        return "more" if more else "less"
    return "higher" if more else "lower"


def noun(row: Row) -> str:
    """`time`, `energy`, `gflops`."""
    if is_time(row):
        return "time"
    return "energy" if row.metric.name == "energy_j" else row.metric.name


def as_much(row: Row) -> str:
    """Behind `20 times`."""
    return "as long" if is_time(row) else f"the {noun(row)}"


def side_word(row: Row, more: bool) -> str:
    """` (worse)` of what is neither time nor energy, whose better side everybody knows."""
    better = row.metric.better
    if better is None or is_time(row) or row.metric.name == "energy_j":
        return ""
    return " (worse)" if more == (better == "lower") else " (better)"


def shown(name: str, row: Row) -> str:
    return f"{'exactly ' if is_exact(row) else ''}{difference(row)} for {name}"


def is_exact(row: Row) -> bool:
    """Of a count that did not vary on either side."""
    return row.overhead is not None and row.overhead.method == EXACT


def perhaps(name: str, row: Row) -> str:
    return f"perhaps {difference(row)} for {name}, but these runs do not rule out chance"


def equivalent(name: str, row: Row) -> str:
    if is_exact(row) and limits(row) == (0, 0):
        return f"exactly equal {noun(row)} for {name}"
    return f"within ± {100 * (row.margin or 0):g} % for {name}{ends(*limits(row))}"


def non_inferior(name: str, row: Row) -> str:
    metric = row.metric
    side = Side.of(metric.unit, metric.better, metric.name)
    assert side is not None
    return f"{Evidence(margin=row.margin).no_worse(side)} for {name}{ends(*limits(row))}"


def noisy(name: str, row: Row) -> str:
    """`…: 36 % less to 5 % more time`, `…: 49 % lower (worse) to 4.1 times the mops`."""
    low, high = limits(row)
    if math.isinf(low):
        return f"cannot tell for {name}"
    less = f"{percent(abs(low), low, high)} % {comparative(row, False)}{side_word(row, False)}"
    more = f"{percent(high, low, high)} % {comparative(row, True)} {noun(row)}"
    if high > AS_TIMES:
        more = f"{number_format.times(1 + high, 1 + low, 1 + high)[0]} times {as_much(row)}"
    return f"too noisy to tell for {name}: {less} to {more}"


def unknown(name: str, row: Row) -> str:
    reason = row.verdict.text.removeprefix("cannot be judged: ") if row.verdict else ""
    return f"cannot be judged for {name}: {reason}"


KINDS = {
    "shown": shown,
    "perhaps": perhaps,
    "equivalent": equivalent,
    "non_inferior": non_inferior,
    "noisy": noisy,
    "unknown": unknown,
}

LITTLE_BEHIND = "non_inferior"  # what is near nothing has one sentence, behind these


def sentence(row: Row) -> str:
    """`filesystem test=x under clients=2: seconds slower by …`."""
    words = row.verdict.text if row.verdict else ""
    return f"{row.group.variant} under {row.group.label}: {row.metric.name} {words}"


def uncompared(summary: Summary) -> str:
    """The means of a study without comparisons, or why there are none."""
    if not summary.data.runs:
        return "The study has no runs: nothing was measured."
    if not any(run.counts for run in summary.data.runs):
        return "No run has given a result that counts: there is nothing to compare."
    rows = [row for row in summary.rows if row.metric.is_primary and row.interval]
    told = "; ".join(mean_sentence(row) for row in rows[:MAX_MEANS])
    words = "Nothing was compared: no condition beside the baseline has a value"
    return f"{words}. {told}." if told else f"{words}."


def mean_sentence(row: Row) -> str:
    """`app: seconds 3.01 ± 0.02 s, n = 20`."""
    where = f"{row.group.variant} under {row.group.label}" if row.group.label else row.group.variant
    return f"{where}: {row.metric.name} {mean_and_n(row)}"


def tally(summary: Summary) -> str:
    """How many comparisons came out how, and on how many runs they rest."""
    runs = summary.data.runs
    done = sum(run.counts for run in runs)
    rested = f"{done} of {counted(len(runs), 'run')} gave a result"
    directions = Counter(r.verdict.direction for r in summary.compared(True) if r.verdict)
    if not directions:
        return f"{rested}."
    words = ", ".join(f"{directions[one]} {one.value}" for one in Direction if directions[one])
    number = counted(sum(directions.values()), "comparison")
    return f"Of {number} of a main figure with its baseline: {words}; {rested}."


def energy(summary: Summary) -> str:
    """The largest energy overhead, or why there is none."""
    rows = [row for row in summary.compared() if row.metric.name == "energy_j" and size(row) >= 0]
    told = [row for row in rows if direction(row) in SHOWN]
    if told:
        return f"Energy, where it differs most: {sentence(max(told, key=size))}."
    if rows:
        return f"Energy was not shown to differ; farthest apart: {sentence(max(rows, key=size))}."
    shares = [row for row in summary.compared() if row.metric.name == ENERGY_SHARES[0]]
    if shares:
        row = next((r for r in shares if direction(r) in SHOWN), shares[0])
        where = f"{row.group.variant} under {row.group.label}"
        words = row.verdict.text if row.verdict else ""
        return f"Energy, the jobs' own above idle: {where}: {words}."
    reasons = Counter(r.no_energy_reason for r in summary.data.records if r.no_energy_reason)
    if reasons:
        return f"No energy can be compared: {reasons.most_common(1)[0][0].rstrip('.')}."
    measured = [row for row in summary.rows if row.metric.name == "energy_j" and row.interval]
    if measured:
        return f"Energy, compared with nothing: {mean_sentence(measured[0])}."
    return "No energy can be compared: no record has any."
