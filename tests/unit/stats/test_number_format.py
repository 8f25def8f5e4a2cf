"""Numbers as people read them."""

from __future__ import annotations

import random

import pytest

from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.number_format import (
    count_decimals,
    format_level_number,
    format_mean,
    format_number,
    format_quantity,
    format_times,
)


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "s", "–"),
        (0.0, "s", "0 s"),
        (1234567.0, "bytes", "1.235 MB"),
        (-0.25, "s", "−250 ms"),
        (3.1e-9, "bytes_per_s", "3.1e−09 B/s"),
        (4.2e20, "Mop/s", "4.2e+20 Mop/s"),
        (0.5, None, "0.5000"),
    ],
)
def test_quantities(value: float | None, unit: str | None, words: str) -> None:
    assert format_quantity(value, unit) == words


def test_means_with_half_their_interval() -> None:
    assert format_mean(Interval(0.8, 0.768, 0.832, 5), "s") == "800 ± 32 ms"
    assert format_mean(Interval(2e-60, 1e-60, 3e-60, 5), "Mop/s") == "2e−60 ± 1e−60 Mop/s"
    assert format_mean(Interval(12.0, None, None, 1), "s") == "12 s"


def test_no_number_is_told_as_0_or_by_a_row_of_digits() -> None:
    chance = random.Random(4)
    for _ in range(500):
        value = chance.choice((-1, 1)) * 10 ** chance.uniform(-70, 70)
        words = format_number(value, 1.0, count_decimals(value, None))
        assert len(words) < 20 and float(words.replace("−", "-")) == pytest.approx(value, rel=0.01)


@pytest.mark.parametrize(
    ("level", "words"),
    [
        (8.0, "8"),
        (0.5, "0.5"),
        (-0.1, "−0.1"),
        (1048576.0, "1048576"),
        (2e-9, "2e−09"),
        (1e20, "1e+20"),
    ],
)
def test_a_levels_number_is_as_in_the_study(level: float, words: str) -> None:
    assert format_level_number(level) == words


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (19.61, 8.69, 30.57, ("20", "9 … 31")),
        (196.0, 87.0, 305.0, ("200", "90 … 300")),
        (196.0, 0.87, 305.0, ("200", "0.9 … 300")),  # no end is 0 that is not
        (3.0, 1.004, 5.0, ("3.0", "1.004 … 5.0")),  # nor 1
        (2.9, 2.9, 2.9, ("2.9", "")),
        (1.33e9, 5e8, 3e9, ("1.3e+09", "5e+08 … 3e+09")),
    ],
)
def test_times_have_no_more_digits_than_the_interval_allows(
    ratio: float, low: float, high: float, words: tuple[str, str]
) -> None:
    assert format_times(ratio, low, high) == words
