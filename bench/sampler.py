"""What one sample costs, beside Slurm's own jobacct_gather/linux on the same job.

A throwaway Slurm runs a job of 1 and of 200 processes, each of which writes and sleeps, five times
a second. While slurmstepd polls it every second, two of our samplers, at 1 and at 10 Hz, weigh the
same processes. The job is run again without polling: the difference of slurmstepd's CPU time is
Slurm's cost. The samplers see four made-up RAPL zones on a tmpfs, and everything else of this
machine, through bind mounts in a mount namespace of their own: this needs root.

A sample taken ten times a second runs with cold caches. What that means here is measured by a small
C program (sampler_floor.c) on the same job: what it costs to wake ten times a second and do
nothing, and to read the files that a sample reads and do nothing with them. No sampler that reads
those can cost less. A sampler at 1000 Hz tells the same with warm caches. Processes that others
start on the machine cost a sample some 1 to 20 µs each: measure on a quiet one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.base.node import find_node_program
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.config import ClusterConfig

SECONDS = 20
BUDGET_US = {1: 25, 200: 400}
BUDGET_KB = 2048
RATES_HZ = (1, 10)

JOB = """
import os, sys, time
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
null = os.open("/dev/null", os.O_WRONLY)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    os.write(null, b"x" * 100)
    time.sleep(0.2)
"""


@dataclass
class Cost:
    """CPU time of a process between two looks at it."""

    ns: int
    samples: int

    @property
    def sample_us(self) -> float:
        return self.ns / 1e3 / max(self.samples, 1)


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process so far."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def make_tree(folder: Path) -> None:
    """The shell of a root folder with RAPL in it; the rest is mounted by `mounts`."""
    for name, zone in (
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "dram"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:1:0", "dram"),
    ):
        path = folder / "sys/class/powercap" / name
        path.mkdir(parents=True)
        (path / "name").write_text(f"{zone}\n")
        (path / "max_energy_range_uj").write_text("262143328850\n")
        (path / "energy_uj").write_text("12345678901\n")
    for name in ("proc", "sys/devices", "sys/class/net", "sys/fs/cgroup"):
        (folder / name).mkdir(parents=True)


def in_namespace(tree: Path) -> list[str]:
    """A prefix that puts the machine's own counters into the tree, for one program only."""
    binds = "".join(
        f"mount --rbind /{name} {tree}/{name} && "
        for name in ("proc", "sys/devices", "sys/class/net", "sys/fs/cgroup")
    )
    return ["unshare", "--mount", "sh", "-c", f'{binds} exec "$@"', "sh"]


@dataclass
class Sampler:
    """A sampler of ours, its parent and its child."""

    rate_hz: int
    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def child(self) -> int:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(path.read_text().split()[0])

    def lines(self) -> int:
        (samples,) = self.folder.glob("*.csv")
        return samples.read_bytes().count(b"\n")

    def look(self) -> tuple[int, int]:
        return cpu_ns(self.child) + cpu_ns(self.process.pid), self.lines()

    def rss_kb(self) -> tuple[int, int, int]:
        """Of the parent, of the child, and of both with the pages that they share counted once."""
        parent, child = memory_kb(self.process.pid), memory_kb(self.child)
        return parent["Rss"], child["Rss"], child["Rss"] + parent["Private"]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)


