"""Whether a paper's claims hold for a study of one's own: by 95 % intervals, claim by claim.

A claim *holds* when every interval in question lies wholly on the claimed side (within the claimed
size); it *does not* when one lies wholly beyond; else, and where the study has no such conditions
or values, nobody *can tell*, and the reason is given. Intervals are not corrected for their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from steelyard.analysis.published.facts import (
    LAUNCHER,
    Known,
    fact_words,
    fits,
    other_sizes,
    telling,
)
from steelyard.analysis.published.paper import Claim, Facts
from steelyard.analysis.published.sides import Pair, across, pairs_of, rows_on, twins
from steelyard.analysis.stats.readable import mean_words, text
from steelyard.analysis.summary.latency_share import split_rows
from steelyard.analysis.summary.slopes import FactorLine, factor_lines
from steelyard.analysis.summary.summary import Row, judge

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot tell"
OUTCOMES = (HOLDS, FAILS, UNKNOWN)
LEVEL_LETTERS = 22
MAX_WORDS = 4  # comparisons told in one line


@dataclass(frozen=True, slots=True)
class Seen:
    """One interval that speaks for a claim, against it, or for nothing."""

    outcome: str
    words: str  # with its interval and numbers of runs
    condition: str = ""
    against: str = ""  # the condition it is compared with
    where: str = ""  # which benchmark, under what, in few words
    value: float | None = None
    low: float | None = None
    high: float | None = None
    remark: str = ""  # what is not as in the paper
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A claim's verdict with all that it rests on."""

    claim: Claim
    outcome: str
    reason: str  # what is missing, or what was seen
    seen: tuple[Seen, ...]

    @property
    def size(self) -> str:
        """How our intervals lie beside the printed size; empty where none is printed, or nothing seen."""
        known = [s for s in self.seen if s.low is not None and s.high is not None]
        if self.claim.printed_share is None or self.claim.kind != "overhead" or not known:
            return ""
        return " and ".join(dict.fromkeys(beside(s, self.claim.printed_share) for s in known))


def beside(seen: Seen, printed: float) -> str:
    """`around the printed size`, `above it`, `below it`."""
    assert seen.low is not None and seen.high is not None
    if seen.low > printed:
        return "above the printed size"
    return "below the printed size" if seen.high < printed else "around the printed size"


def judge_claims(known: Known, claims: Sequence[Claim]) -> list[Judgement]:
    """Each of a paper's."""
    return [judge_claim(known, claim) for claim in claims]


def judge_claim(known: Known, claim: Claim) -> Judgement:
    """Every part of `each` has to be there, and to hold."""
    seen: list[Seen] = []
    missing: list[Claim] = []
    for part in parts_of(claim):
        found = list(KINDS[part.kind](known, part))
        seen += found
        if not found:
            missing.append(part)
    outcomes = {one.outcome for one in seen}
    if FAILS in outcomes:
        return Judgement(claim, FAILS, told([s for s in seen if s.outcome == FAILS]), tuple(seen))
    if missing:
        more = f"; what is there: {told(seen)}" if seen else ""
        reason = what_is_missing(known, missing) + more
        return Judgement(claim, UNKNOWN, reason, tuple(seen))
    if UNKNOWN in outcomes:
        unsure = [s for s in seen if s.outcome == UNKNOWN]
        over = "the interval reaches over: " if any(s.low is not None for s in unsure) else ""
        return Judgement(claim, UNKNOWN, over + told(unsure), tuple(seen))
    return Judgement(claim, HOLDS, told(seen), tuple(seen))


def told(seen: list[Seen]) -> str:
    """The first of them in words."""
    words = [f"{s.words}{f' ({s.remark})' if s.remark else ''}" for s in seen[:MAX_WORDS]]
    if len(seen) > MAX_WORDS:
        words.append(f"and {len(seen) - MAX_WORDS} more")
    return "; ".join(words)


def parts_of(claim: Claim) -> Iterator[Claim]:
    """One for each value that `each` names."""
    for values in product(*claim.each.values()):
        here = dict(zip(claim.each, values, strict=True))
        yield replace(claim, where=dict(claim.where) | here, each={})


def outcome_of(low: float | None, high: float | None, claim: Claim) -> str:
    """Where an interval lies beside the claimed range."""
    if low is None or high is None:
        return UNKNOWN
    least = -math.inf if claim.low is None else claim.low
    most = math.inf if claim.high is None else claim.high
    if least < low and high < most:
        return HOLDS
    return FAILS if high <= least or low >= most else UNKNOWN


