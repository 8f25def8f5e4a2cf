"""Judges whether a paper's claims hold for a study, by 95 % intervals, claim by claim.

A claim *holds* if every interval in question is completely on the claimed side (within the claimed
size); it *does not hold* if one is completely beyond. Otherwise, and if the study has no such
conditions or values, the verdict is *cannot tell*, with the reason. Intervals are not corrected for
their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from steelyard.analysis.papers.claim_files import Claim
from steelyard.analysis.papers.conditions import (
    LAUNCHER,
    Pair,
    Studies,
    describe_missing_runs,
    describe_other_sizes,
    describe_study_differences,
    find_pairs,
    find_twins,
    format_facts,
)
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import judge

HOLDS, FAILS, UNKNOWN = "holds", "does not hold", "cannot tell"
OUTCOMES = (HOLDS, FAILS, UNKNOWN)
LEVEL_LETTERS = 22
MAX_WORDS = 4  # comparisons described in one line


@dataclass(frozen=True, slots=True)
class Evidence:
    """One interval that supports a claim, contradicts it, or leaves it open."""

    outcome: str
    words: str  # with the interval and the numbers of runs
    condition: str
    against: str = ""  # the condition it is compared with
    where: str = ""  # benchmark and levels in a few words
    value: float | None = None
    low: float | None = None
    high: float | None = None
    remark: str = ""  # differences from the paper
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim's outcome with its evidence."""

    claim: Claim
    outcome: str
    reason: str  # what is missing, or the evidence in words
    evidence: Sequence[Evidence]

    @property
    def size(self) -> str:
        """The position of the intervals relative to the printed size; empty without either."""
        printed = self.claim.printed_share
        if printed is None or self.claim.kind != "overhead":
            return ""
        places = (
            "above the printed size"
            if one.low > printed
            else "below the printed size"
            if one.high < printed
            else "around the printed size"
            for one in self.evidence
            if one.low is not None and one.high is not None
        )
        return " and ".join(dict.fromkeys(places))


class Kind(NamedTuple):
    """The method to judge a kind of claims; `missing` is the reason if there is no evidence."""

    evidence: Callable[[Studies, Claim], Iterator[Evidence]]
    missing: str = ""  # empty: the missing conditions and values of the claim are named


def judge_claim(studies: Studies, claim: Claim, kinds: Mapping[str, Kind]) -> Verdict:
    """Judge a claim; each value in claim.each needs evidence.

    `kinds` are the paper's own, in addition to KINDS.
    """
    if claim.kind == WORDS:
        return Verdict(claim, UNKNOWN, claim.reading, ())
    kind = {**KINDS, **kinds}[claim.kind]
    evidence: list[Evidence] = []
    missing: list[Claim] = []
    for subclaim in split_claim(claim):
        found = list(kind.evidence(studies, subclaim))
        evidence += found
        if not found:
            missing.append(subclaim)
    outcome, reason = UNKNOWN, ""
    if failing := [one for one in evidence if one.outcome == FAILS]:
        outcome, reason = FAILS, describe_evidence(failing)
    elif missing:
        there = f"; what is there: {describe_evidence(evidence)}" if evidence else ""
        what = kind.missing or describe_missing(studies, missing)
        reason = f"{what}; {describe_measuring_study(claim.studies)}{there}"
    elif unsure := [one for one in evidence if one.outcome == UNKNOWN]:
        over = "the interval reaches over: " if any(s.low is not None for s in unsure) else ""
        reason = over + describe_evidence(unsure)
    else:
        outcome, reason = HOLDS, describe_evidence(evidence)
    return Verdict(claim, outcome, reason, evidence)


def split_claim(claim: Claim) -> Iterator[Claim]:
    """Yield a claim for each combination of the values in `each`."""
    for values in product(*claim.each.values()):
        levels = dict(zip(claim.each, values, strict=True))
        yield replace(claim, where=dict(claim.where) | levels, each={})


def describe_evidence(evidence: Sequence[Evidence]) -> str:
    """Describe the first MAX_WORDS intervals."""
    texts = [f"{s.words}{f' ({s.remark})' if s.remark else ''}" for s in evidence[:MAX_WORDS]]
    if len(evidence) > MAX_WORDS:
        texts.append(f"and {len(evidence) - MAX_WORDS} more")
    return "; ".join(texts)


def decide_outcome(low: float | None, high: float | None, claim: Claim) -> str:
    """Compare an interval with the claimed range."""
    if low is None or high is None:
        return UNKNOWN
    least = -math.inf if claim.low is None else claim.low
    most = math.inf if claim.high is None else claim.high
    if least < low and high < most:
        return HOLDS
    return FAILS if high <= least or low >= most else UNKNOWN


