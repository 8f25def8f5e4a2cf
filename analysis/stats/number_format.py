"""Format numbers with units: prefixes, decimals that fit the interval's width, percentages."""

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

# Quantities in these units, and quantities per time, cannot be negative.
AMOUNTS = frozenset(
    ("s", "ms", "us", "µs", "ns", "bytes", "B", "kB", "MB", "GB", "J", "kJ", "W", "Hz", "%")
)

LEANING = 1.1  # ratio of the upper to the lower half width from which both ends are printed

MISSING = "–"
MOST_DECIMALS = 6
HUGE = 1e15  # from here on in the form 1.23e+15
HUGE_RATIO = 1e6  # above it two digits are enough


def is_never_negative(variant: str, unit: str | None, minimum: float) -> bool:
    """Return whether a quantity cannot have a negative mean.

    For a figure that the study defines, the unit decides.
    """
    is_amount = unit is not None and (unit in AMOUNTS or "/" in unit or "_per_" in unit)
    if minimum < 0 or is_amount:
        return minimum >= 0
    # Imported here because it reads all benchmarks, and `steelyard show` needs none.
    from steelyard.analysis.base.benchmark_traits import finds_own_figures

    return not finds_own_figures(variant)


def format_unit(unit: str | None) -> str:
    """Return `files/s` for `files_per_s`; a figure without a unit is a number, `1`."""
    return (unit or "1").replace("_per_", "/").replace("_", " ")


def choose_prefix(magnitude: float | None, unit: str | None) -> tuple[float, str]:
    """Return the divisor with which `magnitude` reads well, and the name of the resulting unit."""
    steps = PREFIXES.get(unit or "")
    if steps is None:
        return 1.0, format_unit(unit)
    size = abs(magnitude or 0.0)
    fitting = [step for step in steps if step[0] <= size] if size else []
    plain = next(step for step in steps if step[0] == 1.0)
    return fitting[-1] if fitting else (steps[0] if size else plain)


def count_decimals(value: float, half_width: float | None) -> int:
    """Return how many decimals to print: the half width has at least 5 in the last place."""
    if half_width:
        return min(max(math.ceil(-math.log10(half_width / 5)), 0), MOST_DECIMALS)
    if value == 0 or float(value).is_integer():
        return 0
    return min(max(3 - math.floor(math.log10(abs(value))), 0), MOST_DECIMALS)


def count_common_decimals(intervals: Sequence[Interval], factor: float) -> int:
    """Return the decimals of means in one column: by interval, and 3 digits of the largest mean."""
    means = [abs(one.mean / factor) for one in intervals]
    halves = [one.half_width and one.half_width / factor for one in intervals]
    wanted = [count_decimals(mean, half) for mean, half in zip(means, halves, strict=True)]
    largest = max(means, default=0.0)
    least = 2 - math.floor(math.log10(largest)) if largest else 0
    return min(max([least, *wanted]), MOST_DECIMALS)


def format_number(value: float | None, factor: float = 1.0, places: int = 0) -> str:
    """Format `−1.23` with a true minus sign; `–` for None; `3.1e−09` if decimals would show 0."""
    if value is None:
        return MISSING
    text = f"{value / factor:.{places}f}"
    if abs(value / factor) >= HUGE or (value and places == MOST_DECIMALS and not float(text)):
        text = f"{value / factor:.3g}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def format_level_number(number: float) -> str:
    """Format the number of a level as the study has it: `1048576`, `0.5`, `2e−09`."""
    return f"{number:.12g}".replace("-", "−")


def format_times(ratio: float, low: float, high: float) -> tuple[str, str]:
    """Format a ratio and its interval as `20` and `9 … 31`.

    They are rounded to the place in which the half width is 2 or more. No number is rounded to 0 or
    1.
    """
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
    """Format one number with its unit, in four digits: `1.234 MB`."""
    if value is None:
        return MISSING
    factor, name = choose_prefix(value, unit)
    return (
        f"{format_number(value, factor, count_decimals(value / factor, None))} {name}".removesuffix(
            " 1"
        )
    )


def format_binary(value: float | None) -> str:
    """Format a memory size as `3.1 GiB`; `–` for None."""
    if value is None:
        return MISSING
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024:
            return f"{value:.3g} {unit}" if unit != "B" else f"{value:.0f} B"
        value /= 1024
    return f"{value:.4g} TiB"


def format_mean(interval: Interval, unit: str | None) -> str:
    """Format `800 ± 32 ms`: the mean and its half interval in one unit.

    An asymmetric interval is printed with both ends: `26 (8 … 70) ms`.
    """
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
    """Return how far the interval extends below and above the mean; 0 if it has no ends."""
    if interval.low is None or interval.high is None:
        return 0.0, 0.0
    return interval.mean - interval.low, interval.high - interval.mean


PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)\s?%")


def parse_percent(text: object) -> float | None:
    """Return 0.02 for `2%`; None unless it is a text of more than 0 and less than 100 percent."""
    match = PERCENT.fullmatch(text) if isinstance(text, str) else None
    return float(match[1]) / 100 if match and float(match[1]) else None
