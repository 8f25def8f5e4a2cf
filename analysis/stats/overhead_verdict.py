"""The verdict on an overhead in words: worse, better, equivalent or not shown, with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.overhead import EXACT, ROUNDING, Overhead

AS_LIKELY = 0.5  # from this p on a difference is not reported as "perhaps": chance is as likely
NO_DURATION = frozenset(("cpu_s",))  # metrics in seconds for which more is not slower


class Direction(StrEnum):
    """The meaning of an overhead for the user."""

    WORSE = "worse"
    BETTER = "better"
    DIFFERENT = "different"
    EQUIVALENT = "equivalent"
    NON_INFERIOR = "non-inferior"  # not worse by the margin; it may be better by any amount
    PERHAPS = "may be chance"
    NOT_SHOWN = "not shown to differ"
    UNKNOWN = "cannot be judged"


SHOWN = (Direction.WORSE, Direction.BETTER, Direction.DIFFERENT)


@dataclass(frozen=True, slots=True)
class Verdict:
    """An overhead in words, with its interval and numbers of runs."""

    direction: Direction
    text: str


@dataclass(frozen=True, slots=True)
class Side:
    """The side on which a metric is worse, and the word for it."""

    is_more: bool
    word: str

    @classmethod
    def of(cls, unit: str | None, better: str | None, metric: str | None) -> Side | None:
        """Return the worse side of a metric, or None if neither side is worse."""
        if better is None:
            return None
        is_more = better == "lower"
        return cls(is_more, choose_comparison(is_more, unit, better, metric)[0])


@dataclass(frozen=True, slots=True)
class Evidence:
    """The test results of an overhead; each p is corrected for all comparisons of the family."""

    p: float | None = None  # of a difference; None: no test exists, the interval decides
    family: int = 1  # number of comparisons
    margin: float | None = None  # the study's equivalence margin: 0.02 is ± 2 %
    # That the overhead is beyond the margin (hypothesis_tests.py).
    p_equivalent: float | None = None
    p_non_inferior: float | None = None  # that it is beyond the margin on the worse side

    @property
    def shows_difference(self) -> bool:
        """Whether the test shows a difference, or no test exists."""
        return self.p is None or self.p <= 1 - CONFIDENCE

    def is_equivalent(self, low: float, high: float) -> bool:
        """Return whether both test and interval show that the overhead is within the margin."""
        is_significant = self.p_equivalent is not None and self.p_equivalent <= 1 - CONFIDENCE
        return is_significant and self.is_inside(low, high)

    def is_inside(self, low: float, high: float) -> bool:
        """Return whether the interval is within the margin."""
        return self.margin is not None and -self.margin < low and high < self.margin

    def is_non_inferior(self, side: Side | None, low: float, high: float) -> bool:
        """Return whether test and interval show that it is not worse by the margin."""
        is_significant = self.p_non_inferior is not None and self.p_non_inferior <= 1 - CONFIDENCE
        return is_significant and self.is_short_of_margin(side, low, high)

    def is_short_of_margin(self, side: Side | None, low: float, high: float) -> bool:
        """Return whether the interval ends before the margin on the worse side."""
        if side is None or self.margin is None:
            return False
        return high < self.margin if side.is_more else -self.margin < low

    @property
    def format_margin(self) -> str:
        """The margin in words: `within ± 2 %`."""
        return f"within ± {100 * (self.margin or 0):g} %"

    def format_one_sided_margin(self, side: Side) -> str:
        """Format `no slower than 2 %`, `no more than 2 % lower`."""
        margin = f"{100 * (self.margin or 0):g} %"
        if side.word == "slower":
            return f"no {side.word} than {margin}"
        return f"no more than {margin} {side.word}"


NO_TEST = Evidence()


def make_verdict(
    result: Overhead,
    unit: str | None,
    better: str | None,
    metric: str | None = None,
    evidence: Evidence = NO_TEST,
) -> Verdict:
    """Describe the overhead in words; `better` is `lower`, `higher` or None as in the database.

    A difference, equivalence or non-inferiority is reported only if both the interval and the test
    show it. The strongest of these is reported.
    """
    if result.value is None or result.low is None or result.high is None:
        return Verdict(Direction.UNKNOWN, f"cannot be judged: {result.reason}")
    if result.method == EXACT:
        return make_exact_verdict(result, unit, better, metric, evidence)
    low, high = result.low, result.high
    if high - low <= ROUNDING * abs(1 + result.value):  # every pair has the same ratio
        low = high = result.value
    counts = format_counts(result, has_spread=low != high)
    side = Side.of(unit, better, metric)
    if low <= 0 <= high:
        return make_zero_verdict(low, high, evidence, counts, side)
    word, direction = choose_comparison(result.value > 0, unit, better, metric)
    by = format_difference(word, result.value, low, high)
    if equivalence := describe_equivalence(low, high, evidence, side):
        where, what = equivalence
        text = f"{where}: {by}" if evidence.shows_difference else f"{where}{format_ends(low, high)}"
        is_better = evidence.shows_difference and direction is Direction.BETTER
        if is_better and what is Direction.NON_INFERIOR:
            what = Direction.BETTER  # the stronger statement
        return Verdict(what, f"{text}, {counts}")
    if not evidence.shows_difference and (evidence.p or 0.0) >= AS_LIKELY:
        among = f" among {evidence.family} comparisons" if evidence.family > 1 else ""
        text = f"not shown to differ{among}{format_ends(low, high)}"
        return Verdict(Direction.NOT_SHOWN, f"{text} (p = {evidence.p:.2g}), {counts}")
    if not evidence.shows_difference:
        why = describe_doubt(evidence.p or 0.0, evidence.family)
        return Verdict(Direction.PERHAPS, f"perhaps {by}{why}, {counts}")
    return Verdict(direction, f"{by}, {counts}")


def format_counts(result: Overhead, has_spread: bool) -> str:
    """Format `n = 10 + 10, paired in 10 blocks`, and why the ratio has no spread."""
    counts = f"n = {result.n_condition} + {result.n_baseline}"
    if result.design is not None:
        counts += f", {result.design}"
    if has_spread:
        return counts
    # 0 divided by any baseline is 0, so here the baseline may well have a spread.
    reason = "a mean of 0" if result.value == -1 else "no spread seen"
    return f"{reason}, {counts}"


def make_exact_verdict(
    result: Overhead, unit: str | None, better: str | None, metric: str | None, evidence: Evidence
) -> Verdict:
    """Describe the overhead of counts that are equal in all runs of a side: no test is needed."""
    value = result.value or 0.0
    counts = f"the same in all n = {result.n_condition} + {result.n_baseline} runs"
    if value == 0:
        return Verdict(Direction.EQUIVALENT, f"exactly equal, {counts}")
    word, direction = choose_comparison(value > 0, unit, better, metric)
    by = f"exactly {format_difference(word, value, value, value)}"
    if evidence.is_inside(value, value):
        return Verdict(Direction.EQUIVALENT, f"{evidence.format_margin}: {by}, {counts}")
    return Verdict(direction, f"{by}, {counts}")


def describe_equivalence(
    low: float, high: float, evidence: Evidence, side: Side | None
) -> tuple[str, Direction] | None:
    """Return what is shown of the margin, in words: on both sides, else on the worse; else None."""
    if evidence.is_equivalent(low, high):
        return evidence.format_margin, Direction.EQUIVALENT
    if side is not None and evidence.is_non_inferior(side, low, high):
        return evidence.format_one_sided_margin(side), Direction.NON_INFERIOR
    return None


def make_zero_verdict(
    low: float, high: float, evidence: Evidence, counts: str, side: Side | None = None
) -> Verdict:
    """Describe an overhead whose interval contains 0."""
    if equivalence := describe_equivalence(low, high, evidence, side):
        where, what = equivalence
        return Verdict(what, f"{where}{format_ends(low, high)}, {counts}")
    if perhaps := describe_possible_equivalence(low, high, evidence, side):
        where, p = perhaps
        why = describe_doubt(p, evidence.family)
        return Verdict(
            Direction.NOT_SHOWN, f"perhaps {where}{format_ends(low, high)}{why}, {counts}"
        )
    nor = f", nor to be {evidence.format_margin}" if evidence.margin is not None else ""
    return Verdict(
        Direction.NOT_SHOWN, f"not shown to differ{nor}{format_ends(low, high)}, {counts}"
    )


def describe_possible_equivalence(
    low: float, high: float, evidence: Evidence, side: Side | None
) -> tuple[str, float] | None:
    """Return what the interval shows of the margin but the test does not, and the p of the test."""
    p_equivalent, no_worse = evidence.p_equivalent, evidence.p_non_inferior
    if evidence.is_inside(low, high) and p_equivalent is not None and p_equivalent < AS_LIKELY:
        return evidence.format_margin, p_equivalent
    if side is None or no_worse is None or no_worse >= AS_LIKELY:
        return None
    if evidence.is_short_of_margin(side, low, high):
        return evidence.format_one_sided_margin(side), no_worse
    return None


def describe_doubt(p: float, family: int) -> str:
    """Return why what the interval shows is not reported as shown."""
    after = f" after correction for {family} comparisons" if family > 1 else ""
    return f", not significant{after} (p = {p:.2g})"


def format_difference(word: str, value: float, low: float, high: float) -> str:
    """Format `slower by 12.1 % (11.3 … 12.9)`; above 100 % more, `20 times as long (9 … 31)`."""
    if value > AS_TIMES:
        return format_times(value, low, high, "as long" if word == "slower" else "as high")
    return f"{word} by {format_amount(value, low, high)}"


def format_times(value: float, low: float, high: float, what: str = "") -> str:
    """Format `20 times as long (9 … 31)`."""
    ratio, ends = number_format.format_times(1 + value, 1 + low, 1 + high)
    text = f"{ratio} times {what}".rstrip()
    return f"{text} ({ends})" if ends else text


def format_amount(value: float, low: float, high: float) -> str:
    """Format an overhead to one side of 0 without its sign: `12.1 % (11.3 … 12.9)`."""
    if high < 0:
        low, high = -high, -low
    text = f"{format_percent(abs(value), low, high)} %"
    return text if low == high else f"{text} ({format_percent_range(low, high)})"


def format_ends(low: float, high: float) -> str:
    """Format ` (−0.4 … 0.9 %)` or ` (0.5 … 4.1 times)`; empty without spread."""
    return "" if low == high else f" ({format_between(low, high)})"


def format_between(low: float, high: float) -> str:
    """Format `−0.4 … 0.9 %`; `0.5 … 4.1 times` if it contains more than 100 % more."""
    if AS_TIMES < high < math.inf and low >= -1:
        return f"{number_format.format_times(1.0, 1 + low, 1 + high)[1]} times"
    return f"{format_percent_range(low, high)} %"


def choose_comparison(
    more: bool, unit: str | None, better: str | None, metric: str | None
) -> tuple[str, Direction]:
    """Return word and direction: `slower` and WORSE for more seconds, `lower` for fewer Gflop/s."""
    if unit == "s" and better == "lower" and metric not in NO_DURATION:
        word = "slower" if more else "faster"
    else:
        word = "higher" if more else "lower"
    if better is None:
        return word, Direction.DIFFERENT
    return word, Direction.WORSE if more == (better == "lower") else Direction.BETTER


AS_TIMES = 1.0  # above 100 % more, a factor is printed
MOST_DECIMALS = 12
HUGE_PERCENT = 1e6  # from here on in the form 1.33e+09


def count_percent_decimals(low: float, high: float) -> int:
    """Return decimals that show half the width as at least 5 in the last place.

    An end that is not 0 is not shown as 0.
    """
    half, nearest = (high - low) / 2 * 100, min(abs(low), abs(high)) * 100
    if half > 0:
        places = max(count_digits(half / 5), 0)
        digits = count_digits(nearest) if low * high > 0 else 0
    else:
        places, digits = 1, count_digits(nearest) + 2 if nearest else 0
    return min(max(places, digits), MOST_DECIMALS)


def count_digits(number: float) -> int:
    """Return the decimals that show a number's first digit; negative for a large number."""
    return math.ceil(-math.log10(number))


def format_percent(value: float, low: float, high: float) -> str:
    """Format 0.121 as `12.1`, with the decimals that the interval allows and a true minus sign."""
    if abs(value) * 100 >= HUGE_PERCENT:
        return f"{value * 100:.3g}".replace("-", "−")
    text = f"{value * 100:.{count_percent_decimals(low, high)}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def format_percent_range(low: float, high: float) -> str:
    """Format `11.3 … 12.9`."""
    return f"{format_percent(low, low, high)} … {format_percent(high, low, high)}"
