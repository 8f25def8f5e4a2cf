"""A guest's wall clock is set while a job with a network condition runs on it: what its record counts
is what the job has used, by the kernel's count and a clock of another machine; the condition is
undone."""

from __future__ import annotations

import csv
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import Job, address, states, submit, tree
from tests.throwaway_lab import LATE, Lab, is_late, is_whole, until

NODE = "v1"

# Works for a moment before the clock is set and after it; its usage is that of sh's own times and
# its children.
SCRIPT = """
work() { head -c 5000000 /dev/zero >/dev/null; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; }
work; touch running.$SLURM_JOB_ID
until [ -e go.$SLURM_JOB_ID ]; do sleep 0.5; done
work; touch worked.$SLURM_JOB_ID
until [ -e end.$SLURM_JOB_ID ]; do sleep 0.5; done
times >times.$SLURM_JOB_ID
"""
MORE_CPU_S = 0.6  # the script's start, and slurmstepd's: a guest's processes start slowly


def set_clock(lab: Lab, to: str) -> None:
    """The guest's alone: it has its own."""
    done = lab.cluster.find_guest(NODE).run(["date", "-s", to])
    assert done.returncode == 0, done.stderr


@contextmanager
def right_afterwards(lab: Lab) -> Iterator[None]:
    """Correct the clock afterwards, as an administrator or NTP does."""
    try:
        yield
    finally:
        set_clock(lab, f"@{time.time():.3f}")


def begin(lab: Lab) -> Job:
    """A job that has worked once, and is being delayed."""
    spec = f"delay=30ms,to={address(lab.cluster, 'n1')}"
    job = submit(lab, spec, "-w", NODE, "--exclusive", script=SCRIPT)
    lab.wait_running(job.id)
    assert "delay 30ms" in tree(lab.cluster, NODE)
    return job


def work(job: Job) -> None:
    (job.lab.work / f"go.{job.id}").touch()
    until((job.lab.work / f"worked.{job.id}").exists, "it has worked once more")


def used_s(job: Job) -> float:
    """CPU time of the shell and of its children: lines of `0m1.50s 0m0.25s`."""
    words = (job.lab.work / f"times.{job.id}").read_text().split()
    assert len(words) == 4
    return sum(60 * float(m) + float(s.rstrip("s")) for m, s in (w.split("m") for w in words))


def samples(job: Job) -> list[dict[str, Any]]:
    (path,) = job.lab.folder(job.id).glob("*.csv")
    with path.open(encoding="ascii", newline="") as file:
        return list(csv.DictReader(file))


def assert_right(job: Job, least_s: float, most_s: float) -> None:
    """Its record, by whatever clock the guest had."""
    record = job.record
    assert is_whole(record, LATE), record["incomplete_reason"]
    assert least_s <= record["elapsed_s"] <= most_s
    took = record["end_unix_s"] - record["start_unix_s"]
    # Both clocks are read one after the other, in a guest that its host holds up; the second of the
    # start is the one that the record's name has.
    assert took <= record["elapsed_s"] + 1.2
    if not is_late(record):  # samples begin with the job
        assert took >= record["elapsed_s"] - 0.2
    # User Mode Linux counts time that its host took away; more than its one CPU has had there is not.
    assert used_s(job) - 0.1 <= record["cpu"]["cpu_s"] <= record["elapsed_s"] + MORE_CPU_S
    assert 10_000_000 <= record["io"]["wchar_bytes"] < 10_100_000
    times = [float(row["unix_s"]) for row in samples(job)]
    assert all(0 <= later - earlier < 30 for earlier, later in itertools.pairwise(times))
    # Valid, undone by the job, and in force as long as it ran.
    held = job.conditions["end_unix_s"] - job.conditions["start_unix_s"]
    assert 0 < held <= most_s


def test_an_hour_back_and_forward_again(virtual_lab: Lab) -> None:
    """Slurm's nodes talk to nobody while their clocks are an hour off: somebody sets them right."""
    lab = virtual_lab
    before = tree(lab.cluster, NODE)
    submitted = time.monotonic()
    with right_afterwards(lab):
        job = begin(lab)
        running = time.monotonic()
        set_clock(lab, "1 hour ago")
        time.sleep(1)
        work(job)
        time.sleep(1)
        set_clock(lab, f"@{time.time():.3f}")
        time.sleep(1)
        (lab.work / f"end.{job.id}").touch()
        worked = time.monotonic()
        lab.wait_state(job.id, "COMPLETED")
    record = job.record
    assert_right(job, worked - running, time.monotonic() - submitted)
    assert record["clock"]["steps"] == 2
    assert record["clock"]["step_s"] == pytest.approx(0, abs=5)
    assert tree(lab.cluster, NODE) == before
    assert not states(lab.cluster, NODE)


@pytest.mark.parametrize("off", ["-200", "+100"])
def test_left_off_until_after_the_job_and_the_next_one(virtual_lab: Lab, off: str) -> None:
    """As far as Slurm's messages and credentials allow; the next job's record has an odd start."""
    lab = virtual_lab
    before = tree(lab.cluster, NODE)
    submitted = time.monotonic()
    with right_afterwards(lab):
        job = begin(lab)
        running = time.monotonic()
        set_clock(lab, f"now {off} seconds")
        work(job)
        time.sleep(1)
        (lab.work / f"end.{job.id}").touch()
        worked = time.monotonic()
        lab.wait_state(job.id, "COMPLETED")
        assert_right(job, worked - running, time.monotonic() - submitted)
        assert tree(lab.cluster, NODE) == before
        next_one = lab.srun("-w", NODE, "--tag=a=b")
        (record,) = lab.records(next_one, 1, complete=False)
    assert job.record["clock"]["steps"] == 1
    assert job.record["clock"]["step_s"] == pytest.approx(int(off), abs=5)
    shown = lab.steelyard("show", job.id)
    assert f"the clock of {NODE} was set once while the job ran" in shown
    assert not states(lab.cluster, NODE)
    assert (record["clock"]["steps"], record["tags"]) == (0, {"a": "b"})
    assert abs(record["start_unix_s"] - time.time() - int(off)) < 120
    assert f"Is the clock of {NODE} off" in lab.steelyard("show", next_one)
