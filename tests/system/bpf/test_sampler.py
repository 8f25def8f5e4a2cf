"""A sampler for which the kernel counts: its record has what the job has done, whatever became of
its processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

from ..sampler.conftest import Attached, Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import PROGRAM, answer, tell

Measured = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture
def attach(able: None, sampler: Sampler, tmp_path: Path) -> Callable[..., Attached]:
    """Its own bpf filesystem, where nobody else looks; `without`: loaded as on older kernels."""
    place = tmp_path / "bpffs"
    place.mkdir()
    base = f"{place}/steelyard"

    def start(
        *options: str, program: Path = PROGRAM, before: tuple[str, ...] = (), without: str = ""
    ) -> Attached:
        load = f"{PROGRAM} load --base {base} {without}" if without else "true"
        script = f'mount -t bpf bpf {place}; {load}; exec "$@"'
        prefix = ("unshare", "--mount", "bash", "-c", script, "sampler")
        words = ("--bpf", str(program), "--bpf-base", base)
        return sampler.attach(*options, *words, prefix=(*prefix, *before))

    return start


@pytest.fixture
def root(
    load: Path, started: Callable[..., subprocess.Popen[str]]
) -> Callable[..., subprocess.Popen[str]]:
    """A process that is no part of the job: when told to, it starts the load as its child. Where the
    load fails, it ends, and says nothing more."""
    return lambda how, children, burn_us: started(
        "bash", "-c", f"read; {load} {how} {children} {burn_us} && read"
    )


def go(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Let it work: what the load says that it has done."""
    tell(process)
    truth = json.loads(answer(process))
    assert isinstance(truth, dict)
    return truth


