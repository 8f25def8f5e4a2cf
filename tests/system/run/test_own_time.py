"""steelyard run measures the command: not the sampler's start, not the container's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.commands import cli

Capture = pytest.CaptureFixture[str]
Run = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]

# A program's own report: less than its caller's, which includes its start and end.
OWN = """
import sys, time
begin = time.monotonic()
time.sleep(0.2)
sum(range(3_000_000))
open(sys.argv[1], "w").write(f"{time.monotonic() - begin} {time.process_time()}")
"""


def measure(capfd: Capture, place: Path, *words: str) -> Run:
    """Return a successful run's output, its record, and the complete document."""
    assert cli.main(["run", "--json", "-o", str(place), *words]) == 0
    document = json.loads(capfd.readouterr().out)
    (record,) = (place / "run-001").rglob("*.json")
    return document["commands"][0]["runs"][0]["values"], json.loads(record.read_bytes()), document


def attempt(place: Path) -> Path:
    """Return the folder that the run's clients wrote to."""
    return place / "inside-001/runs/run/local.1"


@pytest.mark.parametrize("launcher", ["bare", "unshare"])
def test_elapsed_and_cpu_are_the_commands_own(
    capfd: Capture, tmp_path: Path, launcher: str
) -> None:
    """They are between the command's own report and that of its caller."""
    command = [sys.executable, "-c", OWN, str(tmp_path / "own")]
    monotonic = time.monotonic()
    said, record, _ = measure(capfd, tmp_path / "kept", "--in", launcher, "--", *command)
    called = time.monotonic() - monotonic
    own_s, own_cpu_s = map(float, (tmp_path / "own").read_text().split())
    assert own_s <= said["elapsed"] < record["elapsed_s"] < called
    assert own_cpu_s <= said["cpu"] <= record["cpu"]["cpu_s"]
    if launcher == "bare":
        assert said["elapsed"] == record["exit"]["elapsed_s"]
        assert "start" not in said
        return
    result = json.loads((attempt(tmp_path / "kept") / "result.json").read_bytes())
    assert said["elapsed"] < result["elapsed_s"]  # which has the shell around it
    assert said["cpu"] < record["cpu"]["cpu_s"]
    assert (
        f"launcher_start_s={said['start']:.6f}"
        in (attempt(tmp_path / "kept") / "tags.0").read_text().splitlines()
    )
    assert said["elapsed"] + said["start"] < record["elapsed_s"]


@pytest.mark.parametrize("launcher", ["bare", "unshare", "unshare,containers=2"])
def test_bytes_are_the_same_with_and_without_a_container(
    capfd: Capture, tmp_path: Path, launcher: str
) -> None:
    words = ["--in", launcher, "--", "sh", "-c", "head -c 1234567 /dev/zero >/dev/null"]
    said, _, document = measure(capfd, tmp_path / "kept", *words)
    count = 2 if "=2" in launcher else 1
    assert said["wchar_bytes"] == 1234567 * count
    assert 1234567 * count <= said["rchar_bytes"] < (1234567 + 65536) * count
    scopes = {entry["metric"]: entry["scope"] for entry in document["commands"][0]["metrics"]}
    whole = {name for name, scope in scopes.items() if scope == "whole run"}
    assert whole == (set() if launcher == "bare" else {"energy", "memory"})


def test_what_the_figures_hold_is_said_beside_them(capfd: Capture) -> None:
    assert cli.main(["run", "--in", "unshare,containers=2", "--", "true"]) == 0
    said = capfd.readouterr().out
    assert "memory: of the whole run, the container's start and end are in it" in said
    assert "elapsed: of the slowest of 2 containers; cpu, memory, bytes: sums over them" in said
    assert " start " in said
    assert cli.main(["run", "--", "true"]) == 0
    said = capfd.readouterr().out
    assert "container" not in said
    assert " start " not in said


def test_the_locale_inside_is_the_users(
    capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sort and grep are several times faster in C."""
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    script = "echo ${LC_ALL-unset} $LANG >said"
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", "--in", "unshare", "--", "sh", "-c", script]) == 0
    assert (tmp_path / "said").read_text() == "unset C.UTF-8\n"


def test_nothing_of_the_samplers_is_in_the_commands_time(tmp_path: Path) -> None:
    """Held up between its first sample and the command's start, by a full pipe."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    words = ["sample", "--record-dir", str(tmp_path), "--job-id", "j", f"--print-path={writing}"]
    child = subprocess.Popen(
        [find_node_program(), *words, "--", "sh", "-c", "exit 0"], pass_fds=[writing]
    )
    os.close(writing)
    held_up_s = 0.5
    deadline = time.monotonic() + 90
    # Its number and its arguments: in a write to that descriptor.
    while Path(f"/proc/{child.pid}/syscall").read_text().split()[1:2] != [hex(writing)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(held_up_s)
    released = time.monotonic()
    drain = threading.Thread(
        target=lambda: [None for _ in iter(lambda: os.read(reading, 65536), b"")]
    )
    drain.start()
    assert child.wait(90) == 0
    seen = time.monotonic() - released
    drain.join()
    os.close(reading)
    (path,) = tmp_path.rglob("*.json")
    record = json.loads(path.read_bytes())
    assert 0 < record["exit"]["elapsed_s"] < seen
    assert record["elapsed_s"] > held_up_s + record["exit"]["elapsed_s"]
