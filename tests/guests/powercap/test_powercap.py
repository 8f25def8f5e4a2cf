"""Jobs on a node that has powercap: joules of their records against the device's own count."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.waiting import wait_for

from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout

MODULES = os.environ.get("STEELYARD_POWERCAP")  # tests/guests/powercap/build.sh's folder
LAW = {"idle_mw": 200_000, "busy_mw": 100_000, "dram_mw": 30_000, "range_j": 1000}
PARAMETERS = "/sys/module/steelyard_powercap/parameters"
STILL_RUNNING = "the job was still running"
# Beside every job: what the device has counted, its wraps undone, by the clock of the node.
WITNESS = f"""
import pathlib, sys, time
with open(sys.argv[1], "a", buffering=1) as out:
    while True:
        before = time.time()
        joules = pathlib.Path("{PARAMETERS}/total_uj").read_text().strip()
        print((before + time.time()) / 2, joules, file=out)
        time.sleep(0.1)
"""
BUSY = "timeout {} sh -c 'while :; do :; done'; sleep {}"
STUDY = """
[study]
name = "joules"
repeat = 2
[job]
time_limit = "00:02:00"
constraint = "virtual"
exclusive = true
[[benchmark]]
use = "app"
command = "sleep 4"
"""


@dataclass
class Node:
    """The cluster, and v1, its node with powercap."""

    cluster: throwaway.Cluster
    work: Path

    def run(self, *argv: str, text: str = "") -> str:
        done = subprocess.run(
            argv, input=text, cwd=self.work, env=self.cluster.environment(),
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def steelyard(self, *argv: str) -> str:
        return self.run(sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", *argv)

    def record(self, script: str) -> tuple[dict[str, Any], list[dict[str, str]]]:
        """Of a batch job on v1, and its samples."""
        said = self.run("sbatch", "--parsable", "-w", "v1", text=f"#!/bin/sh\n{script}\n")
        folder = self.cluster.record_dir / said.strip()

        def final() -> dict[str, Any] | None:
            texts = [path.read_text() for path in folder.glob("*.json")]
            found = [json.loads(text) for text in texts if text and STILL_RUNNING not in text]
            return found[0] if found else None

        record = wait_for("the job's record", final, 120)
        (path,) = folder.glob("*.csv")
        head, *lines = path.read_text().splitlines()
        return record, [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines]

    def looks(self) -> list[tuple[float, float]]:
        """The witness's: when, and joules."""
        whole = (self.work / "witness").read_text().rpartition("\n")[0].splitlines()
        return [(float(at), int(uj) / 1e6) for at, uj in map(str.split, whole)]

    def witnessed_j(self, unix_s: float) -> float:
        """The device's own count at a time, between two looks of the witness."""
        looks = wait_for("a look after that", lambda: (n := self.looks())[-1][0] > unix_s and n)
        after = bisect_left(looks, (unix_s, 0.0))
        (t0, j0), (t1, j1) = looks[after - 1], looks[after]
        assert t0 <= unix_s <= t1 < t0 + 5
        return j0 + (j1 - j0) * (unix_s - t0) / (t1 - t0)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if not MODULES:
        pytest.skip("the kernel modules are built by tests/run.sh powercap")
    plugin, program = throwaway.find_plugin()
    work = tmp_path_factory.mktemp("work")
    with tempfile.TemporaryDirectory(prefix="sylab-", dir="/tmp") as folder:
        config = ClusterConfig(
            dir=Path(folder) / "c", physical_nodes=1, virtual_nodes=0, guests=1, shares=(work,),
            plugin=plugin, node_program=program, sample_rate_hz=10, bpf=False,
        )  # fmt: skip
        with throwaway.start_cluster(config) as cluster:
            v1 = cluster.find_guest("v1")
            for name in ("powercap.ko", "steelyard_powercap.ko"):
                shutil.copy(Path(MODULES) / name, work)
            law = [f"{name}={value}" for name, value in LAW.items()]
            for name, given in (("powercap.ko", []), ("steelyard_powercap.ko", law)):
                done = v1.run(["insmod", str(work / name), *given])
                assert done.returncode == 0, done.stderr
            words = f"{sys.executable} -S {work}/witness.py {work}/witness"
            start = f"setsid {words} </dev/null >/dev/null 2>&1 &"
            (work / "witness.py").write_text(WITNESS)
            assert v1.run(["sh", "-c", start]).returncode == 0
            yield Node(cluster, work)


