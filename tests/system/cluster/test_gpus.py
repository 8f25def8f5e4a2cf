"""A job's own GPUs through a real Slurm: joules of exactly those, by a law of the test.

No machine here has GPUs. Their device files, the driver's list and NVML's library are in a mount
namespace of the cluster's daemons; numbers, cgroups and access are Slurm's and the kernel's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.throwaway_lab import Lab, is_whole, until

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import cluster as throwaway

ROOT = Path(__file__).parents[3]
TREE = ROOT / "tests/data/meters/two-gpus/proc/driver"
BUSES = ("0000:3b:00.0", "0000:86:00.0")
WATTS = (310, 70)  # the law
IDLE_W = 62.5  # as an administrator configures it

# $1: a folder with driver/ and libnvidia-ml.so.1; then the command. What it mounts nobody else sees.
NAMESPACE = """set -e
at=$1; shift
mount -t tmpfs tmpfs /proc/driver && cp -r "$at/driver/." /proc/driver
printf 'include /etc/ld.so.conf\\n%s\\n' "$at" > "$at/ld.conf"
ldconfig -X -f "$at/ld.conf" -C "$at/ld.cache" && mount --bind "$at/ld.cache" /etc/ld.so.cache
mkdir -p "$at/etc" && cp -a /etc/. "$at/etc/" && mkdir -p "$at/etc/steelyard"
printf 'idle_power n* 62.5\\n' > "$at/etc/steelyard/node.conf"
mount --bind "$at/etc" /etc && mount --bind "$at/ld.cache" /etc/ld.so.cache
mkdir "$at/dev" && mount -t tmpfs -o mode=755 tmpfs "$at/dev"
for file in /dev/*; do
    name="$at/dev/${file##*/}"
    if [ -d "$file" ] && [ ! -L "$file" ]; then mkdir "$name"; mount --rbind "$file" "$name"
    else cp -a "$file" "$name"; fi
done
mknod -m 666 "$at/dev/nvidiactl" c 195 255
for minor in 0 1; do mknod -m 666 "$at/dev/nvidia$minor" c 195 "$minor"; done
mount --move "$at/dev" /dev
exec "$@"
"""
UP = """
import sys
from pathlib import Path
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig
plugin, node_program = cluster.find_plugin()
cluster.start_cluster(ClusterConfig(dir=Path(sys.argv[1]), physical_nodes=1, virtual_nodes=0, cpus=8, gpus=2,
    proctrack=sys.argv[2], plugin=plugin, node_program=node_program, sample_rate_hz=10, bpf=False))
"""


@dataclass
class GpuLab(Lab):
    """With the folder from which NVML's library has its joules."""

    joules: Path = Path()

    def set(self, gpu: int, mj: int) -> None:
        part = self.joules / f".{BUSES[gpu]}"
        part.write_text(str(mj))
        part.chmod(0o644)
        part.rename(self.joules / BUSES[gpu])

    def mj(self, gpu: int) -> int:
        return int((self.joules / BUSES[gpu]).read_text())

    def last_sample(self, job_id: str) -> dict[str, str]:
        for path in self.folder(job_id).glob("*.csv"):
            lines = path.read_text().splitlines()
            if len(lines) > 1:
                return dict(zip(lines[0].split(","), lines[-1].split(","), strict=False))
        return {}


def swap_minors(driver: Path) -> None:
    """The second GPU on the bus is /dev/nvidia0."""
    for minor, bus in enumerate(reversed(BUSES)):
        path = driver / "nvidia" / "gpus" / bus / "information"
        lines = [line for line in path.read_text().splitlines() if "Device Minor" not in line]
        path.write_text("\n".join([*lines, f"Device Minor: \t {minor}", ""]))