# --- the kinds of claims -------------------------------------------------------------------------


def overheads(known: Known, claim: Claim) -> Iterator[Seen]:
    """Conditions of `level` against those of `against`, all else equal."""
    for pair in pairs_of(known, claim, {}):
        yield overhead_of(known, claim, pair)


def overhead_of(known: Known, claim: Claim, pair: Pair) -> Seen:
    """One of them."""
    row, base = pair
    found = judge(row, base)
    remark = ", ".join((*other_sizes(known.of_row(row), claim.size), *across(known, row, base)))
    result = found.overhead
    name = short(known, row)
    words = f"{name}: {row.metric.name} {found.verdict.text}"
    labels = row.group.label, base.group.label
    seen = Seen(UNKNOWN, words, *labels, remark=remark, variant=row.group.variant)
    if result is None or result.low is None or result.high is None:
        return seen
    outcome = outcome_of(result.low, result.high, claim)
    return replace(
        seen,
        outcome=outcome,
        where=name,
        value=result.value,
        low=result.low,
        high=result.high,
    )


def short(known: Known, row: Row) -> str:
    """`npb kernel=cg (podman containers=8)`: the first words, and levels cut to what fits."""
    variant = " ".join(row.group.variant.split()[:2])
    levels = (level_words(name, str(level)) for name, level in row.group.condition.items())
    return known.in_words(known.home(row), f"{variant} ({', '.join(levels)})")


def level_words(name: str, level: str) -> str:
    """What tells it from others: of a launcher all but the image."""
    if name == LAUNCHER:
        head, *options = level.split(",")
        return " ".join([head.split(":")[0], *(one for one in options if "ranks=" not in one)])
    return level if len(level) <= LEVEL_LETTERS else f"{level[: LEVEL_LETTERS - 1]}…"


def order(known: Known, claim: Claim) -> Iterator[Seen]:
    """Overheads of `more` against those of `less`, all else equal: one interval above the other."""
    larger, smaller = (pairs_of(known, claim, facts) for facts in (claim.more, claim.less))
    for pair in larger:
        for twin in twins(known, pair, smaller, {*claim.more, *claim.less}):
            yield order_of(known, claim, pair, twin)


def order_of(known: Known, claim: Claim, pair: Pair, twin: Pair) -> Seen:
    """Two overheads beside each other."""
    one, other = (overhead_of(known, claim, each) for each in (pair, twin))
    words = f"{one.words} beside {other.words}"
    here, there = (f"{row.group.variant} {row.group.label}" for row in (pair[0], twin[0]))
    seen = Seen(UNKNOWN, words, here, there, remark=one.remark or other.remark, variant=one.variant)
    if None in (one.low, one.high, other.low, other.high):
        return seen
    return replace(seen, outcome=apart(one, other), value=one.value, low=one.low, high=one.high)


def apart(one: Seen, other: Seen) -> str:
    """Whether the first interval lies wholly above the second, or below."""
    assert one.low is not None and one.high is not None
    assert other.low is not None and other.high is not None
    if one.low > other.high:
        return HOLDS
    return FAILS if one.high < other.low else UNKNOWN


def means(known: Known, claim: Claim) -> Iterator[Seen]:
    """The mean itself, in the metric's own unit; the paper's own sizes alone, where there are any."""
    wanted = {**claim.where, **claim.level}
    rows = [row for metric in claim.metric for row in known.rows.get(metric, [])]
    rows = [row for row in rows if row.interval and fits(known.of_row(row), wanted)]
    exact = [row for row in rows if fits(known.of_row(row), claim.size)]
    for row in exact or rows:
        assert row.interval is not None
        told = mean_words(row.interval, row.metric.unit)
        words = f"{short(known, row)}: {row.metric.name} {told}, n = {row.n}"
        ends = row.interval.low, row.interval.high
        remark = ", ".join(other_sizes(known.of_row(row), claim.size))
        outcome = outcome_of(*ends, claim)
        group, mean = row.group, row.interval.mean
        yield Seen(outcome, words, group.label, "", "", mean, *ends, remark, group.variant)


