"""`bpf=yes` in plugstack.conf: a job whose processes nobody waits for is weighed to the byte, and
without it the record says that it is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .conftest import Lab, until

pytestmark = pytest.mark.lab
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "build/bin/steelyard-bpf"
HOWS = ("ignore", "orphan")  # SIGCHLD ignored; the parent is gone before they work
CHILDREN = 250  # of each
BURN_S = 0.003  # by a child
TICK_S = 0.004  # what an end that the kernel did not show may lack
MORE_S = 0.001  # a child's start and end, of an orphan its parent's, too
LATE = "it was told of a step when a program of the step's had begun"


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
    if not said["able"]:
        pytest.skip(f"this kernel cannot count: {said['says']}")


@pytest.fixture
def load(able: None, lab: Lab) -> str:
    program = lab.work / "load"
    source = ROOT / "tests/unit/bpf/load.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source], check=True)
    return str(program)


@contextmanager
def switched(lab: Lab, words: str) -> Iterator[None]:
    """plugstack.conf with these words, too, and steelyard-bpf beside steelyard-node. The slow job,
    which lives on, began without them."""
    until(lambda: any(lab.folder(lab.slow_job).glob("*.json")), "the slow job has its sampler")
    path = lab.cluster.dir / "etc" / "plugstack.conf"
    before = path.read_text()
    node = next(word for word in before.split() if word.startswith("node_program="))
    program = Path(node.partition("=")[2]).with_name(PROGRAM.name)
    shutil.copy2(PROGRAM, program)
    path.write_text(before.replace("\n", f" {words}\n"))
    try:
        yield
    finally:
        path.write_text(before)
        program.unlink()


def weighed(lab: Lab, job: str) -> dict[str, Any]:
    """The record of a job that has ended, complete or not."""
    lab.jobs.append(job)
    until(lambda: job not in lab.queued(), "the job has ended")
    (record,) = lab.records(job, 1, complete=False)
    return record


def allocation(lab: Lab, load: str) -> tuple[dict[str, Any], dict[str, int]]:
    """A step of each kind once the sampler is at work: what is weighed of the job, and the sum of
    what the loads say of themselves and their children."""
    sampled = f"grep -q . {lab.cluster.record_dir}/$SLURM_JOB_ID/*.json 2>/dev/null"
    steps = [f"srun {load} {how} {CHILDREN} {BURN_S * 1e6:.0f}" for how in HOWS]
    script = f"until {sampled}; do sleep 0.05; done; echo $SLURM_JOB_ID; {'; '.join(steps)}"
    done = lab.run("salloc", "-Q", "-n1", "-w", "n1", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    job, *told = done.stdout.splitlines()
    return weighed(lab, job), total(told)


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
    """What `steelyard doctor` says on it."""
    argv = (sys.executable, "-m", "steelyard.wrappers.commands.cli", "doctor", "--json")
    checks = json.loads(lab.run(*argv).stdout)
    (found,) = [check["found"] for check in checks if check["name"] == "kernel counts"]
    return str(found)


def test_every_byte_of_processes_that_nobody_waits_for(lab: Lab, load: str) -> None:
    with switched(lab, "bpf=yes"):
        assert doctor(lab).endswith("bpf=yes: of jobs, too")
        record, truth = allocation(lab, load)
        until(lambda: not status()["loaded"], "nothing is pinned after the last job")
    assert (record["complete"], record["incomplete_reason"]) == (True, None)
    assert (record["io"]["source"], record["cpu"]["source"]) == ("bpf", "bpf")
    assert {name: record["io"][name] for name in truth} == truth
    assert_cpu_is_true(record)


@pytest.mark.parametrize("words", ["", "bpf=no"], ids=["default", "no"])
def test_without_it_the_record_says_what_it_lacks(lab: Lab, load: str, words: str) -> None:
    with switched(lab, words):
        assert "bpf=no: I/O of processes that no sample sees" in doctor(lab)
        record, truth = allocation(lab, load)
    assert "bpf" not in record
    assert record["io"]["source"] != "bpf"
    assert record["complete"] is False
    assert "without anyone's waiting for them" in record["incomplete_reason"]
    assert record["io"]["wchar_bytes"] < truth["wchar_bytes"]


def test_a_batch_job_is_exact_or_says_why_not(lab: Lab, load: str) -> None:
    """Its step may begin before its sampler is at work. The program is there already, as where
    other jobs run."""
    lines = [f"{load} {how} {CHILDREN} {BURN_S * 1e6:.0f} >>known" for how in HOWS]
    with switched(lab, "bpf=yes"):
        subprocess.run([PROGRAM, "load"], check=True)
        record = weighed(lab, lab.sbatch("-w", "n1", "-o", "/dev/null", script="\n".join(lines)))
        until(lambda: not status()["loaded"], "nothing is pinned after the last job")
    truth = total((lab.work / "known").read_text().splitlines())
    more = {name: record["io"][name] - truth[name] for name in truth}
    if record["io"]["source"] == "bpf":
        assert record["complete"] is True
        assert 0 <= more["wchar_bytes"] <= 10  # the shell's
        assert 0 <= more["rchar_bytes"] <= 30_000
        assert_cpu_is_true(record)
    else:
        assert record["complete"] is False
        assert record["missing"]["bpf.missed_ends"] == LATE
