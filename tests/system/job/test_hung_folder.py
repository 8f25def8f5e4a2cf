"""Samplers that wait for a record folder that does not answer: they are counted, and limited."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.hung_folder import Mounted, needed, waiting_samplers
from tests.system.job.test_trouble import ours
from tests.waiting import wait_for

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.doctor import local_node as doctor

LIMIT = 64
HELD_S, BUSY_S = 5.0, 4.0  # and what a busy machine adds


def look(node: Any) -> Check:
    """The doctor's one line of the record folder."""
    folders = (f"--record-dir={node.records}", f"--run-dir={node.run}")
    (check,) = doctor.query_program(find_node_program(), "--only=record folder", *folders)
    return check


def waiting(node: Any) -> list[Path]:
    return list((node.run / "sample").glob(".opening.*"))


def test_a_sampler_counts_as_waiting_until_the_folder_answers(node: Any) -> None:
    needed()
    mounted = Mounted(node.base / "behind", node.records)
    try:
        mounted.hang()
        assert node.begin("7.srv").returncode == 0
        (mark,) = wait_for("the sampler waits", lambda: waiting(node))
        os.utime(mark, (time.time() - 60,) * 2)
        check = look(node)
        assert check.state == "warning"
        assert "has not answered within 2 s; 1 samplers wait for it" in check.found
        assert f"from {LIMIT} on new jobs run unmeasured" in check.found
        mounted.answer()
        wait_for("it has its record", lambda: not waiting(node))
        node.end("7.srv")
        assert node.record("7.srv")["job"]["job_id"] == "7.srv"
        assert "has not answered" not in look(node).found
    finally:
        mounted.end()


def test_a_folder_that_hangs_holds_a_jobs_end_for_5_s_at_most(node: Any) -> None:
    """It was 12.7 s: the sampler's answer, its messages, its end and its record each had a limit."""
    needed()
    mounted = Mounted(node.base / "behind", node.records)
    took_s = []
    try:
        for job in ("7.srv", "8.srv", "9.srv"):  # a busy machine may be late, too
            took_s.append(held_end_s(node, mounted, job))
            if took_s[-1] < HELD_S + BUSY_S:
                break
        assert min(took_s) < HELD_S + BUSY_S, took_s
    finally:
        mounted.end()


def held_end_s(node: Any, mounted: Mounted, job: str) -> float:
    """How long the job's end takes while the folder hangs."""
    assert node.begin(job, "--rate=20").returncode == 0
    wait_for("its record is begun", lambda: list(mounted.behind.rglob(f"{job}/*.csv")))
    mounted.hang()
    before_s = time.monotonic()
    node.end(job)
    took_s = time.monotonic() - before_s
    mounted.answer()
    wait_for("its sampler ends once the folder answers", lambda: not ours(node.run))
    assert node.record(job)["end_unix_s"]
    return took_s


def test_at_the_limit_a_job_runs_unmeasured_and_the_next_one_after_it_does_not(node: Any) -> None:
    with waiting_samplers(node.run, LIMIT):
        done = node.begin("7.srv")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"7.srv: not sampled: {LIMIT} samplers of this node wait already" in node.log
        assert f"for the record folder {node.records}, which does not answer" in node.log
        assert node.end("7.srv")["nodes_measured"] == 0
    assert node.left() == []
    assert node.begin("8.srv").returncode == 0
    assert node.end("8.srv")["nodes_measured"] == 1


@pytest.mark.parametrize(("count", "alive"), [(LIMIT - 1, True), (LIMIT, False)])
def test_below_the_limit_or_with_files_of_killed_samplers_a_job_is_measured(
    node: Any, count: int, alive: bool
) -> None:
    with waiting_samplers(node.run, count, alive) as folder:
        assert node.begin("7.srv").returncode == 0
        assert node.end("7.srv")["nodes_measured"] == 1
        assert len(list(folder.glob(".opening.*"))) == (count if alive else 0)


def test_a_sweep_removes_what_samplers_left_that_were_killed_while_they_waited(node: Any) -> None:
    """On an idle node nothing else did: the next job's begin alone counted them."""
    with waiting_samplers(node.run, 2, alive=False) as folder:
        node.sweep()
        assert not list(folder.glob(".opening.*"))