def memory_kb(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    fields = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {
        "Rss": fields["Rss"],
        "Private": fields["Private_Clean"] + fields["Private_Dirty"],
    }


def start_sampler(base: Path, rate_hz: int, root: int, job_id: str) -> Sampler:
    (base / "records").mkdir(exist_ok=True)
    arguments = [
        *in_namespace(base / "tree"), str(find_node_program()), "sample",
        "--record-dir", str(base / "records"), "--job-id", job_id, "--root", str(base / "tree"),
        "--rate", str(rate_hz), "--pid", str(root),
    ]  # fmt: skip
    return Sampler(rate_hz, subprocess.Popen(arguments), base / "records" / job_id)


@contextmanager
def slurm_job(slurm: cluster.Cluster, processes: int, interval_s: int) -> Iterator[int]:
    """A job that runs; its slurmstepd's pid."""
    job = subprocess.Popen(
        ["srun", "-n1", f"--acctg-freq=task={interval_s}", sys.executable, "-c", JOB,
         str(processes), str(SECONDS + 8)],
        env=slurm.environment(), cwd="/",
    )  # fmt: skip
    try:
        yield find_stepd(processes)
    finally:
        job.wait(60)


def job_processes() -> list[Path]:
    """The job's processes, as their folders in /proc."""
    return [
        path.parent
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if JOB.encode() in read(path) and b"srun" not in read(path)
    ]


def find_stepd(processes: int) -> int:
    """The slurmstepd that is above the job's processes, once all of them are there."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        ours = job_processes()
        if len(ours) == processes:
            parents = {parent_of(path) for path in ours}
            (stepd,) = (pid for pid in parents if read_name(pid) == "slurmstepd")
            return stepd
        time.sleep(0.1)
    raise SystemExit(f"bench: the job's {processes} processes did not come up within 30 s")


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def read_name(pid: int) -> str:
    return read(Path(f"/proc/{pid}/comm")).decode().strip()


def parent_of(process: Path) -> int:
    stat = read(process / "stat").decode()
    return int(stat.rpartition(")")[2].split()[1]) if stat else 0


@dataclass
class Measured:
    """Of one job, µs: our samplers' costs by rate, a poll of Slurm's, the floor; our memory, kB."""

    costs: dict[int, Cost]
    poll_us: float
    floor_us: float
    memory: tuple[int, int, int]


def measure(slurm: cluster.Cluster, base: Path, processes: int) -> Measured:
    """One job of so many processes, run twice."""
    with slurm_job(slurm, processes, 1) as stepd:
        samplers = [start_sampler(base, rate, stepd, f"{processes}.{rate}") for rate in RATES_HZ]
        time.sleep(3)  # beyond the start
        before, polled = [sampler.look() for sampler in samplers], cpu_ns(stepd)
        time.sleep(SECONDS)
        after, polled = [sampler.look() for sampler in samplers], cpu_ns(stepd) - polled
        memory = max((sampler.rss_kb() for sampler in samplers), key=lambda kb: kb[2])
        for sampler in samplers:
            sampler.end()
    with slurm_job(slurm, processes, 0) as stepd:
        time.sleep(1)
        idle = cpu_ns(stepd)
        floor = floor_us(base, needed_readings(base, job_processes()), SECONDS - 1)
        idle = cpu_ns(stepd) - idle
    costs = {
        sampler.rate_hz: Cost(b[0] - a[0], b[1] - a[1])
        for sampler, a, b in zip(samplers, before, after, strict=True)
    }
    return Measured(costs, (polled - idle) / 1e3 / SECONDS, floor, memory)


def build_floor(base: Path) -> None:
    program, source = base / "sampler_floor", Path(__file__).with_name("sampler_floor.c")
    subprocess.run(
        ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", program, source], check=True, timeout=60
    )


def uplink() -> str:
    """The device of the default route, else any but `lo`."""
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    devices = [route[0] for route in routes if route[1] == "00000000"]
    return (devices or sorted({path.name for path in Path("/sys/class/net").iterdir()} - {"lo"}))[0]


def needed_readings(base: Path, job: list[Path]) -> list[str]:
    """What a sample of this job reads: each process' clock; I/O of 32 of them, memory of 16."""
    statistics = Path("/sys/class/net") / uplink() / "statistics"
    return [
        *map(str, sorted((base / "tree/sys/class/powercap").glob("*/energy_uj"))),
        *(str(statistics / name) for name in ("rx_bytes", "tx_bytes")),
        "/proc/loadavg",
        *(f"clock:{path.name}" for path in job),
        *(str(path / "stat") for path in job[:16]),
        *(str(path / "io") for path in job[:32]),
    ]


def floor_us(base: Path, readings: list[str], seconds: float) -> float:
    """What it costs to wake ten times a second and take these readings, none: only to wake."""
    process = subprocess.Popen([base / "sampler_floor", "10", *readings])
    try:
        time.sleep(1)
        before = cpu_ns(process.pid)
        time.sleep(seconds)
        return (cpu_ns(process.pid) - before) / 1e3 / (10 * seconds)
    finally:
        process.kill()
        process.wait()


def hot_us(base: Path) -> float:
    """One sample of one idle process at 1000 Hz."""
    job = subprocess.Popen(["sh", "-c", "sleep 20; true"])
    try:
        sampler = start_sampler(base, 1000, job.pid, "hot")
        time.sleep(1.5)
        before = sampler.look()
        time.sleep(4)
        after = sampler.look()
        sampler.end()
        return Cost(after[0] - before[0], after[1] - before[1]).sample_us
    finally:
        job.kill()
        job.wait()


def report(processes: int, measured: Measured) -> float:
    """Print the lines of one job; the cost at 10 Hz."""
    for rate, cost in measured.costs.items():
        verdict = "" if cost.sample_us <= BUDGET_US[processes] else "  over budget"
        print(
            f"{processes:>9}  {rate:>4} Hz  {cost.sample_us:>9.1f} µs  "
            f"{BUDGET_US[processes]:>6} µs  {cost.sample_us * rate / 1e4:>8.4f} %  "
            f"{measured.poll_us:>9.0f} µs{verdict}"
        )
    parent, child, both = measured.memory
    print(f"{'':>9}  to read the same files, 10 Hz, doing nothing else: {measured.floor_us:.1f} µs; "
          f"memory: parent {parent} kB, child {child} kB, both with shared pages once {both} kB; "
          f"budget {BUDGET_KB} kB")  # fmt: skip
    return measured.costs[10].sample_us


def run(base: Path) -> dict[str, float]:
    figures: dict[str, float] = {}
    make_tree(base / "tree")
    build_floor(base)
    config = ClusterConfig(
        dir=base / "slurm", physical_nodes=1, virtual_nodes=0, gather_interval_s=1, contain=False
    )
    print(f"{'processes':>9}  {'rate':>7}  {'a sample':>12}  {'budget':>9}  {'of a core':>10}  "
          f"{'Slurm, a poll':>12}")  # fmt: skip
    with cluster.up(config) as slurm:
        for processes in BUDGET_US:
            measured = measure(slurm, base, processes)
            ours = report(processes, measured)
            figures[f"sample_us_{processes}"] = round(ours, 1)
            figures[f"floor_us_{processes}"] = round(measured.floor_us, 1)
            figures[f"slurm_poll_us_{processes}"] = round(measured.poll_us, 1)
            figures[f"ratio_{processes}"] = round(measured.poll_us / ours, 1)
            figures["rss_kb"] = max(figures.get("rss_kb", 0), measured.memory[2])
    figures["wake_us"] = round(floor_us(base, [], 5), 1)
    print(f"here only to wake costs {figures['wake_us']} µs at 10 Hz, and a sample of 1 process "
          f"{hot_us(base):.1f} µs at 1000 Hz; load average {os.getloadavg()[0]:.1f}")  # fmt: skip
    return figures


def main() -> int:
    if os.geteuid() != 0:
        print("bench/sampler: needs root, for mounts of its own", file=sys.stderr)
        return 3
    base = Path(tempfile.mkdtemp(prefix="sybench.", dir="/dev/shm"))
    base.chmod(0o755)
    try:
        figures = run(base)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
