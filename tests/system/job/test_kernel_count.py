"""Jobs of PBS that the kernel counts: by what pbs_mom starts, and by their cgroup."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.processes import each_process
from tests.system.bpf.conftest import PROGRAM, answer, tell
from tests.system.bpf.conftest import able as able  # noqa: PLC0414
from tests.system.bpf.conftest import load as load  # noqa: PLC0414
from tests.system.bpf.conftest import started as started  # noqa: PLC0414
from tests.system.job.conftest import USER, Node, is_there, mark
from tests.waiting import wait_for

CHILDREN = 200
TOP = Path("/sys/fs/cgroup")


@dataclass
class Place:
    """A mount namespace with a private bpf filesystem."""

    holder: subprocess.Popen[str]

    @property
    def around(self) -> tuple[str, ...]:
        return ("nsenter", f"--mount=/proc/{self.holder.pid}/ns/mnt")

    @property
    def base(self) -> Path:
        """The folder of pins in there, as this process sees it."""
        return Path(f"/proc/{self.holder.pid}/root/sys/fs/bpf/steelyard")

    def pinned(self) -> list[str]:
        """Not by find(1), which fails where a file is removed while it looks."""
        return [path.name for path in self.base.iterdir()] if self.base.exists() else []


@pytest.fixture
def place(able: None) -> Iterator[Place]:
    script = "mount -t bpf bpf /sys/fs/bpf && echo && exec sleep 600"
    with subprocess.Popen(
        ["unshare", "--mount", "bash", "-c", script], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        holder.stdout.readline()
        yield Place(holder)
        holder.kill()


@pytest.fixture
def folder(load: Path) -> Iterator[Path]:
    """Where a job's user may read the load, and write what it has done."""
    with tempfile.TemporaryDirectory(prefix="pytest-counted-") as name:
        shutil.copy2(load, name)
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def counted(node: Node, place: Place) -> Iterator[Node]:
    """A node where the kernel counts. Another job's sampler has loaded it: on a busy machine that
    takes longer than a prologue waits."""
    node.apart = place.around
    subprocess.run([*place.around, PROGRAM, "load"], check=True)
    yield node
    node.apart = ()


def storm(folder: Path, job: str, children: int = CHILDREN) -> list[str]:
    """A job's shell, which starts what starts children for which nobody waits."""
    return ["sh", "-c", f"{folder}/load ignore {children} 500 >{folder}/{job}; exit 0"]


def truth_of(folder: Path, job: str) -> dict[str, int]:
    told = json.loads((folder / job).read_text())
    assert isinstance(told, dict)
    return told


def processes_of(sampler: int) -> list[int]:
    found = [child.pid for child in psutil.Process(sampler).children()]
    return [*found, sampler]


def ended(node: Node, pid: int) -> None:
    wait_for("its end", lambda: not is_there(pid))
    node.mom.reap(pid)


def shells(record: dict[str, Any], truth: dict[str, int]) -> dict[str, int]:
    """What is in the record beyond the load: the shell's own."""
    return {name: record["io"][name] - truth[name] for name in truth}


def test_every_byte_of_what_the_daemon_starts(counted: Node, folder: Path) -> None:
    """Two jobs of one daemon at once, with different loads: what is beyond them is the shell's own,
    and the same."""
    jobs = {"1.srv": CHILDREN, "2.srv": 2 * CHILDREN}
    for job in jobs:
        assert counted.begin(job).stderr == ""
    pids = [counted.mom.start(job, *storm(folder, job, n)) for job, n in jobs.items()]
    for pid in pids:
        ended(counted, pid)
    for job in jobs:
        counted.end(job)
    records = [counted.record(job) for job in jobs]
    for record in records:
        assert record["complete"] is True, record["incomplete_reason"]
        assert record["io"]["source"] == record["cpu"]["source"] == "bpf", record["missing"]
    one, two = (shells(r, truth_of(folder, job)) for r, job in zip(records, jobs, strict=True))
    assert one == two
    assert (0 < one["rchar_bytes"] < 20_000, one["wchar_bytes"]) == (True, 0)


