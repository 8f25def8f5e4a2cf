"""steelyard-node sample with the job's cgroup: its CPU and memory, what is not the job's, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
        weighed_s = attached.totals()["cpu_s"]
        assert abs(weighed_s - used_s) < 0.02
        end_root(process, 1)
        assert attached.end()["cpu"]["source"] == "cgroup1"
    finally:
        group.rmdir()


def test_memory_that_has_grown_a_little_and_stays(sampler: Any, tmp_path: Path) -> None:
    group = tmp_path / "tree/sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 0\nuser_usec 0\nsystem_usec 0\n")
    attached = sampler.attach("--root", tmp_path / "tree")

    def hold(anonymous: int) -> None:
        (group / "memory.current").write_text(f"{anonymous}\n")
        (group / "memory.stat").write_text(f"anon {anonymous}\nfile_mapped 0\n")

    hold(60 << 20)
    attached.send("cgroup /system.slice/job_7")
    attached.totals()
    hold((60 << 20) + 600000)
    for _ in range(2):
        attached.totals()
    hold(1 << 20)
    assert attached.end()["memory"]["max_memory_bytes"] == (60 << 20) + 600000


def test_cgroup_version_2_of_a_made_up_tree(sampler: Any, tmp_path: Path) -> None:
    group = tmp_path / "tree/sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    stat = group / "cpu.stat"
    stat.write_text("usage_usec 700000\nuser_usec 400000\nsystem_usec 300000\n")
    (group / "memory.current").write_text("99000000\n")
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
        "max_memory_bytes": 5000000, "source": "cgroup2", "minor_faults": None, "major_faults": None
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
    """On a sister that runs no task of the job."""
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
