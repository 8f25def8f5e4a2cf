"""steelyard-node sample with the job's cgroup: its CPU and memory, what is not the job's, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

from .roots import CHILD, end_root, wait_ready


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
def test_cpu_and_memory_of_a_cgroup_version_1(sampler: Any) -> None:
    name = f"steelyard-test-{os.getpid()}"
    groups = [Path(f"/sys/fs/cgroup/{controller}/{name}") for controller in ("cpuacct", "memory")]
    for group in groups:
        group.mkdir()
    try:
        attached = sampler.attach("--rate", "10")
        joins = "".join(f"open('{g}/cgroup.procs', 'w').write(str(os.getpid()));" for g in groups)
        code = f"import os;{joins}b = bytearray(50 << 20)\n" + CHILD.format(cpu_s=0.3)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        wait_ready(process, 1)
        attached.send(f"cgroup /{name}")
        totals = attached.totals()
        assert 0.3 <= totals["cpu_s"] < 0.6
        assert 50 << 20 <= totals["max_memory_bytes"] < 100 << 20
        assert totals["wchar_bytes"] is not None  # found by its group, without any root
        end_root(process, 1)
        record = attached.end()
        assert record["cpu"]["source"] == "cgroup1"
        assert record["memory"]["source"] == "cgroup1"
        assert record["cpu"]["user_s"] + record["cpu"]["system_s"] == pytest.approx(
            record["cpu"]["cpu_s"], abs=0.05
        )
    finally:
        for group in groups:
            group.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
def test_a_cgroup_that_goes_before_the_last_sample_has_told_all(sampler: Any, waiting: Any) -> None:
    """Slurm removes a job's group with its last step: the next sample finds none."""
    group = Path(f"/sys/fs/cgroup/cpuacct/steelyard-test-{os.getpid()}")
    group.mkdir()
    try:
        attached = sampler.attach("--rate", "0.01")
        step = subprocess.Popen(["sleep", "60"])  # in place of its daemon
        attached.send(f"root {step.pid}", f"cgroup /{group.name}")
        attached.totals()  # it knows the group, and nobody is in it
        known = len(attached.samples)
        join = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()));"
        process = subprocess.Popen(
            [sys.executable, "-c", join + CHILD.format(cpu_s=0.3)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        wait_ready(process, 1)
        end_root(process, 1)
        used_us = int((group / "cpuacct.usage").read_text()) // 1000
        attached.send(f"done {step.pid} {used_us} 0 0 0 0")
        step.kill()
        step.wait()
        waiting("a sample at the last step's end", lambda: len(attached.samples) > known)
    finally:
        group.rmdir()
    cpu = attached.end()["cpu"]
    assert cpu["cpu_s"] == pytest.approx(used_us / 1e6, abs=1e-5)
    # A sampler that came to its sample after the group had gone has the step's own word alone.
    parts = [cpu["user_s"], cpu["system_s"]]
    assert parts == [None, None] or sum(parts) == pytest.approx(cpu["cpu_s"], abs=1e-5)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
def test_what_an_earlier_job_left_in_its_cgroup_does_not_count(sampler: Any) -> None:
    """A killed extern step leaves the group, and the next job of that id is given it."""
    group = Path(f"/sys/fs/cgroup/cpuacct/steelyard-test-{os.getpid()}")
    group.mkdir()
    join = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()));"
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    try:
        subprocess.run([sys.executable, "-c", join + burn], check=True, timeout=30)
        left_s = int((group / "cpuacct.usage").read_text()) / 1e9
        assert left_s > 0.3
        attached = sampler.attach("--rate", "10")
        # It has used some before it was put there, as the first task of a job has.
        code = burn.replace("0.4", "0.1") + "\n" + join + CHILD.format(cpu_s=0.3)
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        wait_ready(process, 1)
        attached.send(f"cgroup /{group.name}")
        used_s = float(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
        measured_s = attached.totals()["cpu_s"]
        assert abs(measured_s - used_s) < 0.02
        end_root(process, 1)
        assert attached.end()["cpu"]["source"] == "cgroup1"
    finally:
        group.rmdir()


MIB = 1 << 20
# Fills its group's limit with page cache (read in single pages), then holds `kids` × `each` bytes.
FULL_OF_CACHE = """
import mmap, os, sys
group, path, kids, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
open(f"{group}/cgroup.procs", "w").write(str(os.getpid()))
file = os.open(path, os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
for at in range(0, os.fstat(file).st_size, 4096):
    os.pread(file, 4096, at)
print("full", flush=True)
sys.stdin.readline()
for _ in range(kids):
    if os.fork() == 0:
        memory = mmap.mmap(-1, each, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, each, 4096):
            memory[at] = 1
        os.write(1, b"held\\n")
        sys.stdin.readline()
        os._exit(0)
os.write(1, b"held\\n")
for _ in range(kids):
    os.wait()
"""
needs_memory_group = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/sys/fs/cgroup/memory/memory.stat").exists(),
    reason="needs root and a memory cgroup of version 1",
)


