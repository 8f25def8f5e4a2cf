"""The profiler of MPI programs: programs with known calls, in C and Fortran, Open MPI and MPICH."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "tests" / "mpi"
OPEN_MPI_FLAGS = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
OPEN_MPI_FLAGS += ["--mca", "mpi_yield_when_idle", "1"]
RANKS = 3
# By call: how often in all ranks, how many of them sent something, how many bytes.
FORTRAN_CALLS = {
    "MPI_Isend": [30, 30, 30 * 16 * 8],
    "MPI_Irecv": [30, 0, 0],
    "MPI_Waitall": [30, 0, 0],
    "MPI_Bcast": [3, 1, 5 * 4],
    "MPI_Allreduce": [3, 3, 3 * 2 * 4],
    "MPI_Alltoallv": [6, 6, 6 * 3 * 4],
    "MPI_Allgather": [3, 3, 3 * 4],
    "MPI_Barrier": [3, 0, 0],
}
C_CALLS = {key: FORTRAN_CALLS[key] for key in FORTRAN_CALLS if key != "MPI_Allgather"} | {
    "MPI_Send": [3, 3, 3 * 1000],
    "MPI_Recv": [3, 0, 0],
    "MPI_Alltoall": [3, 3, 3 * 3 * 4],
    "MPI_Scatter": [3, 1, 3 * 4],
    "MPI_Gather": [3, 2, 2 * 4],
    "MPI_Allgatherv": [3, 3, 3 * 4],
    "MPI_Reduce_scatter": [3, 3, 3 * 3 * 4],
}


class Mpi:
    """One MPI: its compilers and launcher, and the profiler built for it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.printed = ""
        self.program = folder / "bin" / "steelyard-mpiprof"
        options = [f"-Dmpicc=mpicc.{name}", "-Dparts=mpiprof", f"-Dplace={folder}"]
        call("meson", "setup", str(folder / "meson"), str(ROOT), *options)
        call("ninja", "-C", str(folder / "meson"), "placed")

    def compile(self, source: str) -> Path:
        built = self.folder / source
        if source.endswith(".c"):
            compiler, flags = f"mpicc.{self.name}", ["-pthread", "-w"]
        else:
            compiler, flags = f"mpifort.{self.name}", ["-fallow-argument-mismatch", "-w"]
        if not built.with_suffix("").exists():
            call(compiler, *flags, str(SOURCES / source), "-o", str(built.with_suffix("")))
        return built.with_suffix("")

    def command(self, ranks: int, *words: str) -> list[str]:
        flags = OPEN_MPI_FLAGS if self.name == "openmpi" else []
        return [f"mpirun.{self.name}", *flags, "-np", str(ranks), *words]

    def profile(self, out: Path, source: str, *words: str, ranks: int = RANKS) -> dict[str, Any]:
        program = str(self.compile(source))
        done = call(*self.command(ranks, str(self.program), str(out), program, *words))
        self.printed = done.stdout
        return dict(json.loads(out.read_text()))


