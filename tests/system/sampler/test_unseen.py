"""Processes that no sample sees and nobody waits for: the record says what it lacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
ORPHANS, BURN_S, WRITTEN = 40, 0.01, 100_000

# Each is orphaned at birth, and gone before any sample comes.
ORPHANING = f"""
import os, sys, time
sys.stdin.readline()
for _ in range({ORPHANS}):
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(os.open("/dev/null", os.O_WRONLY), bytes({WRITTEN}))
            while time.process_time() < {BURN_S}: pass
        os._exit(0)
    os.wait()
time.sleep(0.3)
"""

# Children of a parent that does not want to hear of them, each there for some samples.
IGNORING = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        end = time.monotonic() + 0.4
        while time.monotonic() < end or time.process_time() < 0.1: pass
        os._exit(0)
    try:
        os.wait()  # till it has ended: of such children nobody hears more
    except ChildProcessError:
        pass
"""


def under_a_root(script: str) -> subprocess.Popen[bytes]:
    """The script's process, below one that is the root."""
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    return subprocess.Popen([sys.executable, "-c", outer], stdin=subprocess.PIPE)


@pytest.fixture
def group() -> Iterator[str]:
    """A cgroup of version 1 that counts CPU; its name."""
    name = f"steelyard-test-unseen-{os.getpid()}"
    folder = Path(f"/sys/fs/cgroup/cpuacct/{name}")
    if os.geteuid() != 0 or not (folder.parent / "cpuacct.usage").exists():
        pytest.skip("needs root and cgroup version 1: makes a cgroup")
    folder.mkdir()
    yield name
    folder.rmdir()


def test_what_orphans_used_shows_in_the_cgroup_alone(
    sampler: Any, group: str, waiting: Any
) -> None:
    attached = sampler.attach("--rate", "0.1")
    with under_a_root(ORPHANING) as root:
        attached.send(f"root {root.pid}")
        procs = Path(f"/sys/fs/cgroup/cpuacct/{group}/cgroup.procs")
        for pid in (root.pid, *waiting("its child", lambda: children(root.pid))):
            procs.write_text(str(pid))
        attached.send(f"cgroup /{group}")
        attached.totals()  # it has read the message: what the group counts from here on is the job's
        root.communicate(b"\n")
    waiting("the orphans' end", lambda: not procs.read_text())
    record = attached.end()
    truth = ORPHANS * BURN_S
    assert truth * 0.9 <= record["cpu"]["cpu_s"] < truth * 2 + 0.5
    assert record["cpu"]["unseen_s"] == record["cpu"]["cpu_s"]
    assert record["cpu"]["source"] == "cgroup1"
    assert record["complete"] is False
    assert "that no step reported" in record["incomplete_reason"]
    assert [record["io"][name] for name in (*NAMES, "source")] == [None] * 5
    why = record["missing"]["io.wchar_bytes"]
    least = int(why.rpartition("; at least")[2])
    assert why.startswith("the job's cgroup has counted CPU that no step reported (cpu.unseen_s)")
    assert least < ORPHANS * WRITTEN


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def charge_of_job(root: Path) -> Callable[[int], object]:
    """Make the cgroup job_7 below another root; return what sets its CPU time, in µs of user time."""
    group = root / "sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    usage = "usage_usec {0}\nuser_usec {0}\nsystem_usec 0\n"
    return lambda cpu_us: (group / "cpu.stat").write_text(usage.format(cpu_us))


@pytest.mark.parametrize(("more_us", "complete"), [(1_200_000, False), (40_000, True)])
def test_cpu_of_a_cgroup_that_no_process_shows(
    sampler: Any, tmp_path: Path, more_us: int, complete: bool
) -> None:
    charge = charge_of_job(tmp_path / "tree")
    charge(2_500_000)
    attached = sampler.attach("--root", tmp_path / "tree")
    attached.send("cgroup /system.slice/job_7")
    attached.totals()  # it has read the message
    charge(2_500_000 + more_us)
    record = attached.end()
    assert record["cpu"]["cpu_s"] == more_us / 1e6  # the rest was there before
    assert record["cpu"]["unseen_s"] == more_us / 1e6
    assert record["complete"] is complete
    reason = (
        "the job's cgroup has counted 1.20 s of CPU (100 % of the job's) that no step reported: "
        "its I/O is not known"
    )
    assert record["incomplete_reason"] == (None if complete else reason)
    assert (record["io"]["wchar_bytes"] is None) is not complete


def test_what_steps_report_agrees_with_their_cgroup(sampler: Any, tmp_path: Path) -> None:
    """Two readings of the same may differ by so much; more than that is missing."""
    charge = charge_of_job(tmp_path / "tree")
    for counted_us, complete in ((10_290_000, True), (10_310_000, False)):
        charge(0)
        attached = sampler.attach("--root", tmp_path / "tree")
        with subprocess.Popen(["sleep", "60"]) as root:
            attached.send(f"root {root.pid} 0", "cgroup /system.slice/job_7")
            attached.totals()  # it has read the messages
            charge(counted_us)
            attached.send(f"done {root.pid} 10000000 1 2 3 4")
            answer = attached.totals()
            assert answer["cpu_unseen_s"] == (counted_us - 10_000_000) / 1e6
            assert ("unseen" in answer, "uncounted" in answer) == (not complete, False)
            root.kill()
        record = attached.end()
        assert record["cpu"]["cpu_s"] == counted_us / 1e6
        assert (record["complete"], record["io"]["wchar_bytes"]) == (
            complete,
            2 if complete else None,
        )


