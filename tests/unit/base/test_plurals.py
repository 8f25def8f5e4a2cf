"""Numbers of things in sentences."""

from __future__ import annotations

import pytest

from steelyard.jobscripts.plurals import counted, counted_range, inflect


@pytest.mark.parametrize(
    ("number", "words"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs"), (1000, "1000 runs")]
)
def test_one_thing_is_singular(number: int, words: str) -> None:
    assert counted(number, "run") == words


def test_a_plural_of_its_own() -> None:
    assert counted(2, "process", "processes") == "2 processes"
    assert [inflect(number, "is", "are") for number in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("numbers", "words"), [([1], "1 run"), ([3, 3], "3 runs"), ([5, 1, 3], "1 to 5 runs")]
)
def test_a_range_is_that_of_its_larger_end(numbers: list[int], words: str) -> None:
    assert counted_range(numbers, "run") == words
