"""Rules for integer parameters of benchmarks: squares, powers of two."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.jobscripts.requirements import Conditions, conditions_hold, read_conditions
from steelyard.jobscripts.toml_table import Description

# By kind: the allowed numbers, in words, and the first of them.
KINDS = {
    "square": "a square (1, 4, 9, 16, 25 …)",
    "power of two": "a power of two (1, 2, 4, 8, 16 …)",
}


@dataclass(frozen=True)
class IntegerRule:
    """An allowed kind of number; it applies if other parameters have values of `when`."""

    kind: str
    when: Conditions

    def refusal(self, number: int, values: Mapping[str, object]) -> str | None:
        """Return why this number is not allowed with these parameters, or None."""
        if not conditions_hold(self.when, values) or is_of_kind(self.kind, number):
            return None
        conditions = ", ".join(f"{name} = {values[name]}" for name in self.when if values[name])
        return f"{conditions} takes {KINDS[self.kind]}"


def is_of_kind(kind: str, number: int) -> bool:
    """Whether a number (≥ 1) is of a kind."""
    if kind == "square":
        return math.isqrt(number) ** 2 == number
    return number & (number - 1) == 0


def read_integer_rules(section: Description, parameters: Sequence[str]) -> tuple[IntegerRule, ...]:
    """Read `numbers` of a parameter, a list of {kind, when}."""
    rules = []
    for item in section.tables("numbers"):
        item.only(("kind", "when"))
        when = read_conditions(item, "when", parameters)
        rules.append(IntegerRule(item.choice("kind", tuple(KINDS)), when))
    return tuple(rules)