def test_what_was_moved_out_of_its_cgroup_counts_where_a_step_reports_it(
    sampler: Any, tmp_path: Path
) -> None:
    charge = charge_of_job(tmp_path / "tree")
    charge(0)
    attached = sampler.attach("--root", tmp_path / "tree")
    with subprocess.Popen(["sleep", "60"]) as root:
        attached.send(f"root {root.pid} 0", "cgroup /system.slice/job_7")
        attached.totals()  # it has read the messages
        charge(4000)
        attached.send(f"done {root.pid} 10000000 1 2 3 4")
        answer = attached.totals()
        assert (answer["cpu_s"], "uncounted" in answer) == (10, False)  # as in the record
        root.kill()
    record = attached.end()
    cpu = record["cpu"]
    assert (cpu["cpu_s"], cpu["user_s"], cpu["source"]) == (10, 10, "processes")
    assert record["complete"]


def test_user_and_system_time_are_all_cpu_time_when_the_cgroup_went_before_the_last_report(
    sampler: Any, tmp_path: Path
) -> None:
    """On cgroup version 1 they were 0.65 s of 0.66 s, as of the report before."""
    group = tmp_path / "tree/sys/fs/cgroup/cpuacct/slurm/job_7"
    group.mkdir(parents=True)

    def charge(user_ms: int, system_ms: int) -> None:
        for name, ms in (("", user_ms + system_ms), ("_user", user_ms), ("_sys", system_ms)):
            (group / f"cpuacct.usage{name}").write_text(f"{ms * 1_000_000}\n")

    charge(0, 0)
    attached = sampler.attach("--root", tmp_path / "tree")
    with (
        subprocess.Popen(["sleep", "60"]) as batch,
        subprocess.Popen(["sleep", "60"]) as extern,
    ):
        attached.send(f"root {batch.pid} 0", "cgroup /slurm/job_7")
        attached.totals()
        charge(3000, 1000)
        attached.send(f"done {batch.pid} 4000000 0 0 0 0")
        attached.totals()
        for path in group.iterdir():
            path.unlink()
        attached.send(f"root {extern.pid} 0", f"done {extern.pid} 400000 0 0 0 0")
        attached.totals()
        for process in (batch, extern):
            process.kill()
    cpu = attached.end()["cpu"]
    assert (cpu["cpu_s"], cpu["user_s"], cpu["system_s"]) == (4.4, 3.3, 1.1)


def test_without_a_cgroup_the_record_says_what_it_cannot_know(sampler: Any) -> None:
    attached = sampler.attach("--rate", "20")
    with subprocess.Popen(["sleep", "0.2"]) as root:
        attached.send(f"root {root.pid}")
    record = attached.end()
    assert record["complete"] is False
    assert record["cpu"]["unseen_s"] is None
    assert record["missing"]["cpu.unseen_s"].startswith("no cgroup counts the job's CPU")


LEFT_BEHIND = """
import subprocess
null = subprocess.DEVNULL
print(subprocess.Popen(["sleep", "60"], stdout=null, stderr=null).pid, flush=True)
"""


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (IGNORING, "samples show"),
        (LEFT_BEHIND, "processes that the command left"),
        ("import subprocess; subprocess.run(['sleep', '0.1'])", None),
    ],
)
def test_a_command_that_was_waited_for_and_left_nobody_behind(
    sampler: Any, script: str, reason: str | None
) -> None:
    done, measured = sampler.run(
        [sys.executable, "-c", script], "--bpf", "no", "--rate", "20", stdout=subprocess.PIPE
    )
    for pid in done.stdout.split():
        os.kill(int(pid), signal.SIGKILL)
    assert done.returncode == 0
    record = measured.record
    assert record["complete"] is (reason is None)
    assert (record["incomplete_reason"] or "").startswith(reason or "")


# It leaves the tree at birth, does what is known, and lives on to be seen.
LEAVING = """
import os, sys, time
sys.stdin.readline()
open("/proc/self/comm", "w").write(os.path.basename(sys.argv[3]))
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        os.execv(sys.argv[3], [sys.executable, "-c", sys.argv[1], sys.argv[2]])
    os._exit(0)
os.wait()
"""
ORPHAN = """
import os, sys, time
os.write(os.open("/dev/null", os.O_WRONLY), bytes(5_000_000))
while time.process_time() < 0.3: pass
open(sys.argv[1] + ".new", "w").write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("name", "node", "mine"),
    [("program", "n1", True), ("program", "n11", False), ("steelyard-node", "n1", False)],
)
def test_an_orphan_is_known_by_its_environment(
    sampler: Any, waiting: Any, tmp_path: Path, name: str, node: str, mine: bool
) -> None:
    """What Steelyard itself has started around a job was taken for a process of root's job."""
    if name == "steelyard-node" and os.geteuid() != 0:
        pytest.skip("only root's process of that name is ours")
    job, ready = str(os.getpid()), tmp_path / "ready"
    (tmp_path / name).symlink_to(sys.executable)
    # Whom a sample sees as a child of the job's is the job's: few samples, for that is not asked here.
    attached = sampler.attach("--rate", "1", "--orphan", f"JOB={job}", "--orphan", "NODE=n1")
    environment = os.environ | {"JOB": job, "NODE": node}
    argv = [sys.executable, "-c", LEAVING, ORPHAN, str(ready), str(tmp_path / name)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment) as root:
        attached.send(f"root {root.pid}")
        root.communicate(b"\n")
    waiting("the orphan's work", ready.exists)
    orphan = int(ready.read_text())
    totals = attached.totals()
    parent = Path(f"/proc/{orphan}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(orphan, signal.SIGKILL)
    attached.end()
    if parent != "1":
        pytest.skip(f"process {parent} adopts orphans here, not init")
    least, most = (0.3, 0.5) if mine else (0, 0.1)
    assert least <= totals["cpu_s"] < most
    assert 5_000_000 * mine <= totals["wchar_bytes"] < 5_000_000 * mine + 10_000
