"""Numbers with units as people read and write them: prefixes, decimals by the interval's width, percent."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from steelyard.analysis.stats.basics import Interval

PREFIXES = {
    "s": ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    "bytes": ((1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB")),
    "bytes_per_s": ((1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")),
    "bit/s": ((1.0, "bit/s"), (1e3, "kbit/s"), (1e6, "Mbit/s"), (1e9, "Gbit/s"), (1e12, "Tbit/s")),
    "bits": ((1.0, "bit"), (1e3, "kbit"), (1e6, "Mbit"), (1e9, "Gbit")),
    "J": ((1.0, "J"), (1e3, "kJ"), (1e6, "MJ")),
}

# Of these, and of anything per time, nobody can have less than nothing.
AMOUNTS = frozenset(
    ("s", "ms", "us", "µs", "ns", "bytes", "B", "kB", "MB", "GB", "J", "kJ", "W", "Hz", "%")
)

LEANING = 1.1  # above, against below the mean: from here on both ends are told

MISSING = "–"
MOST_DECIMALS = 6
HUGE = 1e15  # from here on as 1.23e+15
HUGE_RATIO = 1e6  # nobody counts digits


def is_never_negative(variant: str, unit: str | None, minimum: float) -> bool:
    """Whether a quantity can have no negative mean; of a study's own figure the unit has to."""
    is_amount = unit is not None and (unit in AMOUNTS or "/" in unit or "_per_" in unit)
    if minimum < 0 or is_amount:
        return minimum >= 0
    # Here and not above: it reads all benchmarks, and `steelyard show` asks for none.
    from steelyard.analysis.base.benchmark_traits import finds_own_figures

    return not finds_own_figures(variant)


def format_unit(unit: str | None) -> str:
    """`files/s` from `files_per_s`; a figure without unit is a number, `1`."""
    return (unit or "1").replace("_per_", "/").replace("_", " ")


def choose_prefix(magnitude: float | None, unit: str | None) -> tuple[float, str]:
    """What to divide by so that `magnitude` reads well, and the unit's name then."""
    steps = PREFIXES.get(unit or "")
    if steps is None:
        return 1.0, format_unit(unit)
    size = abs(magnitude or 0.0)
    fitting = [step for step in steps if step[0] <= size] if size else []
    plain = next(step for step in steps if step[0] == 1.0)
    return fitting[-1] if fitting else (steps[0] if size else plain)


def count_decimals(value: float, half_width: float | None) -> int:
    """Decimals to print: as many as make the half width at least 5 in the last place."""
    if half_width:
        return min(max(math.ceil(-math.log10(half_width / 5)), 0), MOST_DECIMALS)
    if value == 0 or float(value).is_integer():
        return 0
    return min(max(3 - math.floor(math.log10(abs(value))), 0), MOST_DECIMALS)


def count_common_decimals(intervals: Sequence[Interval], factor: float) -> int:
    """Decimals of means that stand together: those of decimals(), and three digits of the largest."""
    means = [abs(one.mean / factor) for one in intervals]
    halves = [one.half_width and one.half_width / factor for one in intervals]
    wanted = [count_decimals(mean, half) for mean, half in zip(means, halves, strict=True)]
    largest = max(means, default=0.0)
    least = 2 - math.floor(math.log10(largest)) if largest else 0
    return min(max([least, *wanted]), MOST_DECIMALS)


def format_number(value: float | None, factor: float = 1.0, places: int = 0) -> str:
    """`−1.23`, with a true minus sign; `–` for None; `3.1e−09` for what decimals cannot tell."""
    if value is None:
        return MISSING
    words = f"{value / factor:.{places}f}"
    if abs(value / factor) >= HUGE or (value and places == MOST_DECIMALS and not float(words)):
        words = f"{value / factor:.3g}"
    return words.replace("-", "−") if float(words) else words.lstrip("-")


def format_times(ratio: float, low: float, high: float) -> tuple[str, str]:
    """A ratio and its interval, `20` and `9 … 31`: to the place in which the half width is 2 or more,
    and none is 0, nor 1, that is not."""
    half = (high - low) / 2
    if half <= 0:
        return f"{ratio:.3g}", ""
    beside_1 = (low - 1) * (high - 1) > 0

    def rounded(value: float) -> str:
        if value >= HUGE_RATIO:
            return f"{value:.2g}"
        least = [
            half / 2,
            value if value > 0 else half,
            (abs(value - 1) if beside_1 else half) or half,
        ]
        places = min(math.ceil(-math.log10(min(least))), MOST_DECIMALS)
        return format_number(round(value, places), 1.0, max(places, 0))

    return rounded(ratio), f"{rounded(low)} … {rounded(high)}"


def format_quantity(value: float | None, unit: str | None) -> str:
    """One number with its unit, four digits: `1.234 MB`."""
    if value is None:
        return MISSING
    factor, name = choose_prefix(value, unit)
    return (
        f"{format_number(value, factor, count_decimals(value / factor, None))} {name}".removesuffix(
            " 1"
        )
    )


def format_binary(value: float | None) -> str:
    """`3.1 GiB`, as memory is asked for; `–` for None."""
    if value is None:
        return MISSING
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1024
    return f"{value:.4g} TiB"


def format_mean(interval: Interval, unit: str | None) -> str:
    """`800 ± 32 ms`: mean and half of its interval in one unit; `26 (8 … 70) ms` where it leans."""
    factor, name = choose_prefix(interval.mean, unit)
    half = interval.half_width
    places = count_decimals(interval.mean / factor, half and half / factor)
    mean, low, high = (
        format_number(value, factor, places)
        for value in (interval.mean, interval.low, interval.high)
    )
    below, above = compute_reaches(interval)
    if half is None:
        spread = ""
    elif above <= LEANING * below:
        spread = f" ± {format_number(half, factor, places)}"
    else:
        spread = f" ({low} … {high})"
    return f"{mean}{spread} {name}".removesuffix(" 1")


def compute_reaches(interval: Interval) -> tuple[float, float]:
    """How far it reaches below and above the mean; 0 where it has no ends."""
    if interval.low is None or interval.high is None:
        return 0.0, 0.0
    return interval.mean - interval.low, interval.high - interval.mean


PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)\s?%")


def parse_percent(text: object) -> float | None:
    """0.02 of `2%`; None unless it is a text of more than 0 and less than 100 percent."""
    match = PERCENT.fullmatch(text) if isinstance(text, str) else None
    return float(match[1]) / 100 if match and float(match[1]) else None
