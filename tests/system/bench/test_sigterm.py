"""A benchmark that is ended by SIGTERM leaves nothing: no Slurm, no folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import each_process, of_process
from tests.waiting import wait_for

BENCH = Path(__file__).parents[3] / "bench"
MAIN = re.compile(r'^if __name__ == "__main__":\n(.*)', re.MULTILINE | re.DOTALL)


def ours(mark: str) -> list[int]:
    """Return processes of the benchmark, by a variable of its environment."""
    return sorted(
        pid for pid, text in each_process("environ") if mark.encode() in text.split(b"\0")
    )


def commands(pids: list[int]) -> list[bytes]:
    return [of_process(pid, "cmdline") for pid in pids]


@pytest.mark.skipif(os.geteuid() != 0, reason="the bench needs root")
def test_a_whole_slurm_ends_with_its_benchmark() -> None:
    mark = f"BENCH_OF_TEST={os.getpid()}"
    name, _, value = mark.partition("=")
    bench = subprocess.Popen(
        [sys.executable, BENCH / "sampler.py"], env={**os.environ, name: value},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip

    def folder() -> Path | None:
        """Of its Slurm, once slurmd is there."""
        for pid in ours(mark):
            program = of_process(pid, "cmdline").split(b"\0")[0]
            environment = of_process(pid, "environ").decode(errors="replace")
            found = re.search(r"STEELYARD_CLUSTER_DIR=(/dev/shm/sybench\.[^/]+)", environment)
            if program.endswith(b"slurmd") and found:
                return Path(found[1])
        return None

    try:
        found = wait_for("slurmd of the benchmark", folder, 120)
    finally:
        bench.send_signal(signal.SIGTERM)
        output, _ = bench.communicate(timeout=240)
    assert bench.returncode == 128 + signal.SIGTERM, output.decode()
    wait_for("no process of it", lambda: not ours(mark), seen=lambda: commands(ours(mark)))
    assert not found.exists()


INTERRUPTED = """\
import os, signal, subprocess, sys
from pathlib import Path
import sampler_job
from tests.waiting import wait_for

folder, compiler = map(Path, sys.argv[1:])

def interrupt_it(compiling):
    wait_for("the linker", (folder / "runs").exists)
    subprocess.Popen.communicate = communicate
    os.kill(os.getpid(), signal.SIGTERM)

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
communicate = subprocess.Popen.communicate
subprocess.Popen.communicate = lambda compiling, timeout: interrupt_it(compiling)
sampler_job.compiled(folder, "load", compiler)
"""


def test_an_interrupted_compiler_leaves_no_process(tmp_path: Path) -> None:
    """A linker that outlived its compiler wrote into the folder while that was being removed."""
    name, value = "COMPILER_OF_TEST", str(os.getpid())
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\n(touch "$(dirname "$0")/runs"; exec sleep 300) & wait\n')
    compiler.chmod(0o755)
    path = f"{BENCH}:{BENCH.parent}"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tmp_path, compiler],
        env={**os.environ, "PYTHONPATH": path, name: value}, check=False, timeout=120,
    )  # fmt: skip
    survivors = ours(f"{name}={value}")
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
    assert (done.returncode, survivors) == (1, [])


def test_every_benchmark_ends_so() -> None:
    """Those that a person starts; the others are programs of theirs."""
    mains = {
        path.stem: found[1]
        for path in BENCH.glob("*.py")
        if (found := MAIN.search(path.read_text()))
    }
    started = {
        name: text for name, text in mains.items() if "main()" in text and "exit" in text.lower()
    }
    assert {"sampler", "start", "soak", "slurmctld", "submit", "netem"} <= started.keys()
    assert [name for name, text in started.items() if "with ending_on_sigterm():" not in text] == []
