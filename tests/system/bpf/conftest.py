"""The kernel's counts, in a private mount namespace with a private bpf filesystem."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/bin/steelyard-bpf"
Counted = tuple[dict[str, Any], dict[str, Any]]
Count = Callable[..., Counted]
Inside = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("bpf") / "load"
    source = Path(__file__).parent / "load.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-pthread", "-o", program, source], check=True)
    return program


@pytest.fixture(scope="session")
def able() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may put a program into the kernel")
    if not PROGRAM.exists():
        pytest.skip("no steelyard-bpf: libbpf-dev or clang was missing when it was built")


@pytest.fixture
def inside(able: None, tmp_path: Path) -> Inside:
    """Return a function that runs a script with $BASE in a private bpf filesystem."""
    place = tmp_path / "bpffs"
    place.mkdir()

    def run(script: str, limit_s: float = 120) -> subprocess.CompletedProcess[str]:
        text = f"set -e; mount -t bpf bpf {place}; {script}"
        env = {**os.environ, "BPF": str(PROGRAM), "BASE": f"{place}/steelyard"}
        argv = ["unshare", "--mount", "bash", "-c", text]
        return subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=limit_s, env=env
        )

    return run


@pytest.fixture
def count(inside: Inside, load: Path) -> Count:
    """Return a function that yields the load's own counts, and the kernel's."""

    def run(
        how: str, children: int, burn_us: int, more: str = "", options: str = "", before: str = ""
    ) -> Counted:
        command = f"{load} {how} {children} {burn_us} {more}"
        done = inside(f"{before} $BPF count --base $BASE {options} -- {command}")
        assert done.returncode == 0, done.stderr
        truth, counted = (json.loads(line) for line in done.stdout.splitlines())
        assert (counted["settled"], counted["lost"]) == (1, 0)
        assert counted["unread"] == 0
        return truth, counted

    return run


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start processes that wait for a line from tell(); kill them after the test."""
    found = []

    def start(*command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        found.append(process)
        return process

    yield start
    for process in found:
        process.kill()
        process.communicate()


def tell(process: subprocess.Popen[str]) -> None:
    """Let a process continue."""
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout
    return process.stdout.readline()