def slopes(known: Known, claim: Claim) -> Iterator[Seen]:
    """More per unit of the factor `level` names: the interval of the slope."""
    (factor,) = claim.level
    for summary in known.summaries:
        for found in factor_lines(summary):
            is_factor = f"of {factor}" in found.factor_unit or found.factor == factor
            rows = rows_on(known, summary, found)
            if not (is_factor and found.metric in claim.metric and rows):
                continue
            if all(fits(known.of_row(row), claim.where) for row in rows):
                yield slope_of(found, claim)


def slope_of(found: FactorLine, claim: Claim) -> Seen:
    """One of them."""
    slope = found.line.slope
    low, high, value = (
        text(v, 1, 3 if abs(v) < 10 else 1) for v in (slope.low, slope.high, slope.value)
    )
    words = (
        f"{found.variant} {found.others}".strip()
        + f": {value} ({low} … {high}) {found.unit} of {found.metric} per {found.factor_unit}, "
        f"n = {slope.n}"
    )
    outcome = outcome_of(slope.low, slope.high, claim)
    numbers = slope.value, slope.low, slope.high
    return Seen(outcome, words, found.others, "", "", *numbers, variant=found.variant)


def shares(known: Known, claim: Claim) -> Iterator[Seen]:
    """Throughput's share in a difference, by the model of docs/report.md."""
    for found in (row for summary in known.summaries for row in split_rows(summary)):
        share = found.split.throughput_share if found.split else None
        if not found.holds or share is None or not fits(known.of_row(found.row), claim.where):
            continue
        label, variant = found.row.group.label, found.row.group.variant
        words = f"{label}: throughput's share {100 * share.value:.0f} %"
        if share.low is not None and share.high is not None:
            words += f" ({100 * share.low:.0f} … {100 * share.high:.0f})"
        outcome = outcome_of(share.low, share.high, claim)
        base = found.base.group.label
        numbers = share.value, share.low, share.high
        yield Seen(outcome, words, label, base, "", *numbers, variant=variant)


def nothing(known: Known, claim: Claim) -> Iterator[Seen]:
    """A sentence that no figure of a study speaks of."""
    del known, claim
    return iter(())


KINDS: Mapping[str, Callable[[Known, Claim], Iterator[Seen]]] = {
    "overhead": overheads,
    "order": order,
    "mean": means,
    "slope": slopes,
    "throughput_share": shares,
    "words": nothing,
}


# --- what is missing -----------------------------------------------------------------------------


def what_is_missing(known: Known, parts: Sequence[Claim]) -> str:
    """Which conditions or values a study lacks, and where they are asked for."""
    claim = parts[0]
    asked = f"; {asks(claim.studies, 'it')}"
    if claim.kind == "words":
        return claim.reading
    if claim.kind == "slope":
        return f"no line over {', '.join(claim.level)} with three levels or more{asked}"
    sides = [side for part in parts for side in sides_of(part)]
    if absent := absent_facts(known, sides):
        return f"no runs with {fact_words(absent)}{asked}"
    for side in sides:
        if not any(fits(facts, side) for facts in known.facts.values()):
            return f"no runs that have all of {fact_words(telling(known, side))}{asked}"
    if not any(known.rows.get(name) for name in claim.metric):
        return f"no values of {' or '.join(claim.metric) or 'bulk transfers'}{asked}"
    if claim.kind == "throughput_share":
        return f"no difference that the model of latency and throughput fits{asked}"
    return f"no two conditions differ in {fact_words(claim.level)} alone{asked}"


def asks(studies: Sequence[str], what: str) -> str:
    """`ruiz2015-q1.toml asks it`, `a.toml and b.toml together ask it`."""
    files = [f"{name}.toml" for name in studies]
    if len(files) == 1:
        return f"{files[0]} asks {what}"
    return f"{', '.join(files[:-1])} and {files[-1]} together ask {what}"


def absent_facts(known: Known, sides: Sequence[Facts]) -> dict[str, list[Any]]:
    """What no run at all has."""
    absent: dict[str, list[Any]] = {}
    for side in sides:
        for name, value in side.items():
            is_new = value not in absent.get(name, ())
            if is_new and not any(fits(facts, {name: value}) for facts in known.facts.values()):
                absent.setdefault(name, []).append(value)
    return absent


def sides_of(claim: Claim) -> list[Facts]:
    """What runs there have to be."""
    sides: list[Facts] = [{**claim.where, **claim.level}, {**claim.where, **claim.against}]
    if claim.kind == "order":
        sides += [{**claim.where, **claim.more}, {**claim.where, **claim.less}]
    return sides
