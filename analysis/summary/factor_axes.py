"""Factors as axes of numbers: levels that are numbers, or network conditions that differ in one.

Levels of the factor `network` lie on one axis where all but one of their numbers are equal: over
`delay` those with the same rate, loss, address and so on. A level may lie on several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from steelyard.analysis.collect.network import FACTOR, NO_LEVEL, normalize_specification
from steelyard.analysis.stats.slope import MIN_LEVELS
from steelyard.analysis.summary.study_data import LARGEST
from steelyard.facts.netem_keys import VALUES

# Kinds of a specification's numbers: unit to be told, how many of it are one base unit.
UNITS = {
    "TIME": ("ms", Decimal(1000)),
    "PERCENT": ("%", Decimal(100)),
    "RATE": ("Mbit/s", Decimal("1e-6")),
}
KEYS = tuple(value for value in VALUES if value.row == "KEY")
NUMBERS = {value.key: UNITS[value.kind] for value in KEYS if value.kind in UNITS}
BOUNDLESS = frozenset(value.key for value in KEYS if value.kind == "RATE")  # left out it is no 0
WHERE = tuple(f"{value.key}=" for value in KEYS if value.role in ("PLACE", "PLACES"))


@dataclass(frozen=True)
class Axis:
    """Levels of a factor with their numbers."""

    factor: str
    words: str  # `delay (ms)`; of any other factor its own name
    unit: str  # `ms of delay`; of any other factor its own name
    fixed: str  # `rate=100mbit`: what all levels have beside the number
    places: Mapping[str, float]  # by the level's text
    unlimited: frozenset[str] = frozenset()  # levels that differ in having no limit: of a rate

    @property
    def name(self) -> str:
        """Tells the axes of a study apart."""
        is_plain = self.words in (self.factor, "delay (ms)") and not self.fixed
        return (
            self.factor
            if is_plain
            else f"{self.factor} {self.words.split()[0]} {self.fixed}".strip()
        )

    @property
    def has_no_end(self) -> bool:
        """Whether its numbers are limits, of which none at all is the largest."""
        return self.factor == FACTOR and self.words.split()[0] in BOUNDLESS

    def place(self, condition: Mapping[str, object]) -> float | None:
        """Where a condition lies; None: not on this axis."""
        return self.places.get(str(condition.get(self.factor)))

    def others(self, condition: Mapping[str, str]) -> str:
        """What else it is: `filesystem=NFS, node_type=virtual`."""
        parts = [f"{k}={v}" for k, v in condition.items() if k != self.factor]
        return ", ".join([*parts, self.fixed] if self.fixed else parts)


def find_axes(factors: Mapping[str, Sequence[object]], least: int = MIN_LEVELS) -> list[Axis]:
    """Those with at least `least` numbers."""
    found = [
        axis
        for factor, levels in factors.items()
        for axis in (
            make_network_axes(levels) if factor == FACTOR else [make_number_axis(factor, levels)]
        )
    ]
    return [axis for axis in found if len(set(axis.places.values())) >= least]


def make_number_axis(factor: str, levels: Sequence[object]) -> Axis:
    """Levels as they stand."""
    known = {
        str(level): number for level in levels if (number := parse_level_number(level)) is not None
    }
    return Axis(factor, factor, factor, "", known)


def parse_level_number(level: object) -> float | None:
    """A level as a number."""
    if isinstance(level, bool):
        return None
    try:
        value = float(str(level))
    except ValueError:
        return None
    return value if abs(value) <= LARGEST else None


@dataclass(frozen=True)
class Specification:
    """Its numbers in base units, without those that do nothing, and its other parts."""

    numbers: Mapping[str, Decimal]
    rest: frozenset[str]

    @property
    def has_no_effect(self) -> bool:
        """`none`, `loss=0%`: whatever the address, it is 0 of everything."""
        return not self.numbers and all(part.startswith(WHERE) for part in self.rest)


def parse_specification(level: str) -> Specification:
    """From a level's text."""
    numbers, rest = {}, set()
    for part in () if level.strip() == NO_LEVEL else normalize_specification(level):
        key, _, value = part.partition("=")
        number = convert_to_base_units(value) if key in NUMBERS else None
        if number is None:
            rest.add(part)
        elif number or key in BOUNDLESS:
            numbers[key] = number
    return Specification(numbers, frozenset(rest))


def convert_to_base_units(value: str) -> Decimal | None:
    """`0.05u`, as canonical() writes 50ms; None for what is no single quantity, as with jitter."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)u?", value)
    return match and Decimal(match[1])


def make_network_axes(levels: Sequence[object]) -> Iterator[Axis]:
    """One for each number and what the levels have in common beside it."""
    parsed = {str(level): parse_specification(str(level)) for level in levels}
    for key, (unit, scale) in NUMBERS.items():
        for rest, members in group_levels(parsed, key).items():
            places = {
                level: float(parsed[level].numbers.get(key, Decimal(0)) * scale)
                for level in members
            }
            words, per = f"{key} ({unit})", f"{unit} of {key}"
            unlimited = frozenset(
                level
                for level, one in parsed.items()
                if key in BOUNDLESS and key not in one.numbers and has_other_keys(one, rest)
            )
            yield Axis(FACTOR, words, per, remove_key(members[0], key), places, unlimited)


def remove_key(level: str, key: str) -> str:
    """What a level has but for this number and for zeros: `rate=100mbit,to=10.0.0.0/8`."""
    parts = ("".join(part.split()) for part in level.split(","))
    others = (part for part in parts if not part.startswith(f"{key}="))
    return ",".join(part for part in others if has_effect(parse_specification(part)))


def has_effect(found: Specification) -> bool:
    return bool(found.numbers or found.rest)


Rest = tuple[frozenset[tuple[str, Decimal]], frozenset[str]]


def group_levels(parsed: Mapping[str, Specification], key: str) -> dict[Rest, list[str]]:
    """Levels that are equal but for this number; what does nothing is 0 wherever they act."""
    found: dict[Rest, list[str]] = {}
    for level, one in parsed.items():
        if key in one.numbers:
            rest = frozenset(pair for pair in one.numbers.items() if pair[0] != key)
            found.setdefault((rest, one.rest), []).append(level)
    for level, one in parsed.items():
        if key in one.numbers or key in BOUNDLESS:
            continue
        for own, members in found.items():
            if has_other_keys(one, own):
                members.append(level)
    return found


def has_other_keys(one: Specification, rest: Rest) -> bool:
    """Whether a level without the number has all else that these levels have in common."""
    numbers, parts = rest
    same = (frozenset(one.numbers.items()), one.rest) == (numbers, parts)
    nothing = not numbers and all(part.startswith(WHERE) for part in parts)
    return same or (one.has_no_effect and nothing)
