"""`status` and collect report jobs that PBS ended by the same rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.wrappers.schedulers import ledger

from .conftest import PaperPbs
from .test_pbs import folder_of, progress, submitted

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def test_a_client_that_was_stopped_before_its_run_noticed_is_cancelled(
    pbs: PaperPbs, write_study: Write, finish_run: Callable[..., None], capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    entry = ledger.read_submissions(folder_of(path))[0]
    words = {"job_id": "7[0].vm", "reason": "client 0 on n1 exited with 143: Terminated"}
    finish_run(folder_of(path).run(entry.run_ids[0]), "7[0].vm.0", "failed", **words)
    letter, name = {"torque": ("C", "exit_status"), "openpbs": ("F", "Exit_status")}[pbs.dialect]
    pbs.set_tasks("7[].vm", letter, "Q", "Q", "Q")
    pbs.change(attributes={"7[0].vm": {name: 271, "run_count": 1, "exec_host": "vm/0"}})
    failures = progress(path, capsys)["failures"]
    assert isinstance(failures, list)
    assert [(f["run_id"], f["state"]) for f in failures] == [(entry.run_ids[0], "cancelled")]


@pytest.mark.parametrize(
    ("status", "mine", "found"),
    [
        (0, "7[0].vm", "completed"),
        (271, "7[0].vm", "cancelled"),
        (271, "3[0].vm", "completed"),  # the result is of another submission's job
        (-29, "7[0].vm", "timeout"),
    ],
)
def test_status_believes_of_a_killed_job_what_collect_believes(
    pbs: PaperPbs, write_study: Write, finish_run: Callable[..., None], capsys: Capture,
    status: int, mine: str, found: str,
) -> None:  # fmt: skip
    """qdel and walltime end the children first: the run may write `completed` then."""
    path = write_study()
    submitted(path)
    entry = ledger.read_submissions(folder_of(path))[0]
    for index, run_id in enumerate(entry.run_ids):
        job_id = mine if index == 0 else f"7[{index}].vm"
        times = {"start_unix_s": 1.7e9, "end_unix_s": 1.7e9 + 2}
        finish_run(folder_of(path).run(run_id), f"{job_id}.0", job_id=job_id, scheduler="pbs", **times)  # fmt: skip
    letter, name = {"torque": ("C", "exit_status"), "openpbs": ("F", "Exit_status")}[pbs.dialect]
    pbs.set_tasks("7[].vm", *[letter] * 4)
    code = -11 if status == -29 and pbs.dialect == "torque" else status
    began = "Thu Nov 19 10:00:00 2026"
    told = {"run_count": 1, "exec_host": "vm/0", "start_time": began, "stime": began}
    pbs.change(attributes={f"7[{i}].vm": {**told, name: 0 if i else code} for i in range(4)})
    seen = progress(path, capsys)
    assert seen["done"] == (4 if found == "completed" else 3)
    failures = seen["failures"]
    assert isinstance(failures, list)
    assert [f["state"] for f in failures] == ([] if found == "completed" else [found])
