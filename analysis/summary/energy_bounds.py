"""Two conditions by what their joules are at least and at most: bounds are told together.

That one's low is above the other's low says nothing of their joules: only where a low is above the
other's high is a difference shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.overhead import Direction, Verdict, between, percent


@dataclass(frozen=True, slots=True)
class Bounds:
    """A condition's energy_low_j and energy_high_j; None: no run has a value."""

    low: Interval | None
    high: Interval | None

    def range_j(self) -> tuple[float, float] | None:
        """From the lowest to the highest that the means can be, their 95 % intervals included."""
        if self.low is None or self.high is None:
            return None
        if self.low.low is None or self.high.high is None:
            return None
        return max(self.low.low, 0.0), self.high.high


def bounds_verdict(ours: Bounds, base: Bounds) -> Verdict:
    """In words; `better` is lower."""
    mine, theirs = ours.range_j(), base.range_j()
    if mine is None or theirs is None:
        return Verdict(Direction.UNKNOWN, "cannot be judged: fewer than two values")
    assert ours.low is not None and base.low is not None
    n = f"n = {ours.low.n} + {base.low.n}"
    least, most = ratio(mine[0], theirs[1]) - 1, ratio(mine[1], theirs[0]) - 1
    if least > 0:
        return Verdict(Direction.WORSE, f"higher: {words(least, most)}, {n}")
    if most < 0:
        return Verdict(Direction.BETTER, f"lower: {words(least, most)}, {n}")
    return Verdict(Direction.NOT_SHOWN, f"not shown to differ ({words(least, most)}), {n}")


def ratio(one: float, other: float) -> float:
    return one / other if other > 0 else math.inf if one > 0 else 1.0


def words(least: float, most: float) -> str:
    """What lies between both conditions' bounds."""
    if math.isinf(most):
        return f"bounds: {percent(least, least, least)} % and more"
    return f"bounds: {between(least, most)}"
