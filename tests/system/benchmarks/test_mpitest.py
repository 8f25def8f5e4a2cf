"""The benchmark mpi in C: what it sends, what it refuses, and a message that is not right."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "build/bin/steelyard-mpitest"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MPIRUN += ["--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "^tcp,openib,ofi", "-np"]

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("mpicc") and shutil.which("mpirun")),
        reason="no mpicc and mpirun (Debian: libopenmpi-dev, openmpi-bin)",
    ),
]


def run(ranks: int, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MPIRUN, str(ranks), *words], capture_output=True, text=True, check=False, timeout=120
    )


def test_latency_sends_as_many_messages_as_it_says(tmp_path: Path) -> None:
    """Seen by the profiler: warm-up, then each repetition, there and back, each of 64 bytes."""
    profile = tmp_path / "profile.json"
    words = ("--test", "latency", "--smallest", "64", "--largest", "64", "--iterations", "50")
    more = ("--warm-up", "7", "--repetitions", "3")
    profiler = str(ROOT / "build/bin/steelyard-mpiprof")
    done = run(2, profiler, str(profile), str(PROGRAM), *words, *more)
    assert done.returncode == 0, done.stderr
    sent = json.loads(profile.read_text(encoding="utf-8"))["total"]["calls"]["MPI_Send"]
    assert (sent["messages"], sent["bytes"]) == (2 * (7 + 3 * 50), 2 * (7 + 3 * 50) * 64)
    (row,) = json.loads(done.stdout)["tests"]
    assert (row["test"], row["bytes"], row["operations"]) == ("latency", 64, 50)
    assert len(row["seconds"]) == 3
    assert all(0 < value < 1 for value in row["seconds"])


@pytest.mark.parametrize("test", ["alltoall", "reduce", "allreduce", "barrier"])
def test_collectives_are_measured_in_windows(test: str) -> None:
    """Of 20 calls at least one is in time on a busy machine; those that are not are told."""
    words = ("--test", test, "--smallest", "512", "--largest", "1024", "--iterations", "20")
    done = run(4, str(PROGRAM), *words, "--repetitions", "2")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["tests"]
    assert [row["bytes"] for row in rows] == ([0] if test == "barrier" else [512, 1024])
    for row in rows:
        assert 10 <= row["operations"] + row["late"] <= 20
        assert row["operations"] > row["late"] / 2
        assert all(0 < value < 100 for value in row["seconds"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--test", "gather"], "unknown test 'gather'"),
        (["--rounds", "3"], "unknown argument '--rounds'"),
        (["--largest", "1k"], "expected a number, found '1k'"),
        (["--largest"], "a value is missing after '--largest'"),
        (["--smallest", "9", "--largest", "8"], "smallest <= 'largest'"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(words: list[str], said: str) -> None:
    done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("steelyard-mpitest: ")
    assert done.stderr.endswith(said + "\n")


def test_a_message_that_is_not_right_ends_the_run(tmp_path: Path) -> None:
    """Built with an alltoall whose last byte is never sent."""
    shutil.copytree(ROOT / "jobscripts/mpi/src", tmp_path / "src")
    source = tmp_path / "src/mpitest_tests.c"
    text = source.read_text(encoding="utf-8")
    wrong = text.replace("MPI_Alltoall(t->out, (int)t->size, MPI_BYTE, t->back, (int)t->size,",
                         "MPI_Alltoall(t->out, (int)t->size - 1, MPI_BYTE, t->back, (int)t->size - 1,")  # fmt: skip
    assert wrong != text
    source.write_text(wrong, encoding="utf-8")
    files = [str(path) for path in sorted((tmp_path / "src").glob("*.c"))]
    subprocess.run(["mpicc", "-std=gnu11", "-o", str(tmp_path / "wrong"), *files], check=True)
    words = ("--test", "alltoall", "--largest", "64", "--iterations", "2", "--repetitions", "1")
    done = run(2, str(tmp_path / "wrong"), *words)
    assert done.returncode != 0
    assert "alltoall: a message of 8 bytes did not arrive as it was sent" in done.stderr
