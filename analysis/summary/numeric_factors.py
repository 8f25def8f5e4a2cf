"""Factors as numeric axes, and the rows of a metric over them, as box plots and line plots show them.

An axis has numeric levels, or network conditions that differ in one number. Levels of the factor
`network` are on one axis if all but one of their numbers are equal: for `delay`, those with the
same rate, loss, address and so on. A level may be on several axes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from steelyard.analysis.collect.network import FACTOR, NO_LEVEL, normalize_specification
from steelyard.analysis.stats.slope import MIN_LEVELS
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import LARGEST
from steelyard.analysis.summary.summary import Summary
from steelyard.facts.netem_keys import VALUES
from steelyard.jobscripts.plurals import counted_range

# By kind of number in a specification: the printed unit, and how many of it are one base unit.
UNITS = {
    "TIME": ("ms", Decimal(1000)),
    "PERCENT": ("%", Decimal(100)),
    "RATE": ("Mbit/s", Decimal("1e-6")),
}
KEYS = tuple(value for value in VALUES if value.row == "KEY")
NUMBERS = {value.key: UNITS[value.kind] for value in KEYS if value.kind in UNITS}
BOUNDLESS = frozenset(value.key for value in KEYS if value.kind == "RATE")  # omitted: not 0
WHERE = tuple(f"{value.key}=" for value in KEYS if value.role in ("PLACE", "PLACES"))


@dataclass(frozen=True)
class Axis:
    """An axis: the levels of a factor with their numbers."""

    factor: str
    label: str  # `delay (ms)`; for any other factor its name
    unit: str  # `ms of delay`; for any other factor its name
    fixed: str  # `rate=100mbit`: what all levels have in common besides the number
    places: Mapping[str, float]  # by the level's text
    unlimited: frozenset[str] = frozenset()  # levels without this limit (of a rate)

    @property
    def name(self) -> str:
        """A name that distinguishes the axes of a study."""
        is_plain = self.label in (self.factor, "delay (ms)") and not self.fixed
        return (
            self.factor
            if is_plain
            else f"{self.factor} {self.label.split()[0]} {self.fixed}".strip()
        )

    @property
    def has_no_end(self) -> bool:
        """Whether its numbers are limits, so that no limit is the largest."""
        return self.factor == FACTOR and self.label.split()[0] in BOUNDLESS

    def position(self, condition: Mapping[str, object]) -> float | None:
        """Return the number of a condition on this axis; None if the condition is not on it."""
        return self.places.get(str(condition.get(self.factor)))

    def others(self, condition: Mapping[str, str]) -> str:
        """Return the other levels and fixed conditions: `filesystem=NFS, node_type=virtual`."""
        parts = [f"{k}={v}" for k, v in condition.items() if k != self.factor]
        return ", ".join([*parts, self.fixed] if self.fixed else parts)


def find_axes(factors: Mapping[str, Sequence[object]], least: int = MIN_LEVELS) -> list[Axis]:
    """Return the axes with at least `least` numbers."""
    found = [
        axis
        for factor, levels in factors.items()
        for axis in (
            make_network_axes(levels) if factor == FACTOR else [make_number_axis(factor, levels)]
        )
    ]
    return [axis for axis in found if len(set(axis.places.values())) >= least]


def make_number_axis(factor: str, levels: Sequence[object]) -> Axis:
    """Return the axis of levels that are numbers themselves."""
    known = {
        str(level): number for level in levels if (number := parse_level_number(level)) is not None
    }
    return Axis(factor, factor, factor, "", known)


def parse_level_number(level: object) -> float | None:
    """Return a level as a number, or None.

    Python's `float` also reads `2024_01`, which is a name.
    """
    if isinstance(level, bool) or "_" in str(level):
        return None
    try:
        value = float(str(level))
    except ValueError:
        return None
    return value if abs(value) <= LARGEST else None


@dataclass(frozen=True)
class Specification:
    """Parts of a network specification: its nonzero numbers in base units, and its other parts."""

    numbers: Mapping[str, Decimal]
    rest: frozenset[str]

    @property
    def has_no_effect(self) -> bool:
        """Whether the specification changes nothing (`none`, `loss=0%`), whatever its address."""
        return not self.numbers and all(option.startswith(WHERE) for option in self.rest)


def parse_specification(level: str) -> Specification:
    """Parse the text of a level."""
    numbers, rest = {}, set()
    for option in () if level.strip() == NO_LEVEL else normalize_specification(level):
        key, _, value = option.partition("=")
        number = convert_to_base_units(value) if key in NUMBERS else None
        if number is None:
            rest.add(option)
        elif number or key in BOUNDLESS:
            numbers[key] = number
    return Specification(numbers, frozenset(rest))


def convert_to_base_units(value: str) -> Decimal | None:
    """Return the number of `0.05u`, the canonical form of 50ms; None unless a single quantity.

    A delay with jitter is not.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)u?", value)
    return match and Decimal(match[1])


