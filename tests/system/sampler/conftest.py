"""Runs the real steelyard-node sample and reads its files."""

from __future__ import annotations

import csv
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

TIMEOUT_S = 90


@dataclass
class Measured:
    """The files of one job."""

    folder: Path

    @property
    def record_path(self) -> Path:
        (path,) = self.folder.glob("*.json")
        return path

    @property
    def samples_path(self) -> Path:
        return self.record_path.with_suffix(".csv")

    @property
    def record(self) -> dict[str, Any]:
        document = json.loads(self.record_path.read_bytes())
        assert isinstance(document, dict)
        return document

    @property
    def samples(self) -> list[dict[str, str]]:
        with self.samples_path.open(encoding="ascii", newline="") as file:
            return list(csv.DictReader(file))

    def column(self, name: str) -> list[float | None]:
        return [float(row[name]) if row[name] else None for row in self.samples]


@dataclass
class Attached(Measured):
    """A sampler that is attached to processes that others start."""

    process: subprocess.Popen[bytes]
    control: Path

    @property
    def child_pid(self) -> int:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(wait_for("the sampling child", path.read_text).split()[0])

    def send(self, *messages: str) -> str:
        return subprocess.run(
            [find_node_program(), "send", "--control", self.control, *messages],
            check=True, capture_output=True, text=True, timeout=TIMEOUT_S,
        ).stdout  # fmt: skip

    def totals(self) -> dict[str, Any]:
        answer = json.loads(self.send("totals"))
        assert isinstance(answer, dict)
        return answer

    def end(self) -> dict[str, Any]:
        if self.process.poll() is None:
            self.send("end")
        return self.ended()

    def ended(self) -> dict[str, Any]:
        """Return the record of a sampler that ends by itself, possibly before it gets a message."""
        assert self.process.wait(TIMEOUT_S) == 0
        return self.record


@dataclass
class Sampler:
    """Starts samplers below one folder."""

    base: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    jobs: int = 0

    def arguments(self, *options: str | Path) -> tuple[list[str | Path], Path]:
        self.jobs += 1
        records = self.base / "records"
        if not records.exists():  # no job creates it
            records.mkdir()
            os.chown(records, self.base.stat().st_uid, self.base.stat().st_gid)
        return (
            [find_node_program(), "sample", "--record-dir", records, "--job-id", f"{self.jobs}"]
            + list(options),
            records / f"{self.jobs}",
        )

    def run(
        self, command: list[str], *options: str | Path, prefix: tuple[str, ...] = (), **how: Any
    ) -> tuple[subprocess.CompletedProcess[bytes], Measured]:
        """Measure a command to its end."""
        arguments, folder = self.arguments(*options)
        done = subprocess.run(
            [*prefix, *arguments, "--", *command], timeout=TIMEOUT_S, check=False, **how
        )
        return done, Measured(folder)

    def start(
        self, command: list[str], *options: str | Path, prefix: tuple[str, ...] = (), **how: Any
    ) -> tuple[Any, Measured]:
        """Measure a command that continues."""
        arguments, folder = self.arguments(*options)
        process = subprocess.Popen([*prefix, *arguments, "--", *command], **how)
        self.started.append(process)
        return process, Measured(folder)

    def attach(self, *options: str | Path, prefix: tuple[str, ...] = ()) -> Attached:
        """Measure the processes that --pid and messages name."""
        control = self.base / f"{self.jobs}.sock"
        arguments, folder = self.arguments("--control", control, *options)
        process = subprocess.Popen([*prefix, *arguments])
        self.started.append(process)
        attached = Attached(folder, process, control)
        wait_for("the first record", lambda: is_written(folder))
        return attached


def is_written(folder: Path) -> bool:
    """Whether the record of the start exists and is complete."""
    return any(path.stat().st_size for path in folder.glob("*.json"))


@pytest.fixture
def sampler(tmp_path: Path) -> Iterator[Sampler]:
    tmp_path.chmod(0o755)
    tool = Sampler(tmp_path)
    yield tool
    for process in tool.started:
        if process.poll() is None:
            process.kill()
            process.wait()


@pytest.fixture
def waiting() -> Callable[..., Any]:
    return wait_for


@dataclass
class Tree:
    """A made-up root folder with two packages, a dram and a core zone."""

    root: Path

    def zone(self, name: str) -> Path:
        return self.root / "sys/class/powercap" / name

    def add(self, folder: str, name: str, range_uj: int, energy_uj: int = 0) -> None:
        zone = self.zone(folder)
        zone.mkdir(parents=True)
        (zone / "name").write_text(f"{name}\n")
        (zone / "max_energy_range_uj").write_text(f"{range_uj}\n")
        self.set(folder, energy_uj)

    def set(self, folder: str, energy_uj: int) -> None:
        # A kernel's file is never half-written: replace its content by one write.
        fd = os.open(self.zone(folder) / "energy_uj", os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(fd, f"{energy_uj:020}\n".encode(), 0)
        os.close(fd)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


@pytest.fixture
def datagram() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        yield sock
