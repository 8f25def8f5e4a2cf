"""Processes that no sample sees and nobody waits for: the record says what it lacks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
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
        while time.monotonic() < end: pass
        os._exit(0)
    time.sleep(0.6)
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
    # On a busy machine one that had to wait may have been seen.
    assert truth * 0.5 <= record["cpu"]["unseen_s"] <= record["cpu"]["cpu_s"]
    assert record["cpu"]["source"] == "cgroup1"
    assert record["complete"] is False
    assert "nobody waited for have used" in record["incomplete_reason"]
    assert [record["io"][name] for name in (*NAMES, "source")] == [None] * 5
    why = record["missing"]["io.wchar_bytes"]
    least = int(why.removeprefix("not all processes of the job were seen (cpu.unseen_s); at least"))
    assert least < ORPHANS * WRITTEN


DAEMON = """
import sys, time
sys.stdin.readline()
while time.process_time() < 0.5: pass
print("done", flush=True)
sys.stdin.readline()
"""


def test_a_daemon_in_the_jobs_cgroup_is_not_the_job(sampler: Any, group: str) -> None:
    """As slurmstepd where the cgroup is of version 2."""
    attached = sampler.attach("--rate", "20")
    argv = [sys.executable, "-c", DAEMON]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as root:
        assert root.stdin is not None and root.stdout is not None
        attached.send(f"root {root.pid}")
        Path(f"/sys/fs/cgroup/cpuacct/{group}/cgroup.procs").write_text(str(root.pid))
        attached.send(f"cgroup /{group}")
        root.stdin.write(b"\n")
        root.stdin.flush()
        root.stdout.readline()
        assert attached.totals()["cpu_s"] < 0.1
        record = attached.end()
    assert record["cpu"]["cpu_s"] < 0.1
    assert record["complete"] is True


def children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(("more_us", "complete"), [(1_200_000, False), (40_000, True)])
def test_cpu_of_a_cgroup_that_no_process_shows(
    sampler: Any, tmp_path: Path, more_us: int, complete: bool
) -> None:
    group = tmp_path / "tree/sys/fs/cgroup/system.slice/job_7"
    group.mkdir(parents=True)
    usage = "usage_usec {0}\nuser_usec {0}\nsystem_usec 0\n"
    (group / "cpu.stat").write_text(usage.format(2_500_000))
    attached = sampler.attach("--root", tmp_path / "tree")
    attached.send("cgroup /system.slice/job_7")
    attached.totals()  # it has read the message
    (group / "cpu.stat").write_text(usage.format(2_500_000 + more_us))
    record = attached.end()
    assert record["cpu"]["cpu_s"] == more_us / 1e6  # the rest was there before
    assert record["cpu"]["unseen_s"] == more_us / 1e6
    assert record["complete"] is complete
    reason = (
        "processes that no sample saw and nobody waited for have used 1.20 s of CPU (100 % of the "
        "job's): their I/O is not known"
    )
    assert record["incomplete_reason"] == (None if complete else reason)
    assert (record["io"]["wchar_bytes"] is None) is not complete


def test_without_a_cgroup_the_record_says_what_it_cannot_know(sampler: Any) -> None:
    attached = sampler.attach("--rate", "20")
    with subprocess.Popen(["sleep", "0.2"]) as root:
        attached.send(f"root {root.pid}")
    record = attached.end()
    assert record["complete"] is True
    assert record["cpu"]["unseen_s"] is None
    assert record["missing"]["cpu.unseen_s"].startswith("no cgroup counts the job's CPU")


def test_children_at_work_that_nobody_waits_for_make_a_record_incomplete(sampler: Any) -> None:
    attached = sampler.attach("--rate", "20")
    with under_a_root(IGNORING) as root:
        attached.send(f"root {root.pid}")
        root.wait()
    record = attached.end()
    assert record["complete"] is False
    # All three, but one that came and went while a busy machine kept the sampler waiting.
    told = r"[123] processes at work ended without anyone's waiting for them: "
    assert re.match(told, record["incomplete_reason"])
    assert record["incomplete_of"] == "processes"


# As a step's daemon: its script is killed -9, and what that has started a moment later.
KILLING = """
import os, signal, subprocess, sys, time
script = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
sys.stdin.readline()
child = subprocess.Popen([sys.executable, "-c", script, sys.argv[1]], stdout=subprocess.PIPE)
orphan = int(child.stdout.readline())
time.sleep(1)
child.kill()
child.wait()
time.sleep(float(sys.argv[2]))
os.kill(orphan, signal.SIGSTOP)
time.sleep(0.01)
print(open(f"/proc/{orphan}/io").read().split()[3], flush=True)
os.kill(orphan, signal.SIGKILL)
time.sleep(0.5)
"""
# Who adopts orphans, and waits for them at once: none of the job's.
ADOPTING = """
import contextlib, ctypes, os, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
root = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]])
print(root.pid, flush=True)
with contextlib.suppress(ChildProcessError):
    while True: os.wait()
"""
WORKING = """
import os, time
print(os.getpid(), flush=True)
null = os.open("/dev/null", os.O_WRONLY)
while True:
    os.write(null, bytes(100_000))
    time.sleep(0.01)
"""
RESTING = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"


@pytest.mark.parametrize("later_s", [0, 0.5])
@pytest.mark.parametrize("working", [True, False])
def test_what_a_killed_script_leaves(sampler: Any, working: bool, later_s: float) -> None:
    """Complete, and too little, was told of what its child had done since the last sample."""
    attached = sampler.attach("--rate", "5")
    child = WORKING if working else RESTING
    argv = [sys.executable, "-c", ADOPTING, KILLING, child, str(later_s)]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as outer:
        assert outer.stdout is not None
        attached.send(f"root {int(outer.stdout.readline())}")
        written = int(outer.communicate(b"\n")[0])
    record = attached.end()
    assert 0 <= written - record["io"]["wchar_bytes"] <= written * working / 3
    assert record["complete"] is not working, record["incomplete_reason"]
    if working:
        why = r"[12] processes at work ended without .* \(at most \d\.\d\d s of CPU by the threads"
        assert re.match(why, record["incomplete_reason"])


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


def test_a_root_that_reads_itself_while_its_children_end_has_waited_for_them(sampler: Any) -> None:
    """Its own bytes are read a moment after the sum that they are taken off, and grow meanwhile."""
    child = (
        "import os, time\n"
        "null = os.open('/dev/null', os.O_WRONLY)\n"
        "while time.process_time() < 0.06: os.write(null, bytes(10000))\n"
    )
    root = (
        "import os, subprocess, sys\n"
        "sys.stdin.readline()\n"
        "zero = os.open('/dev/zero', os.O_RDONLY)\n"
        "for _ in range(12):\n"
        f"    child = subprocess.Popen([sys.executable, '-S', '-c', {child!r}])\n"
        "    while child.poll() is None: os.read(zero, 1 << 20)\n"
    )
    with subprocess.Popen([sys.executable, "-c", root], stdin=subprocess.PIPE) as process:
        attached = sampler.attach("--pid", str(process.pid), "--rate", "100")
        process.communicate(b"\n")
    record = attached.end()
    assert record["incomplete_reason"] is None
    assert record["complete"] is True
