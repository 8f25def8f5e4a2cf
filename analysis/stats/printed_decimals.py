"""How finely values were told, from their decimals: what equal values do not say."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

PRINTED_DIGITS = 9  # more are those of a quotient, not of a print


def resolution(values: Sequence[float]) -> Decimal | None:
    """One in the last decimal that any of the values has; None where they are no printed ones."""
    finest = Decimal(1)
    for value in values:
        number = Decimal(repr(float(value))).normalize()
        _, digits, exponent = number.as_tuple()
        if len(digits) > PRINTED_DIGITS or not isinstance(exponent, int):
            return None
        finest = min(finest, Decimal(1).scaleb(exponent))
    return finest


def coarse(condition: float, baseline: float) -> str:
    """Why two sides, each with one value in all of its runs, cannot be told apart by a test."""
    step = resolution((condition, baseline))
    known = "not known" if step is None else f"{step:f}"
    return (
        f"coarse: all runs print the same value ({condition:g}, of the baseline {baseline:g}); "
        f"the resolution is {known}, and without a spread there is no test"
    )
