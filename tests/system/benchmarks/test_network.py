"""iperf3, nuttcp and mpi: recorded reports, damaged ones, and runs of all three on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.processes import each_process, of_process
from tests.unit.benchmarks.test_network import figures
from tests.waiting import wait_for

from steelyard.jobscripts import registry, runscript

ROOT = Path(__file__).parents[3]
Given = dict[str, object]


class Here:
    """A study's folder with one run of a benchmark, started as submit's local scheduler does."""

    def __init__(self, folder: Path, name: str, given: Given) -> None:
        self.folder = folder
        self.benchmark = registry.load(name)
        self.given = given
        (folder / "lib").mkdir()
        (folder / "lib" / "steelyard.sh").write_text(registry.library(), encoding="utf-8")
        self.script = folder / "runs" / "r" / "run.sh"
        self.script.parent.mkdir(parents=True)
        programs = {"STEELYARD_PYTHON": sys.executable}
        programs["STEELYARD_MPIPROF"] = str(ROOT / "build" / "bin" / "steelyard-mpiprof")
        programs["STEELYARD_NPB"] = str(ROOT / "build" / "bin" / "steelyard-npb")
        text = runscript.render(
            self.benchmark, given, study_dir=folder, run_id="r", environment=programs
        )
        self.script.write_text(text, encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["bash", str(self.script)], start_new_session=True)

    def done(self) -> dict[str, float]:
        assert self.start().wait(timeout=90) == 0, self.read("err.0")
        return figures(self.benchmark.parse(self.attempt, 0, self.given))

    @property
    def attempt(self) -> Path:
        return self.script.parent / "local.1"

    def read(self, name: str) -> str:
        return (self.attempt / name).read_text(encoding="utf-8")


def processes(run: Here) -> dict[int, str]:
    """Return the run's processes: id and name of the program."""
    mark = f"SY_STUDY_DIR={run.folder}".encode()
    mine = [pid for pid, words in each_process("environ") if mark in words.split(b"\0")]
    names = {pid: of_process(pid, "comm").decode().strip() for pid in mine}
    return {pid: name for pid, name in names.items() if name}


def kill(pids: Iterable[int]) -> None:
    """Kill processes that did not end with another one."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("name", ["iperf3", "nuttcp"])
def test_the_network_benchmarks_run_over_the_loopback(
    tmp_path: Path, name: str, protocol: str
) -> None:
    run = Here(tmp_path, name, {"seconds": 1, "protocol": protocol, "bandwidth": 8_000_000})
    found = run.done()
    assert 1e6 < found["received_bits_per_s"] < 9e6
    assert "network.loopback=true\n" in run.read("tags.0")


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_no_server(tmp_path: Path, signal_number: signal.Signals) -> None:
    """SIGTERM to the run; SIGKILL to every shell of it, which can tidy nothing up."""
    run = Here(tmp_path, "iperf3", {"seconds": 5})
    process = run.start()
    try:
        wait_for(
            "server and client run", lambda: list(processes(run).values()).count("iperf3") >= 2
        )
        if signal_number == signal.SIGKILL:
            kill(pid for pid, program in processes(run).items() if program == "bash")
        else:
            process.send_signal(signal_number)
        process.wait(timeout=90)
        wait_for("server and client have ended", lambda: "iperf3" not in processes(run).values())
    finally:
        kill(processes(run))


def test_mpi_measures_all_on_this_node(tmp_path: Path) -> None:
    given: Given = {"iterations": 10, "largest": "4KiB", "repetitions": 1, "ranks": 3}
    run = Here(tmp_path, "mpi", given)
    found = run.done()
    assert found.keys() == {
        name
        for name, spec in run.benchmark.results.items()
        if spec.unit in ("s", "bytes_per_s") and not spec.help.startswith("profile: ")
    }
    assert all(value > 0 for value in found.values())
    tags = dict(line.split("=") for line in run.read("tags.0").splitlines())
    assert float(tags["mpi.latency_s"]) == pytest.approx(found["latency_s"], abs=1e-9)


def test_sizes_in_the_wrong_order_are_said(tmp_path: Path) -> None:
    run = Here(tmp_path, "mpi", {"smallest": "2MiB"})
    assert run.start().wait(timeout=90) == 1
    assert "smallest is 2097152 bytes, more than largest, 1048576 bytes" in run.read("err.0")


PROFILED: list[tuple[str, Given]] = [
    ("mpi", {"test": "allreduce", "iterations": 10, "largest": "64B", "profile": True}),
    ("npb", {"kernel": "cg", "class": "S", "ranks": 2, "profile": True}),
    ("npb", {"kernel": "is", "class": "S", "ranks": 1, "profile": True}),
    ("hpl", {"n": 200, "profile": True}),
]


@pytest.mark.parametrize(("name", "given"), PROFILED, ids=lambda value: str(value)[:30])
def test_profile_adds_shares_messages_and_their_bytes(
    tmp_path: Path, name: str, given: Given
) -> None:
    found = Here(tmp_path, name, given).done()
    shares = [found[key] for key in ("compute_share", "communication_share", "init_share")]
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    assert min(shares) >= 0
    assert found["messages"] > 0
    assert found["message_bytes"] > 0
