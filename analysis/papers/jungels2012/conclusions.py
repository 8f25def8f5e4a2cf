"""Tests which conclusions from the thesis' measurements hold at 95 %, comparison by comparison."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from steelyard.analysis.papers.claim_files import Facts, parse_facts, read_csv_rows
from steelyard.analysis.papers.conditions import has_facts
from steelyard.analysis.papers.jungels2012.thesis_study import FOLDER
from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.hypothesis_tests import holm, welch_effective
from steelyard.analysis.stats.overhead_verdict import Direction
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Judged, Summary, judge_all

OPPOSITE = {"worse": Direction.BETTER, "better": Direction.WORSE}
HOLDS, IN_PART, FAILS, NOT_SHOWN = "holds", "holds in part", "does not hold", "not shown"
LEVEL = 1 - CONFIDENCE

Key = tuple[str, str, str]  # variant, condition, the condition it is compared with
Pairs = dict[Key, tuple[Row, Row]]


FACTS = ("level", "against", "only")  # columns of conclusions.csv


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A conclusion and its comparisons: a line of conclusions.csv."""

    sentence: str
    wording: str  # `thesis` or `ours`
    place: str
    variants: str  # prefix of their names
    level: Facts
    against: Facts
    only: Facts
    expect: str  # of the level: `worse` or `better`


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two rows; `p_ordered` allows for iterations that resemble their neighbors."""

    row: Row
    base: Row
    judged: Judged
    p_ordered: float | None

    @property
    def is_shown_in_order(self) -> bool:
        """Whether a difference is still shown with p_ordered."""
        return self.p_ordered is not None and self.p_ordered <= LEVEL


@dataclass(frozen=True, slots=True)
class Tested:
    """A conclusion with its comparisons."""

    conclusion: Conclusion
    comparisons: tuple[Comparison, ...]

    def in_direction(self, direction: Direction) -> list[Comparison]:
        """Return the comparisons that show a difference in this direction."""
        return [one for one in self.comparisons if one.judged.verdict.direction is direction]

    @property
    def agree(self) -> int:
        """The number of comparisons that show the conclusion."""
        return len(self.in_direction(Direction(self.conclusion.expect)))

    @property
    def oppose(self) -> int:
        """The number of comparisons that show the opposite."""
        return len(self.in_direction(OPPOSITE[self.conclusion.expect]))

    @property
    def agree_ordered(self) -> int:
        """The number of comparisons that agree even if iterations are not taken as independent."""
        found = self.in_direction(Direction(self.conclusion.expect))
        return sum(one.is_shown_in_order for one in found)

    @property
    def outcome(self) -> str:
        """HOLDS if all comparisons show it, IN_PART if some do, FAILS if some only oppose it."""
        if self.comparisons and self.agree == len(self.comparisons):
            return HOLDS
        if self.agree:
            return IN_PART
        return FAILS if self.oppose else NOT_SHOWN


def read_conclusions(folder: Path = FOLDER) -> list[Conclusion]:
    """Return the conclusions in the order of the file."""
    found = []
    for row in read_csv_rows(folder / "conclusions.csv"):
        facts: dict[str, Any] = {name: parse_facts(row[name], {}) for name in FACTS}
        found.append(Conclusion(**row | facts))
    return found


def judge_conclusions(summary: Summary, conclusions: Sequence[Conclusion]) -> list[Tested]:
    """Test all conclusions; p is corrected by Holm for all distinct comparisons together."""
    by_conclusion = [build_pairs(summary, one) for one in conclusions]
    pairs: Pairs = {key: pair for found in by_conclusion for key, pair in found.items()}
    judged = dict(zip(pairs, judge_all(list(pairs.values())), strict=True))
    ordered = compute_ordered_p(pairs)
    return [
        Tested(
            conclusion,
            tuple(Comparison(*pairs[key], judged[key], ordered.get(key)) for key in found),
        )
        for conclusion, found in zip(conclusions, by_conclusion, strict=True)
    ]


def build_pairs(summary: Summary, conclusion: Conclusion) -> Pairs:
    """Return the rows that a conclusion compares; conditions of only one side are left out."""
    rows = {
        (row.group.variant, frozenset(row.group.condition.items())): row for row in summary.rows
    }
    pairs = {}
    for (variant, _), row in rows.items():
        condition = row.group.condition
        if variant.startswith(conclusion.variants) and has_facts(
            condition, {**conclusion.level, **conclusion.only}
        ):
            base = rows.get((variant, frozenset((condition | dict(conclusion.against)).items())))
            if base is not None:
                pairs[variant, row.group.label, base.group.label] = (row, base)
    return pairs


def compute_ordered_p(pairs: Pairs) -> dict[Key, float]:
    """Return p of Welch's test with the effective numbers of iterations, corrected by Holm."""
    found = {}
    for key, (row, base) in pairs.items():
        sizes = (effective_n(row.values), effective_n(base.values))
        p = welch_effective(row.values, base.values, sizes)
        if p is not None:
            found[key] = p
    return dict(zip(found, holm(list(found.values())), strict=True))


def effective_n(values: Sequence[float]) -> float:
    """Return the effective number of values: n (1 − r) / (1 + r), r the lag-1 correlation.

    Bayley & Hammersley (1946), "The 'Effective' Number of Independent Observations in an
    Autocorrelated Time Series", Supplement to the JRSS 8(2), for a first-order process. The result
    is at most n (r below 0 counts as 0), and at least 2 for positive r.
    """
    n, r = len(values), lag_correlation(values)
    return max(n * (1 - r) / (1 + r), 2.0) if r > 0 else float(n)


def lag_correlation(values: Sequence[float]) -> float:
    """Return the correlation of each value with the next; 0 for fewer than 3 or equal values."""
    mean = statistics.fmean(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if len(values) < 3 or squares == 0:
        return 0.0
    products = ((a - mean) * (b - mean) for a, b in pairwise(values))
    return math.fsum(products) / squares
