"""steelyard-node job with a daemon like pbs_mom and real processes of another user."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import pytest
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

TIMEOUT_S = 90
USER = 65533
MOM = Path(__file__).with_name("mom.py")


def make_old(path: Path) -> None:
    """Set the times of a state two minutes back."""
    with contextlib.suppress(FileNotFoundError):
        text = path.read_text()
        if text:
            state = json.loads(text)
            state["written_boot_s"] = time.clock_gettime(time.CLOCK_BOOTTIME) - 120
            path.write_text(json.dumps(state))
        then = time.time() - 120
        os.utime(path, (then, then))


def mark(job_id: str) -> str:
    """Return the mark in the environment of a job's processes; ids of concurrent tests differ."""
    return f"PBS_JOBID={job_id}.{os.getpid()}"


class Mom:
    """A running daemon."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, MOM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.read()

    def read(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def order(self, **words: Any) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return self.read()

    def start(
        self,
        job_id: str,
        *words: str,
        node: int = 0,
        uid: int = USER,
        held: bool = False,
        late_session: bool = False,
        before: Mapping[str, str] = MappingProxyType({}),  # variables before the marks
    ) -> int:
        name, _, value = mark(job_id).partition("=")
        marks = {**before, name: value, "PBS_NODENUM": str(node), "PATH": os.environ["PATH"]}
        return self.order(
            start=list(words),
            uid=uid,
            environment=marks,
            held=held,
            late_session=late_session,
        )

    def let_continue(self, pid: int) -> None:
        """Continue a job that was started `held`."""
        wait_for("it stands", lambda: state_of(pid) == "T")
        os.kill(pid, signal.SIGCONT)

    def reap(self, pid: int) -> int:
        return self.order(reap=pid)

    def die(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class Node:
    """One node's folders, and the commands on it."""

    base: Path
    apart: tuple[str, ...] = ()  # with a private bpf filesystem here, the kernel counts
    moms: list[Mom] = field(default_factory=list)
    mom: Mom = field(init=False)

    def __post_init__(self) -> None:
        self.mom = self.new_mom()
        self.records.mkdir()

    def new_mom(self) -> Mom:
        self.moms.append(Mom())
        return self.moms[-1]

    @property
    def run(self) -> Path:
        return self.base / "run"

    @property
    def records(self) -> Path:
        return self.base / "records"

    @property
    def log(self) -> str:
        path = self.run / "n1.log"
        return path.read_text() if path.exists() else ""

    def call(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.apart, find_node_program(), "job", *words],
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip

    def where(self) -> list[str]:
        return [f"--run-dir={self.run}", f"--record-dir={self.records}", "--node=n1"]

    def other_program(self, name: str, script: str) -> Path:
        """Make a node program that is a script; `$program` is the real one."""
        path = self.base / name
        path.write_text(f'#!/bin/sh\nprogram="{find_node_program()}"\n{script}\n')
        path.chmod(0o755)
        return path

    def without_sampler(self) -> Path:
        """Make a node program whose samplers do not start: then the daemon's end is watched."""
        return self.other_program("no-sampler", '[ "$1" = sample ] && exit 1; exec $program "$@"')

    def begin_arguments(self, job_id: str, *more: str, node: int = 0) -> list[str]:
        return [
            "begin", f"--job-id={job_id}", *self.where(), f"--owner={USER}:{USER}",
            f"--parent={self.mom.pid}", f"--mark={mark(job_id)}", f"--mark=PBS_NODENUM={node}",
            "--job=scheduler=pbs", f"--bpf={'yes' if self.apart else 'no'}", *more,
        ]  # fmt: skip

    def begin(self, job_id: str, *more: str) -> subprocess.CompletedProcess[str]:
        return self.call(*self.begin_arguments(job_id, *more))

    def attach(self, job_id: str, pid: int) -> subprocess.CompletedProcess[str]:
        return self.call("attach", f"--job-id={job_id}", f"--pid={pid}", *self.where())

    def end(self, job_id: str, *more: str) -> dict[str, Any]:
        done = self.call("end", f"--job-id={job_id}", *self.where(), *more)
        assert (done.returncode, done.stderr) == (0, "")
        totals = json.loads(done.stdout)
        assert isinstance(totals, dict)
        return totals

    def sweep(self, *more: str) -> None:
        done = self.call("sweep", *self.where(), *more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def record(self, job_id: str) -> dict[str, Any]:
        paths = sorted((self.records / job_id).glob("*.json"), key=lambda p: p.stat().st_mtime_ns)
        document = json.loads(paths[-1].read_bytes())
        assert isinstance(document, dict)
        return document

    def state(self, job_id: str) -> Path:
        return self.run / "job" / f"n1.{job_id}.json"

    def sampler(self, job_id: str) -> int:
        """Return the sampler's process id."""
        return int(json.loads(self.state(job_id).read_text())["sampler"]["pid"])

    def watched(self, job_id: str) -> set[int]:
        """Return the processes that the sampler watches: detected, with usage not read yet."""
        parent = psutil.Process(self.sampler(job_id))
        text = ""
        for process in (parent, *parent.children()):
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for path in Path(f"/proc/{process.pid}/fdinfo").iterdir():
                    with contextlib.suppress(OSError):  # closed meanwhile
                        text += path.read_text()
        return {int(pid) for pid in re.findall(r"^Pid:\t(\d+)", text, re.MULTILINE)}

    def run_seen(self, job_id: str, script: str, **more: Any) -> int:
        """Run a job that works when its sampler watches it; return after its last reading."""
        job = self.mom.start(job_id, "sh", "-c", f"kill -STOP $$; {script}", **more)
        wait_for("it has stopped itself", lambda: state_of(job) == "T")
        wait_for("it is seen", lambda: job in self.watched(job_id))
        self.finish_seen(job_id, job)
        return job

    def finish_seen(self, job_id: str, job: int) -> None:
        """Continue a job that has stopped and is watched; return after its last reading."""
        os.kill(job, signal.SIGCONT)
        wait_for("its end", lambda: not is_there(job))
        wait_for("it was read", lambda: job not in self.watched(job_id))

    def left(self) -> list[str]:
        """Return the content of the run folder, without the log and empty folders."""
        return sorted(
            str(path.relative_to(self.run))
            for path in self.run.rglob("*")
            if not path.is_dir() and path.name not in {"n1.log", ".lock"}
        )


def state_of(pid: int) -> str:
    """Return R, S, T, Z, …; X: the process has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_there(pid: int) -> bool:
    return state_of(pid) not in "ZX"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    if os.geteuid() != 0:
        pytest.skip("starts processes of another user: needs root")
    tmp_path.chmod(0o755)
    tool = Node(tmp_path)
    yield tool
    for path in (tool.run / "job").glob("n1.*.json"):
        tool.end(path.name.removeprefix("n1.").removesuffix(".json"))
    for mom in tool.moms:
        mom.die()