@contextmanager
def gpu_lab(work: Path, proctrack: str, swapped: bool) -> Iterator[GpuLab]:
    if os.geteuid() != 0:
        pytest.skip("device files and mounts need root")
    with tempfile.TemporaryDirectory(prefix="sygpu-", dir="/tmp") as name:
        at = Path(name)
        at.chmod(0o755)
        shutil.copytree(TREE, at / "driver")
        if swapped:
            swap_minors(at / "driver")
        source = ROOT / "tests/system/sampler/nvml_stand_in.c"
        library = ["-shared", "-fPIC", f'-DNVML_STAND_IN="{at}"', "-o", at / "libnvidia-ml.so.1"]
        subprocess.run(["cc", *library, source], check=True)
        argv = ["unshare", "--mount", "sh", "-c", NAMESPACE, "sh", at, sys.executable, "-c", UP]
        done = subprocess.run(
            [*argv, at / "c", proctrack], capture_output=True, text=True, timeout=240, check=False
        )
        running = throwaway.find_cluster(at / "c")
        if "MissingError" in done.stderr:
            pytest.skip(done.stderr.splitlines()[-1])
        assert done.returncode == 0 and running is not None, done.stderr
        with running:
            lab = GpuLab(running, work, joules=at)
            for gpu in (0, 1):
                lab.set(gpu, 7_000_000_000 + gpu)
            yield lab
            lab.cancel()


@pytest.fixture(scope="module", params=["index", "device"])
def how(request: pytest.FixtureRequest) -> str:
    """Whether Slurm only numbers GPUs, or the kernel keeps jobs from those of others."""
    return str(request.param)


@pytest.fixture(scope="module")
def lab(how: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuLab]:
    """With constrained devices, their order has no meaning."""
    constrained = how == "device"
    try:
        with gpu_lab(
            tmp_path_factory.mktemp("work"),
            "cgroup" if constrained else "linuxproc",
            swapped=constrained,
        ) as made:
            yield made
    except MissingError as error:
        pytest.skip(str(error))


@contextmanager
def moved(lab: GpuLab) -> Iterator[None]:
    """Let both GPUs consume by the law, until the end."""
    stop, begin = threading.Event(), time.monotonic()
    base = [lab.mj(gpu) for gpu in (0, 1)]

    def run() -> None:
        while not stop.wait(0.05):
            for gpu, watts in enumerate(WATTS):
                lab.set(gpu, base[gpu] + round(watts * 1000 * (time.monotonic() - begin)))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def measure(
    lab: GpuLab, submits: list[Callable[[str], str]]
) -> tuple[list[dict[str, Any]], list[float]]:
    """Records of jobs that run side by side, and what each GPU used meanwhile, by the law."""
    go = lab.work / f"go.{time.monotonic_ns()}"
    jobs = [submit(f"while [ ! -e {go} ]; do sleep 0.05; done; sleep 1.5") for submit in submits]
    try:
        for job in jobs:
            until(
                lambda job=job: lab.last_sample(job).get("energy_j:gpu-1"), f"joules of job {job}"
            )
        before = [lab.mj(gpu) for gpu in (0, 1)]
        with moved(lab):
            until(
                lambda: all(lab.mj(gpu) - before[gpu] > 1500 * WATTS[gpu] for gpu in (0, 1)),
                "what both draw in 1.5 s",
            )
        used = [(lab.mj(gpu) - before[gpu]) / 1000 for gpu in (0, 1)]
    finally:
        go.touch()  # and 1.5 s more: each GPU is read once a second
    return [lab.records(job, 1, complete=False)[0] for job in jobs], used


def by_bus(record: dict[str, Any]) -> list[dict[str, Any]]:
    zones = [zone for zone in record["energy"]["zones"] if zone["meter"] == "nvml"]
    return sorted(zones, key=lambda zone: zone["path"])


