"""Ranks over two nodes through a real server, in every way that is there: placed, measured, ended."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.pbs import records
from tests.pbs.conftest import RECORDS, Server

from steelyard.jobscripts import registry, runscript

RUN_ID = "tiny-0123abcd-001"
# Who it is, and in the end what it has used: its own figures, not ours.
RANK = "r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; echo rank $r $(hostname); "
# The same work whatever else the machine does, some seconds of CPU.
BURN = RANK + "i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; times >cpu.$r.$(hostname)"
BEAT = RANK + "while :; do echo x >>beat.$r; sleep 0.1; done"
CPU_TOLERANCE_S = 0.6  # mpirun, its daemons, and our shells
RATE_HZ = 10


@dataclasses.dataclass(frozen=True)
class Way:
    """An mpirun, and what shall be noted of how it started."""

    mpirun: str
    start: str
    no_tm: bool = False


WAYS = {
    "tm": Way("mpirun", "tm"),
    "tasks": Way("mpirun", "pbsdsh", no_tm=True),
    "mpich": Way("mpirun.mpich", "pbsdsh"),
}


def lacking(way: Way) -> str:
    """Why this way cannot be tried; "" when it can."""
    path = shutil.which(way.mpirun)
    if path is None:
        return f"{way.mpirun} is missing"
    if way.start == "tm":
        info = Path(path).with_name("ompi_info")
        if not info.exists():
            return f"no ompi_info beside {path}"
        done = subprocess.run([info, "--parsable"], capture_output=True, text=True, check=False)
        if not {"plm", "ras"} <= set(re.findall("^mca:(plm|ras):tm:", done.stdout, re.MULTILINE)):
            return f"{path} was built without TM"
    return ""


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    found = WAYS[request.param]
    if reason := lacking(found):
        pytest.skip(reason)
    return found


class Run:
    """A study's folder with one run, which a job of two nodes executes."""

    def __init__(self, server: Server, way: Way, ranks: int, program: str) -> None:
        self.server = server
        self.folder = server.folder / "mpi.study"
        self.run_folder = self.folder / "runs" / RUN_ID
        self.run_folder.mkdir(parents=True)
        (self.folder / "lib").mkdir()
        (self.folder / "lib/steelyard.sh").write_text(registry.library(), encoding="utf-8")
        template = (
            f'sy_client() {{\ncp -- "$PBS_NODEFILE" {server.folder}/nodefile\n'
            f"cd {server.folder} && sy_without_scheduler\n"
            f"sy_mpi_run {ranks} {way.mpirun} sh -c '{program}'\n}}\n"
        )
        benchmark = dataclasses.replace(registry.load("filesystem"), template=template)
        text = runscript.render(benchmark, {}, study_dir=self.folder, run_id=RUN_ID, clients=1)
        (self.run_folder / "run.sh").write_text(text, encoding="utf-8")
        self.no_tm = "export STEELYARD_MPI_TM=no; " if way.no_tm else ""

    def submit(self, slots: tuple[int, int]) -> str:
        script = (
            f"export PATH='{os.environ['PATH']}'; {self.no_tm}exec bash {self.run_folder}/run.sh"
        )
        options = ("-v", f"STEELYARD_SAMPLE_RATE={RATE_HZ}")
        return self.server.submit(script, *options, *self.server.slots(slots))

    def attempt(self, job: str) -> Path:
        return self.run_folder / f"{job}.0"

    def result(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.attempt(job) / "result.json").read_bytes())
        return found

    def words(self, job: str, name: str) -> str:
        return (self.attempt(job) / name).read_text(encoding="utf-8", errors="replace")

    def ranks(self, job: str) -> dict[int, str]:
        """Return the node by rank."""
        found = re.findall(r"^rank (\d+) (\S+)$", self.words(job, "out.0"), re.MULTILINE)
        assert len(found) == len(dict(found))
        return {int(rank): node for rank, node in found}


def test_ranks_are_where_the_node_file_has_them(server: Server, way: Way) -> None:
    run = Run(server, way, 3, RANK)
    job = run.submit((2, 1))
    server.wait(job)
    result = run.result(job)
    assert result["state"] == "completed", (result["reason"], run.words(job, "err.0"))
    assert f"mpi.start={way.start}\n" in run.words(job, "tags.0")
    lines = (server.folder / "nodefile").read_text().split()
    assert sorted(Counter(lines).values()) == [1, 2]
    found = run.ranks(job)
    assert sorted(found) == [0, 1, 2]
    assert Counter(found.values()) == Counter(line.split(".")[0] for line in lines)


def test_more_ranks_than_slots_are_refused_with_words(server: Server, way: Way) -> None:
    run = Run(server, way, 4, RANK)
    job = run.submit((2, 1))
    server.wait(job)
    assert "4 ranks in equal shares on 2 nodes do not fit" in run.result(job)["reason"]
    assert run.words(job, "out.0") == ""


def cpu_s(text: str) -> float:
    return sum(60 * float(m) + float(s) for m, s in re.findall(r"(\d+)m([0-9.]+)s", text))


def test_every_nodes_record_has_the_cpu_of_its_ranks(server: Server, way: Way) -> None:
    run = Run(server, way, 2, BURN)
    job = run.submit((1, 1))
    server.wait(job)
    assert run.result(job)["state"] == "completed", run.words(job, "err.0")
    by_node = {record["node"].split(".")[0]: record for record in records.of(RECORDS, job, nodes=2)}
    truth = {path.suffix[1:]: cpu_s(path.read_text()) for path in server.folder.glob("cpu.*")}
    assert set(truth) == set(by_node) and min(truth.values()) > 0.5
    for node, record in by_node.items():
        # Told incomplete where pbs_mom was faster than the sampler: what was done after a sample.
        lost_s = 0.0 if record["complete"] else 2 / RATE_HZ
        assert record["complete"] or record["incomplete_of"] == "processes"
        assert truth[node] - 0.1 - lost_s <= record["cpu"]["cpu_s"] <= truth[node] + CPU_TOLERANCE_S


@pytest.mark.parametrize(
    ("end", "codes"), [("exit 7", {7}), ("kill -9 $$", {9, 137, 255})], ids=["exit", "killed"]
)
def test_how_a_rank_ends_comes_back(server: Server, way: Way, end: str, codes: set[int]) -> None:
    """The other one has ended before, or is ended: Hydra leaves it alone after an exit code, and has
    255 where its first proxy stumbles over the end of the second (4.0.2)."""
    other = "sleep 600" if "kill" in end else ":"
    run = Run(server, way, 2, RANK + f"[ $r = 0 ] || {end}; {other}")
    job = run.submit((1, 1))
    server.wait(job)
    (code,) = run.result(job)["exit_codes"]
    assert code in codes, run.words(job, "err.0")


def test_a_deleted_job_leaves_no_rank(server: Server, way: Way) -> None:
    run = Run(server, way, 2, BEAT)
    job = run.submit((1, 1))
    beats = [server.folder / f"beat.{rank}" for rank in (0, 1)]
    server.until(job, lambda _: all(path.exists() for path in beats))
    subprocess.run(["qdel", job], check=True)
    server.wait(job)
    end = time.monotonic() + 90
    while True:
        before = [path.stat().st_size for path in beats]
        time.sleep(1)  # ten beats
        if [path.stat().st_size for path in beats] == before:
            break
        assert time.monotonic() < end, "a rank goes on"
