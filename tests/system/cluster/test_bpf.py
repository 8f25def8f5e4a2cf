"""The kernel counts: a job whose processes no process waits for is measured to the byte.

A batch job is measured from its first process on. With `bpf=no` in plugstack.conf the record states
that this is not so.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.system.cluster.test_netem_faults import kill, restart_slurmd, slurmd
from tests.throwaway_lab import UNCOUNTED, Lab, until

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build/bin/steelyard-bpf"
HOWS = ("ignore", "orphan")  # SIGCHLD ignored; the parent is gone before they work
CHILDREN = 100  # of each
BURN_S = 0.003  # by a child
TICK_S = 0.004  # may be missing of an end that the kernel did not show
MORE_S = 0.001  # a child's start and end, of an orphan its parent's, too


def status() -> dict[str, Any]:
    argv = [PROGRAM, "status", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    said = json.loads(done.stdout)
    assert isinstance(said, dict)
    return said


@pytest.fixture(scope="module")
def able() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may put a program into the kernel")
    if not PROGRAM.exists():
        pytest.skip("no steelyard-bpf: libbpf-dev or clang was missing when it was built")
    said = status()
    if not said["supported"]:
        pytest.skip(f"this kernel cannot count: {said['message']}")


@pytest.fixture
def load(able: None, lab: Lab) -> str:
    program = lab.work / "load"
    source = ROOT / "tests/system/bpf/load.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source], check=True)
    return str(program)


@contextmanager
def switched(lab: Lab, words: str) -> Iterator[None]:
    """plugstack.conf with these words, too."""
    path = lab.cluster.dir / "etc" / "plugstack.conf"
    before = path.read_text()
    path.write_text(before.replace("\n", f" {words}\n"))
    try:
        yield
    finally:
        path.write_text(before)


def measured(lab: Lab, job: str) -> dict[str, Any]:
    """The record of a job that has ended, complete or not."""
    lab.jobs.append(job)
    until(lambda: job not in lab.queued(), "the job has ended")
    (record,) = lab.records(job, 1, complete=False)
    return record


def allocation(lab: Lab, load: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Run a step of each kind when the sampler runs; return the job's measured usage, and the
    loads' own.
    """
    sampled = f"grep -q . {lab.cluster.record_dir}/$SLURM_JOB_ID/*.json 2>/dev/null"
    steps = [f"srun {load} {how} {CHILDREN} {BURN_S * 1e6:.0f}" for how in HOWS]
    script = f"until {sampled}; do sleep 0.05; done; echo $SLURM_JOB_ID; {'; '.join(steps)}"
    done = lab.run("salloc", "-Q", "-n1", "-w", "n1", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    job, *told = done.stdout.splitlines()
    return measured(lab, job), total(told)


def total(told: list[str]) -> dict[str, int]:
    assert len(told) == len(HOWS)
    loads = [json.loads(line) for line in told]
    return {name: sum(one[name] for one in loads) for name in loads[0]}


def assert_cpu_is_true(record: dict[str, Any]) -> None:
    children = CHILDREN * len(HOWS)
    burned_s = children * BURN_S
    least_s = burned_s - TICK_S * record["bpf"]["missed_ends"]
    assert least_s <= record["cpu"]["cpu_s"] <= burned_s + MORE_S * children


def doctor(lab: Lab) -> str:
    """Return what `steelyard doctor` prints on a node."""
    argv = (sys.executable, "-m", "steelyard.wrappers.commands.cli", "doctor", "--json")
    checks = json.loads(lab.run(*argv).stdout)
    (found,) = [check["found"] for check in checks if check["name"] == "kernel counts"]
    return str(found)


def assert_exact(record: dict[str, Any], truth: dict[str, int]) -> None:
    said = record["incomplete_reason"], record["missing"].get("bpf.missed_ends")
    assert (record["complete"], *said) == (True, None, None)
    assert (record["io"]["source"], record["cpu"]["source"]) == ("bpf", "bpf")
    assert {name: record["io"][name] for name in truth} == truth


def test_every_byte_of_processes_that_nobody_waits_for(lab: Lab, load: str) -> None:
    with switched(lab, "bpf=yes"):
        assert doctor(lab).endswith("bpf=yes: of jobs, too")
        record, truth = allocation(lab, load)
    assert_exact(record, truth)
    assert_cpu_is_true(record)


def test_without_it_the_record_says_what_it_lacks(lab: Lab, load: str) -> None:
    with switched(lab, "bpf=no"):
        assert "bpf=no: I/O of processes that no sample sees" in doctor(lab)
        record, truth = allocation(lab, load)
    assert "bpf" not in record
    assert record["io"]["source"] != "bpf"
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith(UNCOUNTED)
    assert record["io"]["wchar_bytes"] < truth["wchar_bytes"]


def storm(lab: Lab, load: str, how: str) -> str:
    """A batch job that begins with processes for which nobody waits; its file holds what it did."""
    script = f"exec {load} {how} {CHILDREN} {BURN_S * 1e6:.0f} >known.$SLURM_JOB_ID"
    return lab.sbatch("-n1", "-w", "n1", "-o", "/dev/null", script=script)


def test_batch_jobs_are_exact_from_their_first_process_on(lab: Lab, load: str) -> None:
    """Their scripts run before their samplers do. One after another, then at once: of the first it
    is loaded, the others find it there."""
    jobs = []
    with switched(lab, "bpf=yes"):
        for how in HOWS:
            jobs.append(storm(lab, load, how))
            until(lambda: jobs[-1] not in lab.queued(), "the job has ended")
        jobs += [storm(lab, load, how) for how in HOWS * 2]
        until(lambda: not lab.queued() & set(jobs), "all have ended")
    for job in jobs:
        truth = json.loads((lab.work / f"known.{job}").read_text()) if measured(lab, job) else {}
        (record,) = lab.records(job, 1)
        assert_exact(record, truth)


def holds(pid: int) -> bool:
    """Whether that process keeps the folder open in which the kernel's program is pinned; the slurmds
    of other nodes, which run on this kernel, too, may do so as well."""
    with suppress(FileNotFoundError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if entry.readlink().match("/sys/fs/bpf/steelyard/v*"):
                    return True
    return False


@contextmanager
def fresh_slurmd(lab: Lab, words: str) -> Iterator[None]:
    """Restart slurmd with these options, and again without them."""
    try:
        with switched(lab, words):
            kill(slurmd(lab))
            restart_slurmd(lab)
            yield
    finally:
        kill(slurmd(lab))
        restart_slurmd(lab)


def test_slurmd_holds_it_for_the_first_job_and_lets_go_at_its_end(lab: Lab, load: str) -> None:
    with fresh_slurmd(lab, "bpf=yes"):
        first = slurmd(lab)
        until(lambda: holds(first), "slurmd holds it")
        job = storm(lab, load, "ignore")
        record = measured(lab, job)
        assert holds(first) and status()["loaded"]
        os.kill(first, signal.SIGTERM)
        until(lambda: not holds(first), "slurmd has let go")
        restart_slurmd(lab)
        second = slurmd(lab)
        until(lambda: holds(second), "the next slurmd holds it")
    assert_exact(record, json.loads((lab.work / f"known.{job}").read_text()))
    until(lambda: not holds(second), "one that was killed holds nothing")