def test_each_job_has_its_own_gpus_joules(lab: GpuLab, how: str) -> None:
    (first, second), used = measure(
        lab, [lambda script: lab.sbatch("--gres=gpu:1", script=script)] * 2
    )
    owned = [[zone["of_job"] for zone in by_bus(record)] for record in (first, second)]
    # Slurm's first is /dev/nvidia0; where the minors are swapped that is the second on the bus.
    ones = [[True, False], [False, True]]
    assert owned == (ones if how == "index" else ones[::-1])
    for record, own in zip((first, second), owned, strict=True):
        assert [zone["energy_j"] for zone in by_bus(record)] == used
        assert record["energy"]["gpu_energy_j"] == used[own.index(True)]
        comment = lab.comment(record["job"]["job_id"])
        assert comment["gpu_energy_j"] == pytest.approx(used[own.index(True)], rel=1e-8)
        assert record["energy"]["gpus"] == {"of_node": 2, "of_job": 1, "source": how}
        assert record["energy"]["idle_w"] == IDLE_W
        assert is_whole(record)
    shown = lab.steelyard("show", first["job"]["job_id"])
    assert "energy of the job's GPUs on n1: " in shown
    assert "(1 of 2: gpu-0)" in shown
    found = json.loads(lab.steelyard("show", "--json", second["job"]["job_id"]))
    assert found["nodes"][0]["gpus"]["energy_j"] == second["energy"]["gpu_energy_j"]
    assert found["nodes"][0]["gpus"]["names"] == ["gpu-1"]


def test_both_of_a_job_and_of_its_steps(lab: GpuLab, how: str) -> None:
    """A step that has one, and a batch script that has both: the job's are both."""
    step = "srun --gres=gpu:1 true; "
    (record,), used = measure(
        lab, [lambda script: lab.sbatch("--gres=gpu:2", script=step + script)]
    )
    assert record["energy"]["gpu_energy_j"] == pytest.approx(sum(used), abs=1e-6)  # of floats
    assert record["energy"]["gpus"]["of_job"] == 2


@pytest.mark.parametrize(("tasks", "of_job"), [("1", 1), ("2", 2)])
def test_of_srun_alone_by_its_tasks(lab: GpuLab, how: str, tasks: str, of_job: int) -> None:
    """No batch step reports; each of two tasks has one GPU, bound to it."""
    started: list[subprocess.Popen[bytes]] = []
    told = lab.work / f"srun.{tasks}"

    def submit(script: str) -> str:
        words = ["srun", f"-n{tasks}", "--gpus-per-task=1", "--gpu-bind=single:1", "sh", "-c"]
        words.append(f"echo $SLURM_JOB_ID > {told}; {script}")
        started.append(subprocess.Popen(words, env=lab.cluster.environment(), cwd=lab.work))
        lab.jobs.append(until(lambda: told.is_file() and told.read_text().strip(), "srun's job"))
        return lab.jobs[-1]

    (record,), used = measure(lab, [submit])
    assert started[0].wait(60) == 0
    own = [joules for zone, joules in zip(by_bus(record), used, strict=True) if zone["of_job"]]
    assert record["energy"]["gpus"]["of_job"] == len(own) == of_job
    assert record["energy"]["gpu_energy_j"] == pytest.approx(sum(own), abs=1e-6)


def test_a_job_without_gpus(lab: GpuLab, how: str) -> None:
    """If the kernel denies it access to all, it has none; else this is unknown."""
    (record,), used = measure(lab, [lambda script: lab.sbatch(script=script)])
    assert [zone["energy_j"] for zone in by_bus(record)] == used
    if how == "device":
        assert record["energy"]["gpu_energy_j"] == 0
        assert record["energy"]["gpus"] == {"of_node": 2, "of_job": 0, "source": "device"}
    else:
        assert record["energy"]["gpu_energy_j"] is None
        assert "it was not reported" in record["missing"]["energy.gpu_energy_j"]
        comment = lab.comment(record["job"]["job_id"])
        assert comment["gpu_energy_j"] is None
        assert comment["missing"]["gpu_energy_j"] == (
            "it was not reported which accelerators of the node are the job's"
        )