def describe_missing(studies: Studies, parts: Sequence[Claim]) -> str:
    """Describe which conditions or values of these parts of a claim no run has."""
    claim, sides = parts[0], []
    for subclaim in parts:
        sides += [{**subclaim.where, **subclaim.level}, {**subclaim.where, **subclaim.against}]
        if subclaim.kind == ORDER:
            sides += [{**subclaim.where, **subclaim.more}, {**subclaim.where, **subclaim.less}]
    if missing := describe_missing_runs(studies, sides):
        return missing
    if not any(studies.rows.get(name) for name in claim.metrics):
        return f"no values of {' or '.join(claim.metrics) or 'bulk transfers'}"
    return f"no two conditions differ in {format_facts(claim.level)} alone"


def describe_measuring_study(studies: Sequence[str]) -> str:
    """Return `ruiz2015-q1.toml asks it`, `a.toml and b.toml together ask it`."""
    files = [f"{name}.toml" for name in studies]
    if len(files) == 1:
        return f"{files[0]} asks it"
    return f"{', '.join(files[:-1])} and {files[-1]} together ask it"


# --- the kinds of claims that several papers have ------------------------------------------------


def judge_overheads(studies: Studies, claim: Claim) -> Iterator[Evidence]:
    """Judge conditions of `level` compared with those of `against`, all else equal."""
    for pair in find_pairs(studies, claim, {}):
        yield judge_overhead(studies, claim, pair)


def judge_overhead(studies: Studies, claim: Claim, pair: Pair) -> Evidence:
    """Judge the overhead of a pair; without an interval it has no ends."""
    row, base = pair
    judged = judge(row, base)
    name = format_short_name(studies, row)
    remarks = (
        *describe_other_sizes(studies.find_facts(row), claim.size),
        *describe_study_differences(studies, row, base),
    )
    evidence = Evidence(
        UNKNOWN,
        f"{name}: {row.metric.name} {judged.verdict.text}",
        row.group.label,
        base.group.label,
        remark=", ".join(remarks),
        variant=row.group.variant,
    )
    found = judged.overhead
    if found is None or found.low is None or found.high is None:
        return evidence
    return replace(
        evidence,
        outcome=decide_outcome(found.low, found.high, claim),
        where=name,
        value=found.value,
        low=found.low,
        high=found.high,
    )


def format_short_name(studies: Studies, row: Row) -> str:
    """Return `npb kernel=cg (podman containers=8)`: the first words, and shortened levels."""
    variant = " ".join(row.group.variant.split()[:2])
    levels = (format_level(name, str(level)) for name, level in row.group.condition.items())
    return studies.add_study_name(studies.find_study(row), f"{variant} ({', '.join(levels)})")


def format_level(name: str, level: str) -> str:
    """Return a short level; a launcher's level lacks the image."""
    if name == LAUNCHER:
        head, *options = level.split(",")
        return " ".join([head.split(":")[0], *(one for one in options if "ranks=" not in one)])
    return level if len(level) <= LEVEL_LETTERS else f"{level[: LEVEL_LETTERS - 1]}…"


def judge_orders(studies: Studies, claim: Claim) -> Iterator[Evidence]:
    """Judge whether overheads of `more` are above those of `less`, all else equal."""
    larger, smaller = (find_pairs(studies, claim, facts) for facts in (claim.more, claim.less))
    for pair in larger:
        for twin in find_twins(studies, pair, smaller, {*claim.more, *claim.less}):
            yield judge_order(studies, claim, pair, twin)


def judge_order(studies: Studies, claim: Claim, pair: Pair, twin: Pair) -> Evidence:
    """Judge two overheads; the claim holds if the first interval is completely above the second."""
    one, other = (judge_overhead(studies, claim, each) for each in (pair, twin))
    own, there = (f"{row.group.variant} {row.group.label}" for row in (pair[0], twin[0]))
    outcome = UNKNOWN
    numbers: tuple[float | None, float | None, float | None] = (None, None, None)
    if one.low is not None and other.low is not None:
        assert one.high is not None and other.high is not None
        if one.low > other.high:
            outcome = HOLDS
        elif one.high < other.low:
            outcome = FAILS
        numbers = one.value, one.low, one.high
    text, remark = f"{one.words} beside {other.words}", one.remark or other.remark
    return Evidence(outcome, text, own, there, "", *numbers, remark, one.variant)


OVERHEAD, ORDER = "overhead", "order"
WORDS = "words"  # a claim that no figure of a study measures; its reading is the reason
KINDS = {OVERHEAD: Kind(judge_overheads), ORDER: Kind(judge_orders)}