def test_a_job_that_may_have_begun_before_the_sampler_is_not_counted_by_the_kernel(
    counted: Node, folder: Path
) -> None:
    """Its record said that the kernel had not been asked."""
    go = counted.base / "go"
    wait = f"until [ -e {go} ]; do sleep 0.05; done"
    program = counted.other_program("late", f'case $1 in sample) {wait};; esac; exec $program "$@"')
    shutil.copy2(PROGRAM, program.parent)  # where it is looked for
    assert counted.begin("14.srv", f"--node-program={program}").stderr == ""
    pid = counted.mom.start("14.srv", *storm(folder, "14.srv"))
    go.touch()
    ended(counted, pid)
    counted.end("14.srv")
    record = counted.record("14.srv")
    reason = "the job may have begun before the sampler had answered"
    assert record["complete"] is False
    assert record["memory"]["minor_faults"] is None
    assert record["missing"]["memory.minor_faults"] == reason


@pytest.fixture
def group(counted: Node) -> Iterator[Path]:
    """What the job's group is to be, in the hierarchy that counts CPU where there is one."""
    mount = next(
        (TOP / name for name in ("cpuacct", "cpu,cpuacct", "unified", "")
         if (TOP / name / "cgroup.procs").exists()), None,
    )  # fmt: skip
    if mount is None:
        pytest.skip(f"no hierarchy of cgroups is mounted on {TOP}")
    path = mount / f"steelyard-pbs-{os.getpid()}"
    try:
        path.mkdir()
    except OSError as err:
        pytest.skip(f"no cgroup can be made there: {err}")
    yield path
    path.rmdir()


