"""Node lists from anywhere: expanded as Slurm does, or refused in one line and little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources import slurm_field_values
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states

WIDE = "[0-9999]"
TOO_MANY = (
    "n[1-99999][1-99999]",
    "a[1-600000],b[1-600000]",
    "n[1-600000,1-600000]",
    f"n{WIDE * 300}",
)
WRONG = (
    "n[1-2",
    "n1-2]",
    "n[]",
    "n[a]",
    "n[1-]",
    "n[\u00b2]",
    f"n[{'9' * 5000}]",
    "n[" + "1-2" * 9999,
)


def test_names_keep_their_order_and_zeros() -> None:
    assert slurm_field_values.expand_nodes("n[1-2,07-09],login,r[1-2]c[3,5]") == [
        *("n1", "n2", "n07", "n08", "n09", "login", "r1c3", "r1c5", "r2c3", "r2c5")
    ]  # fmt: skip


@pytest.mark.parametrize("text", TOO_MANY)
def test_more_nodes_than_there_are(text: str) -> None:
    with pytest.raises(UsageError, match="more than 1000000 nodes") as caught:
        slurm_field_values.expand_nodes(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_list_is_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="^node list '") as caught:
        slurm_field_values.expand_nodes(text)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_a_product_that_is_refused_takes_no_memory() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(UsageError):
            slurm_field_values.expand_nodes(f"n{WIDE * 300}")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["1-5:0", "1-5:x", "1-5:", "1-99999999"])
def test_indices_of_an_array_have_the_same_bounds(text: str) -> None:
    with pytest.raises(UsageError):
        list(slurm_field_values.parse_waiting_tasks(text))
    assert slurm_task_states.expand_indices(f"[{text}]") == []
