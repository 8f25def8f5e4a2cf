"""Which published conclusions hold at 95 %, comparison by comparison."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from steelyard.analysis.published.measurements import Conclusion, Published
from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.overhead import Direction
from steelyard.analysis.stats.tests import holm, welch_effective
from steelyard.analysis.summary.summary import Judged, Row, judge_all

OPPOSITE = {"worse": Direction.BETTER, "better": Direction.WORSE}
HOLDS, IN_PART, FAILS, NOT_SHOWN = "holds", "holds in part", "does not hold", "not shown"
LEVEL = 1 - CONFIDENCE

Key = tuple[str, str, str]  # variant, condition, the condition it is compared with


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row against another; `p_ordered` allows for iterations that resemble their neighbours."""

    row: Row
    base: Row
    judged: Judged
    p_ordered: float | None

    @property
    def lasts(self) -> bool:
        """Whether a difference is still shown with p_ordered."""
        return self.p_ordered is not None and self.p_ordered <= LEVEL


@dataclass(frozen=True, slots=True)
class Tested:
    """A conclusion with its comparisons."""

    conclusion: Conclusion
    comparisons: tuple[Comparison, ...]

    def count(self, direction: Direction) -> int:
        return sum(one.judged.verdict.direction is direction for one in self.comparisons)

    @property
    def agree(self) -> int:
        return self.count(Direction(self.conclusion.expect))

    @property
    def oppose(self) -> int:
        return self.count(OPPOSITE[self.conclusion.expect])

    @property
    def agree_ordered(self) -> int:
        """Comparisons that agree, also when iterations are not taken for independent."""
        wanted = Direction(self.conclusion.expect)
        return sum(c.lasts and c.judged.verdict.direction is wanted for c in self.comparisons)

    @property
    def outcome(self) -> str:
        """HOLDS where all comparisons show it, IN_PART where some do, FAILS where only the opposite."""
        if self.comparisons and self.agree == len(self.comparisons):
            return HOLDS
        if self.agree:
            return IN_PART
        return FAILS if self.oppose else NOT_SHOWN


def test_conclusions(published: Published) -> list[Tested]:
    """All of them; p is corrected by Holm for all distinct comparisons together."""
    pairs: dict[Key, tuple[Row, Row]] = {}
    chosen = []
    for conclusion in published.conclusions:
        found = pairs_of(published, conclusion)
        pairs |= found
        chosen.append((conclusion, list(found)))
    judged = dict(zip(pairs, judge_all(list(pairs.values())), strict=True))
    ordered = ordered_p(pairs)
    return [
        Tested(
            conclusion,
            tuple(Comparison(*pairs[key], judged[key], ordered.get(key)) for key in keys),
        )
        for conclusion, keys in chosen
    ]


def pairs_of(published: Published, conclusion: Conclusion) -> dict[Key, tuple[Row, Row]]:
    """The rows that a conclusion compares; conditions that only one side has are left out."""
    rows = {(row.group.variant, as_key(row.group.condition)): row for row in published.summary.rows}
    pairs = {}
    for (variant, _), row in rows.items():
        condition = row.group.condition
        if not variant.startswith(conclusion.variants) or not selected(conclusion, row):
            continue
        base = rows.get((variant, as_key(condition | {conclusion.factor: conclusion.against})))
        if base is not None:
            pairs[variant, row.group.label, base.group.label] = (row, base)
    return pairs


def as_key(condition: dict[str, object]) -> str:
    return json.dumps(condition, sort_keys=True)


def selected(conclusion: Conclusion, row: Row) -> bool:
    """Whether a row is at the level in question and among `only`."""
    condition = row.group.condition
    if condition.get(conclusion.factor) != conclusion.level:
        return False
    return all(
        condition.get(factor) in (wanted if isinstance(wanted, list) else [wanted])
        for factor, wanted in conclusion.only.items()
    )


def ordered_p(pairs: dict[Key, tuple[Row, Row]]) -> dict[Key, float]:
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