@pytest.fixture
def memory_group() -> Iterator[Path]:
    group = Path(f"/sys/fs/cgroup/memory/steelyard-test-{os.getpid()}")
    group.mkdir()
    yield group
    for pid in (group / "cgroup.procs").read_text().split():  # of a test that has failed
        os.kill(int(pid), signal.SIGKILL)
    wait_for("nobody is in the group", lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def start_in_group(code: str, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@needs_memory_group
def test_memory_of_a_group_that_is_full_of_page_cache(
    sampler: Any, tmp_path: Path, memory_group: Path
) -> None:
    """At the limit page cache gives way to anonymous memory, and the charge stays where it is.

    Truth: what the processes have touched themselves.
    """
    limit, kids, each = 64 * MIB, 6, 6 * MIB
    (memory_group / "memory.limit_in_bytes").write_text(str(limit))
    file = tmp_path / "file"
    with file.open("wb") as out:
        out.write(bytes(160 * MIB))
        os.fsync(out)  # what is dirty cannot be dropped from the cache
    attached = sampler.attach("--rate", "1")
    process = start_in_group(FULL_OF_CACHE, memory_group, file, kids, each)
    assert process.stdout is not None and process.stdin is not None
    assert process.stdout.readline() == "full\n"
    charged = int((memory_group / "memory.usage_in_bytes").read_text())
    assert charged > 0.9 * limit
    attached.send(f"cgroup /{memory_group.name}")
    before = attached.totals()["max_memory_bytes"]
    process.stdin.write("\n")
    process.stdin.flush()
    for _ in range(kids + 1):
        assert process.stdout.readline() == "held\n"
    known = len(attached.samples)
    wait_for("two samples of what is held", lambda: len(attached.samples) > known + 2)
    process.communicate("\n" * kids)
    record = attached.end()
    memory = record["memory"]
    assert kids * each < memory["max_memory_bytes"] - before < kids * each + 6 * MIB
    assert memory["source"] == "cgroup1"
    assert 0.9 * limit < memory["charged_peak_bytes"] <= limit


SHARED = """
import mmap, os, sys
group, size, mapped = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "mapped"
open(f"{group}/cgroup.procs", "w").write(str(os.getpid()))
name = f"/dev/shm/steelyard-test-{os.getpid()}"
file = os.open(name, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600)
os.unlink(name)
for _ in range(0, size, 1 << 20):
    os.write(file, bytes(1 << 20))
if mapped:
    memory = mmap.mmap(file, size)
    sum(memory[::4096])
print("ready", os.fstat(file).st_blocks * 512, flush=True)
sys.stdin.readline()
"""


@needs_memory_group
@pytest.mark.parametrize("mapped", ["mapped", "written"])
def test_files_in_memory_count_once(sampler: Any, memory_group: Path, mapped: str) -> None:
    """A file in /dev/shm counts against the job's limit, whether somebody maps it or not."""
    attached = sampler.attach("--rate", "10")
    process = start_in_group(SHARED, memory_group, 80 * MIB, mapped)
    assert process.stdout is not None
    truth = int(process.stdout.readline().split()[1])
    assert truth == 80 * MIB
    attached.send(f"cgroup /{memory_group.name}")
    measured = attached.totals()["max_memory_bytes"]
    process.communicate("\n")
    attached.end()
    assert truth < measured < truth + 24 * MIB  # and Python's own


def made_group(tree: Path) -> Path:
    group = tree / "sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\nsystem_usec 0\n")
    return group


def test_memory_is_read_once_a_second_however_seldom_samples_are(
    sampler: Any, tmp_path: Path
) -> None:
    group = made_group(tmp_path / "tree")
    stat = group / "memory.stat"
    stat.write_text("anon 4000000\nfile_mapped 0\nshmem 0\n")
    attached = sampler.attach("--root", tmp_path / "tree", "--rate", "0.01")
    attached.send("cgroup /system.slice/job_7")
    attached.totals()
    stat.write_text("anon 70000000\nfile_mapped 0\nshmem 0\n")
    os.utime(stat, (0, 0))
    wait_for("the file is read between two samples", lambda: stat.stat().st_atime > 0)
    stat.write_text("anon 4000000\nfile_mapped 0\nshmem 0\n")
    assert attached.end()["memory"]["max_memory_bytes"] == 70000000


@pytest.mark.parametrize(
    ("mapped", "shared", "counted"), [(3, 90, 90), (95, 90, 95), (7, 0, 7), (7, None, 7)]
)
def test_mapped_and_shared_memory_is_not_added_up(
    sampler: Any, tmp_path: Path, mapped: int, shared: int | None, counted: int
) -> None:
    group = made_group(tmp_path / "tree")
    lines = [f"anon {10 * MIB}", f"file_mapped {mapped * MIB}"]
    lines += [f"shmem {shared * MIB}"] if shared is not None else []
    (group / "memory.stat").write_text("\n".join(lines) + "\n")
    attached = sampler.attach("--root", tmp_path / "tree")
    attached.send("cgroup /system.slice/job_7")
    assert attached.totals()["max_memory_bytes"] == (10 + counted) * MIB
    attached.end()


@pytest.mark.parametrize("left_s", [0.0, 0.3])
def test_what_a_job_used_before_a_busy_node_read_its_cgroup_counts(
    sampler: Any, tmp_path: Path, left_s: float
) -> None:
    """Hundreds of processes of 1 ms had ended, and nobody had waited for them.

    An earlier start of the job may have left its group, with what that start has used.
    """
    group = tmp_path / "tree/sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text(f"usage_usec {(left_s + 0.7) * 1e6:.0f}\n")
    attached = sampler.attach("--root", tmp_path / "tree")
    attached.send(f"counted {left_s * 1e6:.0f}", "cgroup /system.slice/job_7")
    attached.send("counted 900000", "cgroup /system.slice/job_7")  # a later step's
    assert attached.totals()["cpu_s"] == 0.7
    attached.end()


def test_cgroup_version_2_of_a_made_up_tree(sampler: Any, tmp_path: Path) -> None:
    group = tmp_path / "tree/sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    stat = group / "cpu.stat"
    stat.write_text("usage_usec 700000\nuser_usec 400000\nsystem_usec 300000\n")
    (group / "memory.peak").write_text("99000000\n")
    (group / "memory.stat").write_text("anon 4000000\nfile 90000000\nfile_mapped 1000000\n")
    for name, total in (("cpu", 100), ("io", 2000000), ("memory", 0)):
        (group / f"{name}.pressure").write_text(f"some avg10=0.00 total={total}\n")
    attached = sampler.attach("--root", tmp_path / "tree")
    attached.send("cgroup /system.slice/job_7")
    assert attached.totals()["cpu_s"] == 0  # that was an earlier job's
    stat.write_text("usage_usec 3200000\nuser_usec 2400000\nsystem_usec 800000\n")
    record = attached.end()
    assert record["cpu"] == {
        "cpu_s": 2.5, "user_s": 2.0, "system_s": 0.5, "unseen_s": 2.5, "source": "cgroup2",
        "node_cpu_s": None, "node_steal_s": None,
    }  # fmt: skip
    assert record["memory"] == {
        "max_memory_bytes": 5000000, "source": "cgroup2", "charged_peak_bytes": 99000000,
        "minor_faults": None, "major_faults": None,
    }  # fmt: skip
    assert record["pressure"] == {
        "cpu_some_s": 0.0001, "io_some_s": 2.0, "memory_some_s": 0.0, "scope": "job"
    }  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
def test_a_cgroup_that_goes_before_anybody_read_its_last_is_told(sampler: Any) -> None:
    """OpenPBS' pbs_cgroups removes the group before our hook hears of the job's end: the sampler,
    late on a busy node, told 0.26 s of 1.44 as complete."""
    group = Path(f"/sys/fs/cgroup/cpuacct/steelyard-test-{os.getpid()}")
    group.mkdir()
    try:
        attached = sampler.attach("--rate", "0.2")
        join = f"import os; open('{group}/cgroup.procs', 'w').write(str(os.getpid()));"
        process = subprocess.Popen(
            [sys.executable, "-c", join + CHILD.format(cpu_s=0.3)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        wait_ready(process, 1)
        attached.send(f"cgroup /{group.name}")
        attached.totals()
        os.kill(attached.child_pid, signal.SIGSTOP)
        end_root(process, 1)
    finally:
        group.rmdir()
        os.kill(attached.child_pid, signal.SIGCONT)
    record = attached.end()
    assert (record["complete"], record["incomplete_of"]) == (False, "processes")
    assert "cgroup was removed" in record["incomplete_reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a cgroup")
@pytest.mark.skipif(
    not Path("/sys/fs/cgroup/cpuacct/cpuacct.usage").exists(), reason="needs cgroup version 1"
)
def test_a_cgroup_that_nobody_came_into_lacks_nothing(sampler: Any) -> None:
    """A cgroup that no process entered is complete, as on a sister that runs no task of the job."""
    group = Path(f"/sys/fs/cgroup/cpuacct/steelyard-test-{os.getpid()}")
    group.mkdir()
    try:
        attached = sampler.attach("--rate", "0.2")
        attached.send(f"cgroup /{group.name}")
        attached.totals()
    finally:
        group.rmdir()
    record = attached.end()
    assert (record["complete"], record["cpu"]["cpu_s"]) == (True, 0)