def wait_until_over(process: subprocess.Popen[str]) -> None:
    """The load tells when its children have been waited for, and before all have left the kernel."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_for("the load has ended", lambda: children.read_text() == "")


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan", "thread"])
def test_every_byte_is_in_the_record(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], how: str
) -> None:
    process = root(how, 300, 1000)
    job = attach("--pid", str(process.pid), "--rate", "10")
    truth = go(process)
    wait_until_over(process)
    record = job.end()
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["io"]["source"] == record["cpu"]["source"] == "bpf"
    assert 0 <= record["bpf"]["missed_ends"] <= 700, "tasks: 300, and of orphans the parents"
    assert {name: record["io"][name] for name in truth} == truth
    assert 0.3 < record["cpu"]["cpu_s"] < 1.5
    split = record["cpu"]["user_s"] + record["cpu"]["system_s"]
    assert split == pytest.approx(record["cpu"]["cpu_s"], abs=2e-6)


def test_what_a_job_goes_on_to_use_is_in_its_samples(
    attach: Callable[..., Attached], started: Callable[..., subprocess.Popen[str]]
) -> None:
    """Of a process that lives, without what it had used before the sampler began."""
    dd = "dd if=/dev/zero of=/dev/null bs=1000 count=300 status=none"
    inner = f"while read _; do {dd}; echo done; done"
    process = started("bash", "-c", f"bash -c '{inner}'; true")
    tell(process)
    assert answer(process) == "done\n"
    job = attach("--pid", str(process.pid), "--rate", "10")
    assert job.totals()["rchar_bytes"] == 0, "what it read before is not the job's"
    tell(process)
    assert answer(process) == "done\n"
    # Who ends while the kernel sums up lacks once; a moment may be long on a busy machine.
    wait_for("what it read", lambda: job.totals()["rchar_bytes"] >= 300_000)
    assert job.totals()["rchar_bytes"] < 330_000
    record = job.end()
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")


def test_why_the_memory_of_copies_of_the_root_is_not_known(
    attach: Callable[..., Attached], started: Callable[..., subprocess.Popen[str]]
) -> None:
    """A fork of a daemon's that runs no program has the daemon's memory."""
    process = started("bash", "-c", "read; (echo ready; read); true")
    job = attach("--pid", str(process.pid), "--rate", "10")
    tell(process)
    assert answer(process) == "ready\n"
    job.totals()
    record = job.end()
    assert (record["processes"]["max_processes"], record["memory"]["max_memory_bytes"]) == (1, None)
    assert "ran no program of their own" in record["missing"]["memory.max_memory_bytes"]


def test_without_the_program_samples_tell(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = root("wait", 30, 1000)
    job = attach("--pid", str(process.pid), program=tmp_path / "missing")
    go(process)
    record = job.end()
    assert record["io"]["source"] == record["cpu"]["source"] == "processes"
    assert record["bpf"]["missed_ends"] is None
    why = f"{tmp_path}/missing: No such file or directory"
    assert record["missing"]["bpf.missed_ends"] == why


def test_a_program_that_cannot_load(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = root("wait", 30, 1000)
    job = attach("--pid", str(process.pid), program=Path("/bin/false"))
    go(process)
    record = job.end()
    assert record["bpf"]["missed_ends"] is None
    why = "/bin/false cannot load it: `steelyard-bpf status` says why"
    assert record["missing"]["bpf.missed_ends"] == why


def test_nothing_is_pinned_after_the_last_job(
    sampler: Sampler, able: None, root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """The first sampler loads, the second shares, the last unpins."""
    place = tmp_path / "bpffs"
    place.mkdir()
    base = place / "steelyard"
    subprocess.run(["mount", "-t", "bpf", "bpf", place], check=True)
    try:
        process = root("wait", 30, 1000)
        options = ("--bpf", PROGRAM, "--bpf-base", base, "--pid", str(process.pid))
        first, second = (sampler.attach(*options) for _ in range(2))
        (folder,) = base.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        truth = go(process)
        assert first.end()["io"]["rchar_bytes"] == truth["rchar_bytes"]
        assert folder.exists()
        assert second.end()["complete"] is False  # a task is of one job
        assert list(base.iterdir()) == []
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def children_of(pid: int) -> list[int]:
    """Process ids; none when it has ended."""
    with contextlib.suppress(OSError):
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@pytest.mark.parametrize("late", [False, True])
def test_a_root_told_of_too_late(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], late: bool
) -> None:
    """Children of its may have ended before: the kernel's count is not the job's."""
    process = root("ignore", 400, 2000)
    job = attach("--rate", "10")
    assert process.stdin
    assert process.stdout
    if not late:
        job.send(f"root {process.pid}")
        job.totals()  # it has heard of it
    process.stdin.write("\n")
    process.stdin.flush()
    if late:
        (load,) = wait_for("a program of its", lambda: children_of(process.pid))
        first, *_ = wait_for("that has a child", lambda: children_of(load))
        wait_for("which has ended", lambda: first not in children_of(load))
        job.send(f"root {process.pid}")
    truth = json.loads(process.stdout.readline())
    record = job.end()
    assert (record["io"]["source"] == "bpf") is not late
    assert (record["io"]["wchar_bytes"] == truth["wchar_bytes"]) is not late
    assert (record["bpf"]["missed_ends"] is None) is late
    why = "a step was reported when a program of the step's had begun"
    assert record["missing"].get("bpf.missed_ends") == (why if late else None)


STEP = """import ctypes, os, sys
command = ["sh", "-c", "head -c 4000000 /dev/zero >/dev/null; echo; read line"]
SIGCHLD, CLONE3 = 17, 435
def clone(pid):  # of any id, or of this one as after the last process id: clone3(2), set_tid
    ids = (ctypes.c_int * 1)(pid or 0)
    words = (ctypes.c_uint64 * 11)(0, 0, 0, 0, SIGCHLD, 0, 0, 0, ctypes.addressof(ids) if pid else 0, bool(pid))
    return ctypes.CDLL(None).syscall(CLONE3, words, ctypes.sizeof(words))
ids = range(os.getpid() - 1, 1, -1) if sys.argv[1:] else [None]
child = next(child for pid in ids if (child := clone(pid)) >= 0)
if child == 0:
    os.execvp(command[0], command)
