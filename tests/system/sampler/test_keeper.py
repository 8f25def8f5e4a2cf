"""Who keeps a job's place in its cgroup is not the job: Slurm's extern step and its `sleep`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FREEZER = Path("/sys/fs/cgroup/freezer")
MIB = 1 << 20
# Says its resident set when it is ready, and that it has ended when it is told to end.
PROGRAM = """
import sys, subprocess
memory = bytearray({mib} << 20)
memory[::4096] = b"x" * len(memory[::4096])
child = subprocess.Popen(["sleep", "1000"]) if {with_child} else None
print(int(open("/proc/self/statm").read().split()[1]) * 4096, flush=True)
sys.stdin.readline()
if child:
    child.kill()
    child.wait()
"""


@pytest.fixture
def group() -> Iterator[Path]:
    if os.geteuid() != 0 or not (FREEZER / "cgroup.procs").exists():
        pytest.skip("needs root and a freezer of cgroup version 1")
    path = FREEZER / f"steelyard-test-{os.getpid()}"
    path.mkdir()
    yield path
    path.rmdir()


def start(group: Path, mib: int, with_child: bool) -> tuple[subprocess.Popen[str], int]:
    """A process in the group, and its resident set in bytes."""
    join = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()))"
    program = join + PROGRAM.format(mib=mib, with_child=with_child)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_the_keeper_and_its_children_are_not_counted(sampler: Any, group: Path) -> None:
    keeper, _ = start(group, 64, True)
    worker, worker_bytes = start(group, 16, False)
    attached = sampler.attach("--watch", str(keeper.pid), "--rate", "50")
    attached.send(f"cgroup /{group.name}")
    for _ in range(3):
        attached.totals()
    worker.communicate("\n")
    record = attached.end()
    keeper.communicate("\n")
    assert record["processes"]["max_processes"] == 1
    assert abs(record["memory"]["max_memory_bytes"] - worker_bytes) < 2 * MIB


def test_a_group_of_that_name_that_the_job_is_not_in_does_not_count(
    sampler: Any, group: Path
) -> None:
    """proctrack/cgroup alone uses the freezer; an earlier job may have left the others behind."""
    left = FREEZER.with_name("cpuacct") / group.name
    left.mkdir()
    try:
        attached = sampler.attach("--rate", "50")
        worker, _ = start(group, 16, False)
        attached.send(f"cgroup /{group.name}")
        used_s = float(Path(f"/proc/{worker.pid}/schedstat").read_text().split()[0]) / 1e9
        assert abs(attached.totals()["cpu_s"] - used_s) < 0.02
        worker.communicate("\n")
        assert attached.end()["cpu"]["source"] == "processes"
    finally:
        left.rmdir()