def zones(record: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {zone["name"]: zone for zone in record["energy"]["zones"]}


def test_the_zones_are_the_kernels_own(node: Node) -> None:
    program = str(Layout(node.cluster.dir).lib_dir / "steelyard-node")
    probe = json.loads(node.run("srun", "-w", "v1", program, "probe"))
    told = {meter["path"]: meter for meter in probe["meters"]}
    top = "/sys/class/powercap/intel-rapl:0"
    assert set(told) == {top, f"{top}/intel-rapl:0:0"}
    assert {meter["max_energy_range_j"] for meter in told.values()} == {1000.0}
    kind = node.cluster.find_guest("v1").run(["stat", "-f", "-c", "%T", top]).stdout
    assert kind == "sysfs\n"


@pytest.mark.parametrize(("busy_s", "quiet_s"), [(4, 5), (0.1, 8)])
def test_a_jobs_joules_are_what_the_device_has_counted(
    node: Node, busy_s: float, quiet_s: float
) -> None:
    record, samples = node.record(BUSY.format(busy_s, quiet_s))
    energy, found = record["energy"], zones(record)
    assert (record["complete"], energy["covers"], energy["integrated"]) == (
        True, ["package", "dram"], False,
    )  # fmt: skip
    began = record["start_unix_s"]
    first, last = (began + float(samples[at]["elapsed_s"]) for at in (0, -1))
    truth = node.witnessed_j(last) - node.witnessed_j(first)
    package, dram = found["package-0"], found["dram"]
    assert package["wraps"] >= 1 and truth > 1000
    # 30 ms of 300 W at either end: a look, a sample and two clocks are not one moment.
    assert package["energy_j"] == pytest.approx(truth, abs=2 * 0.03 * 300)
    assert dram["energy_j"] == pytest.approx(30 * dram["elapsed_s"], abs=2 * 0.03 * 30)
    assert dram["elapsed_s"] == pytest.approx(last - first, abs=0.06)
    assert energy["energy_j"] == pytest.approx(package["energy_j"] + dram["energy_j"], abs=1e-5)
    if busy_s > 1:  # the law sees the work
        assert package["energy_j"] > 200 * package["elapsed_s"] + 100 * 0.5 * busy_s


def told_of_jobs(node: Node) -> dict[str, float]:
    """Return the joules of each job of the study, from the database."""
    with duckdb.connect(str(node.work / "joules.study/study.duckdb"), read_only=True) as base:
        rows = base.execute(
            "SELECT job_id, value FROM measurements JOIN attempts USING (run_id, attempt) "
            "WHERE metric = 'energy_j'"
        ).fetchall()
    return dict(rows)


def test_from_a_study_to_the_page(node: Node) -> None:
    (node.work / "joules.toml").write_text(STUDY)
    node.steelyard("submit", "joules.toml")
    node.steelyard("status", "joules.toml", "--watch")
    wait_for("every job has ended", lambda: not node.run("squeue", "-h"), 60)
    node.steelyard("collect", "joules.toml")
    told = told_of_jobs(node)
    assert len(told) == 2
    for job, energy_j in told.items():
        (path,) = (node.cluster.record_dir / job).glob("*.json")
        record = json.loads(path.read_text())
        assert energy_j == record["energy"]["energy_j"]
        least_j = 230 * zones(record)["dram"]["elapsed_s"]
        assert least_j * 0.99 < energy_j < least_j + 100 * record["elapsed_s"]
        shown = json.loads(node.steelyard("show", "--json", job))
        assert shown["totals"]["energy_j"] == energy_j
    report = json.loads(node.steelyard("report", "--json", "joules.toml"))
    (row,) = [one for one in report["rows"] if one["metric"] == "energy_j"]
    assert (row["n"], row["unit"], row["invalid"]) == (2, "J", 0)
    assert row["mean"] == pytest.approx(sum(told.values()) / 2)
    assert "SY07" not in json.dumps(report["findings"])  # no energy
