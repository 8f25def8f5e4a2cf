"""Two jobs on one node with a meter that follows a known law: what each is told of the joules holds
what it really used. Processes, CPU time and samplers are real, the counter is a file."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.job.job_samples import compute_job_shares
from steelyard.analysis.sources.records import read_record
from steelyard.analysis.store.energy_shares import IdlePower

pytestmark = pytest.mark.slow

IDLE_W = 50.0
WATTS = {"calm": 10.0, "hot": 25.0}  # of each CPU second: 2.5 times as much
OTHERS_W = 15.0
RANGE_UJ = 262143328850
SECONDS = 4

# Waits for a line, works for a part of each 50 ms, waits for another.
BURN = f"""
import sys, time
sys.stdin.readline()
begin = time.monotonic()
while (now := time.monotonic() - begin) < {SECONDS}:
    if now % 0.05 > 0.05 * float(sys.argv[1]): time.sleep(0.005)
print("done", flush=True)
sys.stdin.readline()
"""
ROOT = (
    "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', *sys.argv[1:]]); p.wait()"
)


def cpu_s(pid: int) -> float:
    """What a process has run, by the scheduler's own clock."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def node_cpu_s(stat: str) -> float:
    user, nice, system, _idle, _wait, irq, softirq = map(int, stat.split()[1:8])
    return (user + nice + system + irq + softirq) / 100


def child_of(pid: int) -> int | None:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found[0]) if found else None


@dataclass
class Meter:
    """Writes energy_uj and proc/stat below the tree, 50 times a second."""

    tree: Any
    jobs: dict[str, int]  # pid of each
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.begin_s = time.monotonic()
        self.node_s = node_cpu_s(self.stat())
        (self.tree.root / "proc").mkdir(parents=True, exist_ok=True)
        self.thread = threading.Thread(target=self.follow)
        self.write()

    def stat(self) -> str:
        return Path("/proc/stat").read_text().splitlines()[0]

    def joules(self, name: str) -> float:
        return WATTS[name] * cpu_s(self.jobs[name])

    def write(self) -> None:
        stat = self.stat()
        used = {name: cpu_s(pid) for name, pid in self.jobs.items()}
        others_s = max(node_cpu_s(stat) - self.node_s - sum(used.values()), 0)
        joules = IDLE_W * (time.monotonic() - self.begin_s) + OTHERS_W * others_s
        joules += sum(WATTS[name] * used[name] for name in used)
        self.tree.set("intel-rapl:0", int(joules * 1e6) % RANGE_UJ)
        path = self.tree.root / "proc/stat"
        with path.open("r+" if path.exists() else "w") as file:  # in place: it is open
            file.write(f"{stat:<120}\n")

    def follow(self) -> None:
        while not self.ended.wait(0.02):
            self.write()


def start(share: float, waiting: Any) -> tuple[subprocess.Popen[str], int]:
    root = subprocess.Popen(
        [sys.executable, "-c", ROOT, BURN, str(share)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return root, waiting("the job's process", lambda: child_of(root.pid))


def test_each_is_told_an_interval_that_holds_what_it_used(
    sampler: Any, tree: Any, waiting: Any
) -> None:
    tree.add("intel-rapl:0", "package-0", RANGE_UJ, 0)
    roots = {"calm": start(1.0, waiting), "hot": start(0.5, waiting)}
    meter = Meter(tree, {name: pid for name, (_, pid) in roots.items()})
    attached = {
        name: sampler.attach("--root", tree.root, "--pid", str(root.pid), "--rate", "5")
        for name, (root, _) in roots.items()
    }
    before_j = {name: meter.joules(name) for name in roots}
    meter.thread.start()
    try:
        for root, _ in roots.values():
            assert root.stdin is not None
            root.stdin.write("\n")
            root.stdin.flush()
        for root, _ in roots.values():
            assert root.stdout is not None and root.stdout.readline() == "done\n"
    finally:
        meter.ended.set()
        meter.thread.join()
    meter.write()
    used_j = {name: meter.joules(name) - before_j[name] for name in roots}
    records = {name: one.end() and read_record(one.record_path) for name, one in attached.items()}
    for root, _ in roots.values():
        root.communicate("\n", timeout=30)
    total = 0.0
    for name, record in records.items():
        share = compute_job_shares({record.node: record}, IdlePower(elsewhere_w=IDLE_W))[
            record.node
        ]
        assert share.reason is None
        assert share.low_j is not None and share.high_j is not None and share.energy_j is not None
        cpu_j = record.columns()["cpu_s"] * WATTS[name]
        assert cpu_j == pytest.approx(used_j[name], rel=0.02, abs=0.5)
        assert share.low_j <= cpu_j <= share.high_j
        assert share.low_j > 0.1 * cpu_j  # it says something
        total += share.low_j
    assert total <= share.energy_j - IDLE_W * record.columns()["elapsed_s"] + 0.5
