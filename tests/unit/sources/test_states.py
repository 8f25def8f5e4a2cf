"""What becomes of Slurm's words for a job's state: the same in collect and in status."""

from __future__ import annotations

import pytest

from steelyard.analysis.sources import sacct
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states

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
