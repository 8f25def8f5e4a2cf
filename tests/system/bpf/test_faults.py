"""Page faults: the kernel's count for a job, and its report for a command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources.records import read_record

from ..sampler.conftest import Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import PROGRAM

CHILDREN, PAGES = 20, 1000
LATE = 3
OWN = 500  # pages that a process needs at most before it has done anything
BELOW_BPFFS = 'mount -t bpf bpf "$0"; exec "$@"'
Load = Callable[[str], tuple[str, ...]]


@pytest.fixture
def faults(tmp_path: Path) -> Load:
    """Run a load that reports its own page faults, and those of all its children."""
    program, source = tmp_path / "faults", Path(__file__).parent / "faults.c"
    # -z now: the first call of a function writes no page.
    subprocess.run(["gcc", "-O2", "-Wall", "-Wl,-z,now", "-o", program, source], check=True)
    return lambda how: (str(program), how, str(CHILDREN), str(PAGES), str(tmp_path / "cold"))


def check(record: dict[str, Any], told: bytes) -> None:
    """A process may fault on a page or two after it has read its own usage: as it prints and exits."""
    truth = json.loads(told)
    assert record["memory"]["major_faults"] == truth["major_faults"]
    assert 0 <= record["memory"]["minor_faults"] - truth["minor_faults"] <= LATE
    processes = CHILDREN * 2 + 1
    assert CHILDREN * PAGES <= truth["minor_faults"] <= CHILDREN * PAGES + processes * OWN


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan"])
@pytest.mark.parametrize("rate", ["10", "0"])
def test_the_kernel_counts_those_of_every_process(
    able: None, sampler: Sampler, tmp_path: Path, faults: Load, how: str, rate: str
) -> None:
    place = tmp_path / "bpffs"
    place.mkdir()
    base = ("--bpf", PROGRAM, "--bpf-base", place / "steelyard")
    done, job = sampler.run(
        list(faults(how)), "--rate", rate, *base, capture_output=True,
        prefix=("unshare", "--mount", "bash", "-c", BELOW_BPFFS, str(place)),
    )  # fmt: skip
    assert job.record["bpf"]["missed_ends"] is not None, {
        k: v for k, v in job.record["missing"].items() if k.startswith(("bpf", "memory"))
    }
    check(job.record, done.stdout)


def test_of_a_job_that_others_start(
    able: None,
    sampler: Sampler,
    tmp_path: Path,
    faults: Load,
    started: Callable[..., subprocess.Popen[str]],
) -> None:
    place = tmp_path / "bpffs"
    place.mkdir()
    root = started("bash", "-c", 'read; "$@"; read', "-", *faults("orphan"))
    job = sampler.attach(
        "--pid", str(root.pid), "--rate", "10", "--bpf", PROGRAM,
        "--bpf-base", place / "steelyard",
        prefix=("unshare", "--mount", "bash", "-c", BELOW_BPFFS, str(place)),
    )  # fmt: skip
    assert root.stdin
    assert root.stdout
    root.stdin.write("\n")
    root.stdin.flush()
    told = root.stdout.readline()
    record = job.end()
    check(record, told.encode())
    path = job.record_path
    assert read_record(path).get("memory.minor_faults") == record["memory"]["minor_faults"]


@pytest.mark.parametrize("how", ["wait", "reaped"])
def test_of_a_command_wait4_tells(sampler: Sampler, faults: Load, how: str) -> None:
    done, job = sampler.run(list(faults(how)), "--bpf", "no", capture_output=True)
    check(job.record, done.stdout)


def test_elsewhere_they_are_not_known(sampler: Sampler) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        record = sampler.attach("--pid", str(process.pid)).end()
        process.kill()
    for name in ("minor_faults", "major_faults"):
        assert record["memory"][name] is None
        assert record["missing"][f"memory.{name}"] == "the sampler has not asked the kernel"