def make_network_axes(levels: Sequence[object]) -> Iterator[Axis]:
    """Return an axis for each number and set of other conditions that levels share."""
    parsed = {str(level): parse_specification(str(level)) for level in levels}
    for key, (unit, scale) in NUMBERS.items():
        for rest, members in group_levels(parsed, key).items():
            places = {
                level: float(parsed[level].numbers.get(key, Decimal(0)) * scale)
                for level in members
            }
            label, per = f"{key} ({unit})", f"{unit} of {key}"
            unlimited = frozenset(
                level
                for level, one in parsed.items()
                if key in BOUNDLESS and key not in one.numbers and has_other_keys(one, rest)
            )
            yield Axis(FACTOR, label, per, remove_key(members[0], key), places, unlimited)


def remove_key(level: str, key: str) -> str:
    """Return the level without this number and without zeros: `rate=100mbit,to=10.0.0.0/8`."""
    parts = ("".join(option.split()) for option in level.split(","))
    others = (option for option in parts if not option.startswith(f"{key}="))
    return ",".join(option for option in others if has_effect(parse_specification(option)))


def has_effect(found: Specification) -> bool:
    return bool(found.numbers or found.rest)


Rest = tuple[frozenset[tuple[str, Decimal]], frozenset[str]]


def group_levels(parsed: Mapping[str, Specification], key: str) -> dict[Rest, list[str]]:
    """Group levels that are equal except for this number.

    A level without effect is 0 for any address.
    """
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
    """Return whether a level without the number has everything else that these levels share."""
    numbers, parts = rest
    same = (frozenset(one.numbers.items()), one.rest) == (numbers, parts)
    nothing = not numbers and all(option.startswith(WHERE) for option in parts)
    return same or (one.has_no_effect and nothing)


MAX_SERIES = 6  # number of colors
MAX_LEVELS = 24  # per series in a figure; its CSV has all


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over the levels of a factor, with the other factors at the levels in `others`."""

    others: str
    places: tuple[float, ...]  # ascending
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class OverFactor:
    """All series of one variant and metric."""

    variant: str
    factor: str
    factor_label: str  # `delay (ms)`; for any other factor its name
    series: tuple[Series, ...]
    placeless: tuple[str, ...] = ()  # levels that are not on the axis

    @property
    def metric(self) -> str:
        return self.series[0].rows[0].metric.name

    @property
    def unit(self) -> str | None:
        return self.series[0].rows[0].metric.unit

    @property
    def rows(self) -> list[Row]:
        return [row for one in self.series for row in one.rows]


def build_factor_series(
    summary: Summary, variant: str, axis: Axis, metrics: Sequence[str]
) -> Iterator[OverFactor]:
    """Return the series of each metric that has values at three levels or more."""
    for metric in metrics:
        found: dict[str, list[tuple[float, Row]]] = {}
        placeless: dict[str, None] = {}
        for row in summary.rows:
            condition = row.group.condition
            position = axis.position(condition)
            is_wanted = (row.group.variant, row.metric.name) == (variant, metric) and row.values
            if is_wanted and position is not None:
                found.setdefault(axis.others(row.group.levels), []).append((position, row))
            elif is_wanted:
                placeless[str(row.group.levels.get(axis.factor))] = None
        series = [build_series(o, pairs) for o, pairs in found.items() if len(pairs) >= MIN_LEVELS]
        if series:
            yield OverFactor(variant, axis.name, axis.label, tuple(series), tuple(placeless))


def build_series(others: str, pairs: list[tuple[float, Row]]) -> Series:
    places, rows = zip(*sorted(pairs, key=lambda pair: pair[0]), strict=True)
    return Series(others, places, rows)


def select_first_series(found: OverFactor) -> tuple[Series, ...]:
    """Return the series to be plotted."""
    return tuple(thin_series(one) for one in found.series[:MAX_SERIES])


def thin_series(one: Series) -> Series:
    """Return at most MAX_LEVELS of the levels, evenly chosen, with the first and the last."""
    count = len(one.places)
    if count <= MAX_LEVELS:
        return one
    indices = sorted({round(i * (count - 1) / (MAX_LEVELS - 1)) for i in range(MAX_LEVELS)})
    places = tuple(one.places[i] for i in indices)
    return Series(one.others, places, tuple(one.rows[i] for i in indices))


def describe_omissions(found: OverFactor) -> str:
    """Return a caption's sentence on series and levels that are not plotted."""
    text = ""
    if len(found.series) > MAX_SERIES:
        text = f" Shown are the first {MAX_SERIES} of {len(found.series)} series."
    if any(len(one.places) > MAX_LEVELS for one in found.series):
        text += f" Of more than {MAX_LEVELS} levels every few are shown."
    text += " The figure's CSV has all." if text else ""
    if found.placeless:
        text += f" Not on this axis: {', '.join(found.placeless)}."
    return text


def format_n(rows: Sequence[Row], what: str = "level") -> str:
    """Format `n = 5 to 35 runs a level`."""
    return f"n = {counted_range((row.n for row in rows), 'run')} a {what}"
