"""Which conclusions from the thesis' measurements hold at 95 %, comparison by comparison."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from steelyard.analysis.papers.claims import Facts, parse_facts, read_csv_rows
from steelyard.analysis.papers.conditions import has_facts
from steelyard.analysis.papers.jungels2012.measurements import FOLDER
from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.overhead import Direction
from steelyard.analysis.stats.significance_tests import holm, welch_effective
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Judged, Summary, judge_all

OPPOSITE = {"worse": Direction.BETTER, "better": Direction.WORSE}
HOLDS, IN_PART, FAILS, NOT_SHOWN = "holds", "holds in part", "does not hold", "not shown"
LEVEL = 1 - CONFIDENCE

Key = tuple[str, str, str]  # variant, condition, the condition it is compared with
Pairs = dict[Key, tuple[Row, Row]]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence and the comparisons that it is about: a line of conclusions.csv."""

    sentence: str
    wording: str  # `thesis` or `ours`
    place: str
    variants: str  # how their names begin
    level: Facts
    against: Facts
    only: Facts
    expect: str  # of the level: `worse` or `better`


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row against another; `p_ordered` allows for iterations that resemble their neighbors."""

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
        """The comparisons that show a difference in this direction."""
        return [one for one in self.comparisons if one.judged.verdict.direction is direction]

    @property
    def agree(self) -> int:
        """Comparisons that show what the conclusion says."""
        return len(self.in_direction(Direction(self.conclusion.expect)))

    @property
    def oppose(self) -> int:
        """Comparisons that show the opposite."""
        return len(self.in_direction(OPPOSITE[self.conclusion.expect]))

    @property
    def agree_ordered(self) -> int:
        """Comparisons that agree, also when iterations are not taken for independent."""
        found = self.in_direction(Direction(self.conclusion.expect))
        return sum(one.is_shown_in_order for one in found)

    @property
    def outcome(self) -> str:
        """HOLDS where all comparisons show it, IN_PART where some do, FAILS where only the opposite."""
        if self.comparisons and self.agree == len(self.comparisons):
            return HOLDS
        if self.agree:
            return IN_PART
        return FAILS if self.oppose else NOT_SHOWN


def read_conclusions(folder: Path = FOLDER) -> list[Conclusion]:
    """In the order of the file."""
    return [
        Conclusion(
            sentence=row["sentence"],
            wording=row["wording"],
            place=row["place"],
            variants=row["variants"],
            level=parse_facts(row["level"], {}),
            against=parse_facts(row["against"], {}),
            only=parse_facts(row["only"], {}),
            expect=row["expect"],
        )
        for row in read_csv_rows(folder / "conclusions.csv")
    ]


def judge_conclusions(summary: Summary, conclusions: Sequence[Conclusion]) -> list[Tested]:
    """Test all of them; p is corrected by Holm for all distinct comparisons together."""
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
    """The rows that a conclusion compares; conditions that only one side has are left out."""
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
    """Welch's test with the effective numbers of iterations, corrected by Holm."""
    found = {}
    for key, (row, base) in pairs.items():
        sizes = (effective_n(row.values), effective_n(base.values))
        p = welch_effective(row.values, base.values, sizes)
        if p is not None:
            found[key] = p
    return dict(zip(found, holm(list(found.values())), strict=True))


def effective_n(values: Sequence[float]) -> float:
    """How many independent values a series is worth: n (1 − r) / (1 + r), r its lag-1 correlation.

    Bayley & Hammersley (1946), "The 'Effective' Number of Independent Observations in an
    Autocorrelated Time Series", Supplement to the JRSS 8(2), for a first-order process; never
    more than n (r below 0 counts as 0), never fewer than 2.
    """
    n, r = len(values), lag_correlation(values)
    return max(n * (1 - r) / (1 + r), 2.0) if r > 0 else float(n)


def lag_correlation(values: Sequence[float]) -> float:
    """Correlation of each value with the next; 0 for fewer than 3 or equal ones."""
    mean = statistics.fmean(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    if len(values) < 3 or squares == 0:
        return 0.0
    products = ((a - mean) * (b - mean) for a, b in pairwise(values))
    return math.fsum(products) / squares