def call(*argv: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Mpi]:
    """Return each MPI once, by its name."""
    return functools.cache(lambda name: Mpi(name, tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def mpi(request: pytest.FixtureRequest, built: Callable[[str], Mpi]) -> Mpi:
    if not shutil.which(f"mpicc.{request.param}"):
        if os.environ.get("CI"):
            pytest.fail(f"mpicc.{request.param} is missing in CI")
        pytest.skip(f"mpicc.{request.param} is missing")
    return built(request.param)


def numbers(part: dict[str, Any]) -> dict[str, list[int]]:
    found = part["calls"].items()
    return {name: [item["calls"], item["messages"], item["bytes"]] for name, item in found}


@pytest.mark.parametrize("source", ["calls.c", "calls_mpif.f90", "calls_mpi.f90", "calls_f08.f90"])
def test_calls_messages_and_bytes_are_what_the_program_did(
    mpi: Mpi, tmp_path: Path, source: str
) -> None:
    if source.endswith(".f90") and not shutil.which("gfortran"):
        pytest.skip("gfortran is missing")
    found = mpi.profile(tmp_path / "p.json", source)
    expected = C_CALLS if source == "calls.c" else FORTRAN_CALLS
    assert numbers(found["total"]) == expected
    assert found["total"]["messages"] == sum(row[1] for row in expected.values())
    assert found["total"]["message_bytes"] == sum(row[2] for row in expected.values())


def test_ranks_add_up_and_shares_are_of_the_whole(mpi: Mpi, tmp_path: Path) -> None:
    found = mpi.profile(tmp_path / "p.json", "calls.c")
    assert [rank["rank"] for rank in found["ranks"]] == list(range(RANKS))
    for part in (*found["ranks"], found["total"]):
        parts = part["init_s"] + part["communication_s"] + part["computation_s"]
        assert parts == pytest.approx(part["total_s"], abs=1e-6)
        assert part["computation_s"] >= 0
        calls = sum(item["seconds"] for item in part["calls"].values())
        assert calls == pytest.approx(part["communication_s"], abs=1e-6)
        assert calls == pytest.approx(part["calls_s"], abs=1e-6)
    for key in ("init_s", "total_s", "messages", "message_bytes"):
        total = sum(rank[key] for rank in found["ranks"])
        assert found["total"][key] == pytest.approx(total, abs=1e-6)


def test_sizes_are_classed_by_powers_of_two(mpi: Mpi, tmp_path: Path) -> None:
    sizes = mpi.profile(tmp_path / "p.json", "calls.c")["total"]["sizes"]
    assert {"least_bytes": 128, "most_bytes": 255, "messages": 30} in sizes
    assert {"least_bytes": 512, "most_bytes": 1023, "messages": 3} in sizes
    assert sum(item["messages"] for item in sizes) == sum(row[1] for row in C_CALLS.values())


def test_who_waits_for_a_slow_rank_communicates_and_the_slow_rank_computes(
    mpi: Mpi, tmp_path: Path
) -> None:
    found = mpi.profile(tmp_path / "p.json", "calls.c", "400")
    slow, *waiting = found["ranks"]
    assert slow["computation_s"] > 0.39
    for rank in waiting:
        # It may wait for less than 0.4 s: a busy machine holds it up, too, even within MPI_Init.
        barrier_s = rank["calls"]["MPI_Barrier"]["seconds"]
        assert 0.1 < barrier_s < rank["total_s"]
        assert rank["computation_s"] < slow["computation_s"]


def test_threads_lose_no_call(mpi: Mpi, tmp_path: Path) -> None:
    total = mpi.profile(tmp_path / "p.json", "odd.c", "threads", ranks=2)["total"]
    assert numbers(total)["MPI_Send"] == [4000, 4000, 16000]
    assert numbers(total)["MPI_Recv"] == [4000, 0, 0]
    assert numbers(total)["MPI_Iprobe"] == [400000, 0, 0]


BRACKET_S = 0.05  # between the program's clock and the profiler's, on a machine that does much else


def own_clocks(mpi: Mpi) -> dict[str, float]:
    """Return what rank 1 of waits.c measured itself."""
    lines = [line.split() for line in mpi.printed.splitlines() if line]
    return {name: float(seconds) for name, seconds in lines}


def test_every_call_that_waits_for_a_late_rank_is_communication(mpi: Mpi, tmp_path: Path) -> None:
    found = mpi.profile(tmp_path / "p.json", "waits.c", ranks=2)["ranks"][1]
    own = own_clocks(mpi)
    assert len(own) == 16
    assert sum(own.values()) > 1.0, "the other rank was late"
    for name, seconds in own.items():
        call = found["calls"].get(name, {"calls": 0, "seconds": 0.0})
        # Windows and communicators are freed once more, without a late rank.
        assert call["calls"] == (3 if name == "MPI_Win_free" else 1), name
        if name != "MPI_Win_free":
            assert seconds - BRACKET_S < call["seconds"] <= seconds + 1e-4, name


def test_what_is_sent_to_nobody_is_no_message(mpi: Mpi, tmp_path: Path) -> None:
    total = mpi.profile(tmp_path / "p.json", "waits.c", "nobody", ranks=2)["total"]
    rows = numbers(total)
    for name in ("Send", "Isend", "Sendrecv_replace", "Put", "Accumulate", "Fetch_and_op"):
        assert rows[f"MPI_{name}"] == [2, 0, 0]
    assert rows["MPI_Sendrecv"] == [4, 2, 2 * 40]
    assert (total["messages"], total["message_bytes"]) == (2, 80)


def test_threads_that_wait_at_once_wait_no_longer_than_the_clock(mpi: Mpi, tmp_path: Path) -> None:
    found = mpi.profile(tmp_path / "p.json", "waits.c", "threads", ranks=2)["ranks"][1]
    own = own_clocks(mpi)
    spans = sorted((own[f"begin{n}"], own[f"end{n}"]) for n in range(4))
    # A busy machine may start a thread when others have ended.
    by_clock, until = 0.0, 0.0
    for begin, end in spans:
        by_clock += max(0.0, end - max(begin, until))
        until = max(until, end)
    waited = found["communication_s"] - found["calls"]["MPI_Barrier"]["seconds"]
    assert by_clock - BRACKET_S < waited <= by_clock + 1e-4
    # The threads' own times have a larger sum: they are reported, but not as the process' time.
    added, threads_s = found["calls"]["MPI_Recv"]["seconds"], sum(e - b for b, e in spans)
    assert threads_s - BRACKET_S < added <= threads_s + 1e-4
    assert found["calls_s"] == pytest.approx(found["calls"]["MPI_Barrier"]["seconds"] + added)
    assert own["alone"] <= found["computation_s"]
    parts = found["init_s"] + found["communication_s"] + found["computation_s"]
    assert parts == pytest.approx(found["total_s"], abs=1e-6)


def test_large_counts_are_seen(mpi: Mpi, tmp_path: Path) -> None:
    header = call(f"mpicc.{mpi.name}", "-E", "-dM", "-include", "mpi.h", "-xc", "/dev/null").stdout
    if "#define MPI_VERSION 3" in header:
        pytest.skip(f"{mpi.name} here is of MPI 3, which has no large counts")
    total = mpi.profile(tmp_path / "p.json", "large.c", ranks=2)["total"]
    assert numbers(total) == {
        "MPI_Sendrecv_c": [2, 2, 2 * 400],
        "MPI_Allreduce_c": [2, 2, 2 * 400],
        "MPI_Isendrecv": [2, 2, 2 * 400],
        "MPI_Wait": [2, 0, 0],
    }


def test_sizes_that_are_not_kept_are_null(mpi: Mpi, tmp_path: Path) -> None:
    total = mpi.profile(tmp_path / "p.json", "odd.c", "persistent", ranks=2)["total"]
    assert numbers(total)["MPI_Start"] == [10, None, None]
    assert total["calls_without_size"] == 10


def test_a_program_without_finalize_leaves_no_profile(mpi: Mpi, tmp_path: Path) -> None:
    program = str(mpi.compile("odd.c"))
    out = tmp_path / "p.json"
    command = mpi.command(2, str(mpi.program), str(out), program, "abort")
    subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said_and_the_program_ends_well(
    mpi: Mpi, tmp_path: Path
) -> None:
    out = str(tmp_path / "none" / "p.json")
    done = call(*mpi.command(2, str(mpi.program), out, str(mpi.compile("calls.c"))))
    assert f"no profile: {out}: No such file or directory" in done.stderr


@pytest.mark.slow
def test_the_library_of_another_mpi_is_refused(
    mpi: Mpi, built: Callable[[str], Mpi], tmp_path: Path
) -> None:
    other = "mpich" if mpi.name == "openmpi" else "openmpi"
    if not shutil.which(f"mpicc.{other}"):
        pytest.skip(f"mpicc.{other} is missing")
    library = built(other).folder / "lib" / "libsteelyard-mpiprof.so"
    command = mpi.command(
        2, str(mpi.program), str(tmp_path / "p.json"), str(mpi.compile("calls.c"))
    )
    environment = os.environ | {"STEELYARD_MPIPROF_LIB": str(library)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode != 0
    assert "steelyard-mpiprof: built for" in done.stderr
    assert "build it with that MPI's mpicc" in done.stderr
    assert not (tmp_path / "p.json").exists()


def test_the_program_says_how_it_is_used_and_what_is_missing(tmp_path: Path) -> None:
    script = ROOT / "plugins" / "mpi" / "steelyard-mpiprof.sh"
    done = subprocess.run([str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: mpirun -np N steelyard-mpiprof FILE.json PROGRAM")
    alone = tmp_path / "bin" / "steelyard-mpiprof"
    alone.parent.mkdir()
    shutil.copy(script, alone)
    done = subprocess.run([str(alone), "x", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "build it with make all" in done.stderr