def test_whoever_is_put_into_the_jobs_cgroup(
    counted: Node, group: Path, folder: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    """As pbs_attach has it done: it is no child of the daemon's. To the byte."""
    outside = started(f"{folder}/load", "ignore", str(CHILDREN), "500", "moved")
    assert answer(outside) == "ready\n"
    assert counted.begin("3.srv", f"--cgroup=/{group.name}").stderr == ""
    (group / "cgroup.procs").write_text(str(outside.pid))
    tell(outside)
    truth = json.loads(answer(outside))
    counted.end("3.srv")
    record = counted.record("3.srv")
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["bpf"]["by_cgroup"] is True
    assert {name: record["io"][name] for name in truth} == truth


def test_whoever_pbs_attach_brings(
    counted: Node, folder: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    """It is no child of the daemon's, and there is no cgroup. To the byte, from then on."""
    outside = started(f"{folder}/load", "ignore", str(CHILDREN), "500", "moved")
    assert answer(outside) == "ready\n"
    assert counted.begin("10.srv").stderr == ""
    assert counted.attach("10.srv", outside.pid).returncode == 0
    tell(outside)
    truth = json.loads(answer(outside))
    counted.end("10.srv")
    record = counted.record("10.srv")
    assert record["complete"] is True, record["incomplete_reason"]
    assert {name: record["io"][name] for name in truth} == truth


def test_what_others_than_the_job_do_is_nobodys(counted: Node, group: Path, folder: Path) -> None:
    """A prologue of the site's in the job's cgroup, as on Torque; a program of the daemon's without
    the job's mark; and another user's with it."""
    assert counted.begin("4.srv", f"--cgroup=/{group.name}").stderr == ""
    name, _, value = mark("4.srv").partition("=")
    for marks, uid in (({}, USER), ({name: value}, USER - 1)):
        environment = {**marks, "PATH": os.environ["PATH"]}
        pid = counted.mom.order(start=storm(folder, "others"), uid=uid, environment=environment)
        ended(counted, pid)
    pid = counted.mom.start("4.srv", "true")
    ended(counted, pid)
    counted.end("4.srv")
    record = counted.record("4.srv")
    assert record["io"]["source"] == "bpf", record["missing"]
    assert 0 < record["io"]["rchar_bytes"] < 20_000, "that of `true`"
    assert record["io"]["wchar_bytes"] == 0


def test_a_daemon_that_is_gone_is_told(counted: Node) -> None:
    """Processes that a restarted daemon starts would be missed: its processes are read from then
    on.
    """
    assert counted.begin("5.srv").stderr == ""
    pid = counted.mom.start("5.srv", "sleep", "60")
    wait_for("it is the job's", lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n")
    counted.mom.die()
    counted.end("5.srv")
    os.kill(pid, signal.SIGKILL)
    record = counted.record("5.srv")
    assert record["bpf"]["missed_ends"] is None
    assert "pbs_mom was started anew" in record["missing"]["bpf.missed_ends"]


def test_a_starter_of_roots_is_told(counted: Node) -> None:
    """What it starts as the user is no child of the daemon's."""
    assert counted.begin("9.srv").stderr == ""
    ended(counted, counted.mom.start("9.srv", "true", uid=0))
    counted.mom.reap(counted.run_seen("9.srv", "exit 0"))
    counted.end("9.srv")
    record = counted.record("9.srv")
    assert record["bpf"]["missed_ends"] is None
    assert "a program of a job's as root" in record["missing"]["bpf.missed_ends"]


def test_who_is_told_too_late_is_not_counted(counted: Node) -> None:
    """Where the sampler does not answer in time the job may have begun before."""
    slow = counted.other_program("slow", '[ "$1" = sample ] && sleep 2.5; exec "$program" "$@"')
    shutil.copy2(PROGRAM, counted.base)
    assert counted.begin("6.srv", f"--node-program={slow}").stderr == ""
    pid = counted.mom.start("6.srv", "sleep", "60")
    wait_for("it is seen", lambda: pid in counted.watched("6.srv"))
    os.kill(pid, signal.SIGKILL)
    ended(counted, pid)
    counted.end("6.srv")
    record = counted.record("6.srv")
    assert record["bpf"]["missed_ends"] is None
    assert record["io"]["source"] == "processes"


def begin_with_sampler(node: Node, job: str) -> None:
    """On a busy machine a begin returns before the sampler counts; its first record comes after."""
    assert node.begin(job).stderr == ""
    wait_for("its record", lambda: [*(node.records / job).glob("*.json")])


def test_nothing_is_left_behind(counted: Node, place: Place) -> None:
    """10 s after the last job; where its sampler was killed, with the next sweep."""
    begin_with_sampler(counted, "7.srv")
    assert place.pinned()
    counted.end("7.srv")
    wait_for("it is unloaded", lambda: place.pinned() == [])
    begin_with_sampler(counted, "8.srv")
    assert place.pinned()
    killed = processes_of(counted.sampler("8.srv"))
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):  # one that makes its maps ends by itself
            os.kill(pid, signal.SIGKILL)
    wait_for("they are gone", lambda: not any(is_there(pid) for pid in killed))
    counted.sweep("--only-alive")
    wait_for("it is unloaded", lambda: place.pinned() == [])


def test_what_a_killed_load_has_left(counted: Node, place: Place) -> None:
    """Of a load that was killed, and of an earlier release: the next sweep unpins both, whether or
    not the program of this release is loaded."""
    subprocess.run([*place.around, PROGRAM, "unload"], check=True)
    assert place.pinned() == []
    for name in ("loading", "v1"):
        (place.base / name).mkdir()
    counted.sweep()
    wait_for("they are gone", lambda: place.pinned() == [])


def open_folders(pid: int) -> list[str]:
    """Their names; none when the process has ended."""
    found = []
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # closed meanwhile
                found.append(path.readlink().name)
    return found


def lingering(place: Place) -> int:
    """The process in there that is to unload the program; 0: there is none."""
    own = Path(f"/proc/{place.holder.pid}/ns/mnt").readlink()
    for pid, command in each_process("cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if b"\0--after\0" in command and Path(f"/proc/{pid}/ns/mnt").readlink() == own:
                return pid
    return 0


def test_a_lock_that_is_kept_for_long_delays_unloading(counted: Node, place: Place) -> None:
    """Neither the job's sampler nor the process that it leaves gets the lock of the pins."""
    begin_with_sampler(counted, "11.srv")
    sampler = counted.sampler("11.srv")
    lock = os.open(place.base, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    counted.end("11.srv")
    wait_for("its end", lambda: not is_there(sampler))
    pid = wait_for("it lingers", lambda: lingering(place))
    wait_for("it tries the lock", lambda: place.base.name in open_folders(pid))
    wait_for("it is refused", lambda: place.base.name not in open_folders(pid))
    os.close(lock)
    wait_for("it is unloaded", lambda: place.pinned() == [])