sys.stdin.read()"""


@pytest.mark.parametrize("order", [[], ["lower"]], ids=["ids rise", "the program's id is lower"])
def test_a_step_whose_program_is_older_than_the_count_is_not_counted_by_it(
    attach: Callable[..., Attached], tmp_path: Path, order: list[str]
) -> None:
    """On a busy node the sampler may begin when a step's program has done its work, and the step has
    not had itself counted: what it had used until then was taken for an earlier job's. A program
    whose process id was lower than its step's was not looked for at all."""
    daemon = tmp_path / "slurmstepd"  # by this name it is known as a step's daemon
    daemon.symlink_to(Path(sys.executable).resolve())
    process = subprocess.Popen(
        [daemon, "-c", STEP, *order], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    process.stdout.readline()  # written
    job = attach("--rate", "10")
    job.send(f"root {process.pid} 0 0")
    job.totals()  # it has heard of it
    process.communicate("\n", timeout=60)
    record = job.end()
    assert record["complete"] is False
    assert record["io"]["source"] != "bpf"
    why = "a step was reported when a program of the step's had begun"
    assert record["missing"]["bpf.missed_ends"] == why


HOLDER = """import fcntl, os, signal, sys
note, *command = sys.argv[1:]
base = os.open(command[command.index("--bpf-base") + 1], os.O_RDONLY)
fcntl.flock(base, fcntl.LOCK_EX)
if os.fork() == 0:
    if os.fork() == 0:
        open(note, "w").write(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.wait()
os.close(base)
os.execvp(command[0], command)"""


def test_a_lock_that_hangs_costs_the_kernels_count_and_no_samples(
    attach: Callable[..., Attached], root: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    """Whoever holds it was stopped: the sampler waited for ever, and recorded nothing."""
    note = tmp_path / "holder"
    attached = attach("--rate", "10", before=(sys.executable, "-c", HOLDER, str(note)), without=" ")
    holder = int(wait_for("the holder's id", note.read_text))
    try:
        process = root("wait", 1, 300_000)
        attached.send(f"root {process.pid}")
        go(process)
        assert attached.totals()["wchar_bytes"] is not None
        record = attached.end()
    finally:
        os.kill(holder, signal.SIGKILL)
    assert record["sampler"]["samples"] > 0
    assert record["cpu"]["source"] == "processes"
    assert "another process has had the lock" in record["missing"]["bpf.missed_ends"]


# Holds MB of memory; on a line it starts a program that holds MB of its own and prints the kernel's
# figure of that program alone (VmHWM begins anew with exec, ru_maxrss does not).
FAT = """import subprocess, sys
memory = bytearray(int(sys.argv[1]) << 20)
memory[::4096] = b"x" * len(memory[::4096])
print("ready", flush=True)
sys.stdin.readline()
subprocess.run([sys.executable, "-c", sys.argv[3], sys.argv[2]], stdin=sys.stdin)
sys.stdin.readline()"""
HOLD = """import sys
memory = bytearray(int(sys.argv[1]) << 20)
memory[::4096] = b"x" * len(memory[::4096])
lines = open("/proc/self/status").read().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")), flush=True)
sys.stdin.readline()"""


@pytest.mark.parametrize(("daemon_mb", "own_mb"), [(200, 30), (30, 90)])
def test_memory_of_the_daemon_that_starts_a_program_is_not_the_programs(
    attach: Callable[..., Attached],
    started: Callable[..., subprocess.Popen[str]],
    daemon_mb: int,
    own_mb: int,
) -> None:
    """Torque's pbs_mom has 109 MB: so had each job of `sleep 1`."""
    daemon = started(sys.executable, "-c", FAT, str(daemon_mb), str(own_mb), HOLD)
    assert answer(daemon) == "ready\n"
    job = attach("--pid", str(daemon.pid), "--rate", "10" if daemon_mb > own_mb else "0.01")
    tell(daemon)
    truth = int(answer(daemon)) * 1024
    job.totals()
    tell(daemon)
    children = Path(f"/proc/{daemon.pid}/task/{daemon.pid}/children")
    wait_for("the program's end", lambda: children.read_text() == "")
    memory = job.end()["memory"]
    assert truth - 1_000_000 <= memory["max_memory_bytes"] <= truth + 1_000_000
    assert memory["source"] == "bpf"


@pytest.mark.parametrize("scope", ["job", "node"])
@pytest.mark.parametrize("own_network", [True, False])
def test_a_container_with_a_network_of_its_own_is_not_shaped_on_a_shared_node(
    attach: Callable[..., Attached],
    started: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
    scope: str,
    own_network: bool,
) -> None:
    """Its packets lose the mark of the job's traffic in the veth: the record said valid."""
    (tmp_path / "run/netem").mkdir(mode=0o700, parents=True)
    document = {"requested": "delay=50ms", "scope": scope, "valid": True, "invalid_reason": None}
    (tmp_path / "run/netem/n7.1.done.json").write_text(json.dumps(document))
    enter = "unshare --net" if own_network else ""
    process = started("bash", "-c", f"read; {enter} true; echo over; read")
    job = attach("--pid", str(process.pid), "--run-dir", str(tmp_path / "run"), "--node", "n7")
    tell(process)
    assert answer(process) == "over\n"
    assert job.totals().get("other_networks") == (1 if own_network else None)
    conditions = job.end()["network_conditions"]
    assert conditions["valid"] is not (own_network and scope == "job")
    assert ("network namespace" in str(conditions["invalid_reason"])) is not conditions["valid"]
    assert "notes" not in conditions


# The job's root. Its child, an orphan at the job's end, works or sleeps until it is killed; `others`: it
# sleeps, and another child has worked to the job's last moment.
LEAVING = """
import os, sys, time
sys.stdin.readline()
if os.fork() == 0:
    print(os.getpid(), flush=True)
    while sys.argv[1] == "works": pass
    time.sleep(60)
sys.stdin.readline()
if sys.argv[1] == "others":
    if (child := os.fork()) == 0:
        end = time.monotonic() + 0.3
        while time.monotonic() < end: pass
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize("how", ["works", "sleeps", "others"])
def test_a_process_at_work_when_the_job_ends_makes_the_record_incomplete(
    attach: Callable[..., Attached], how: str
) -> None:
    """No cgroup lets anybody end it: what it does later is in no record."""
    job = attach("--rate", "10")
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", LEAVING, how]
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as root:
        assert root.stdin
        assert root.stdout
        job.send(f"root {root.pid}")
        job.totals()  # the message has been read: what begins before that is not counted
        root.stdin.write("\n")
        root.stdin.flush()
        orphan = int(root.stdout.readline())
        time.sleep(0.5)
        root.stdin.close()
        root.wait()
    try:
        job.send(f"done {root.pid} 0 0 0 0 0")  # its step has ended, and its totals are asked for
        assert ("uncounted" in job.totals()) is (how == "works")
        job.send("leave")
        assert job.process.wait(60) == 0
    finally:
        os.kill(orphan, signal.SIGKILL)
    record = job.record
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")
    assert record["complete"] is (how != "works"), record["incomplete_reason"]
    if how == "works":
        assert record["incomplete_reason"].startswith("1 processes of the job were still at work")
        assert record["incomplete_of"] == "processes"


@pytest.mark.parametrize(
    ("command", "lasts_s", "works"),
    [
        ("exec sleep 60", 0.4, False),
        ("while :; do :; done", 0.4, True),
        ("while :; do :; done", 0, True),
    ],
)
def test_a_command_that_leaves_a_process_at_work_has_an_incomplete_record(
    able: None, sampler: Sampler, tmp_path: Path, command: str, lasts_s: float, works: bool
) -> None:
    """It said complete, with 0.06 s of the 0.3 s that its daemon used; a daemon that rests uses nothing."""
    pid = tmp_path / "pid"
    line = f"sh -c 'echo $$ >{pid}; {command}' & until [ -s {pid} ]; do :; done; sleep {lasts_s}"
    prefix = ("unshare", "--mount", "bash", "-c", 'mount -t bpf bpf /sys/fs/bpf; exec "$@"', "-")
    done, measured = sampler.run(["sh", "-c", line], "--rate", "10", prefix=prefix)
    os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.returncode == 0
    record = measured.record
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")
    assert record["complete"] is not works
    if works:
        assert record["incomplete_of"] == "processes"
        assert "left behind" in record["incomplete_reason"]


def test_a_process_that_waits_for_a_cpu_is_at_work(
    able: None, sampler: Sampler, tmp_path: Path
) -> None:
    """It said complete: the daemon that was left behind had got no CPU in the last 0.1 s."""
    pid, cpu = tmp_path / "pid", min(os.sched_getaffinity(0))
    behind = "chrt --idle --pid 0 $p && taskset --pid --cpu-list CPU $p".replace("CPU", str(cpu))
    line = (
        f"sh -c 'echo $$ >{pid}; while :; do :; done' & until p=$(cat {pid}) && [ $p ]; do :; done; "
        f"{behind}; sleep 0.4"
    )
    prefix = ("unshare", "--mount", "bash", "-c", 'mount -t bpf bpf /sys/fs/bpf; exec "$@"', "-")
    with subprocess.Popen(
        ["taskset", "--cpu-list", str(cpu), "sh", "-c", "while :; do :; done"]
    ) as busy:
        try:
            done, measured = sampler.run(["sh", "-c", line], "--rate", "10", prefix=prefix)
        finally:
            busy.kill()
            os.kill(int(pid.read_text()), signal.SIGKILL)
    assert done.returncode == 0
    record = measured.record
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")
    assert record["incomplete_of"] == "processes"
    assert "left behind" in record["incomplete_reason"]
