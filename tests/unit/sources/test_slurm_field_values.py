"""Node lists are expanded as Slurm does or refused in one line; a state has one name everywhere."""

from __future__ import annotations

import tracemalloc

import pytest

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources import sacct, slurm_field_values
from steelyard.analysis.sources.study_files import Submission
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


# The states of squeue(1) and sacct(1) that a job can end in -> docs/formats.md part 8.
ENDS = {
    "BOOT_FAIL": "node_fail",
    "CANCELLED": "cancelled",
    "CANCELLED by 1000": "cancelled",
    "COMPLETED": "completed",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PREEMPTED": "cancelled",
    "REQUEUED": "requeued",
    "REVOKED": "cancelled",
    "TIMEOUT": "timeout",
}


@pytest.mark.parametrize(("said", "state"), ENDS.items())
def test_an_end_has_one_name_in_collect_and_status(said: str, state: str) -> None:
    fields = dict.fromkeys(sacct.FIELDS, "") | {"JobID": "12_0", "JobIDRaw": "13", "State": said}
    row = sacct.parse_row([fields[name] for name in sacct.FIELDS])
    assert row is not None and row.state == state
    entry = Submission("b001-x", "slurm", None, "12", 0.0, 1, [], ["a"])
    tasks = slurm_task_states.parse_ended([row], {"12": entry})
    assert tasks["a"].state == state


WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD")


@pytest.mark.parametrize("said", [*WAITING, "RUNNING", "COMPLETING", "SUSPENDED", "A_NEW_ONE"])
def test_the_queue_s_words_come_from_the_same_table(said: str) -> None:
    entry = Submission("b001-x", "slurm", None, "12", 0.0, 1, (), ("a",))
    tasks = slurm_task_states.parse_squeue(f"12|0|13|{said}|None\n", {"12": entry})
    assert tasks["a"].state == ("pending" if said in WAITING else "running")


@pytest.mark.parametrize(
    ("said", "start", "end", "state"),
    [
        ("LAUNCH_FAILED", "100", "Unknown", "failed"),
        ("RECONFIG_FAIL", "100", "200", "failed"),
        ("POWER_UP_NODE", "Unknown", "Unknown", "pending"),
        ("EXPEDITING", "Unknown", "Unknown", "pending"),
        ("UPDATE_DB", "100", "200", "failed"),
        ("NEVER_HEARD_OF", "100", "Unknown", "running"),
        ("NEVER_HEARD_OF", "Unknown", "Unknown", "pending"),
    ],
)
def test_states_of_new_releases(said: str, start: str, end: str, state: str) -> None:
    """The reason contains Slurm's own word."""
    told = {"JobID": "1", "JobIDRaw": "1", "State": said, "Start": start, "End": end}
    fields = dict.fromkeys(sacct.FIELDS, "") | told
    row = sacct.parse_row([fields[name] for name in sacct.FIELDS])
    assert row is not None and row.state == state
    assert said in (row.reason or "")
