"""The commands that cron and timers run on a cluster, in fast motion, for bench/soak.py."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from collect import Cost, measured
from million_job_readers import STEELYARD

from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.sweep.sweep import SweepReport, SweepRequest, sweep

LATER_S = 9 * 86400  # a day is packed a week after its end
PACK_AFTER_S = 7 * 86400
TOP = ("cpu_s", "rchar_bytes", "wchar_bytes")


@dataclass
class Services:
    """Runs the commands in turn, repeatedly, until `end()`.

    `costs` has each command's passes: wall seconds, CPU seconds, largest resident MB. `failures`
    has the messages of failed commands.
    """

    slurm: Cluster
    pause_s: float
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    @property
    def database(self) -> Path:
        return self.slurm.dir / "jobs"

    def commands(self) -> dict[str, list[str]]:
        """Return each command line, without `steelyard`."""
        records = ["--record-dir", str(self.slurm.record_dir)]
        return {
            "publish": ["publish", "--hours", "2", *records],
            "collect": ["collect", "--cluster", str(self.database), *records],
            "metrics": ["metrics", "--database", str(self.database), str(self.database / "s.prom")],
            "sweep": ["sweep", *records],
        }

    def run(self) -> None:
        while not self.ended.wait(self.pause_s):
            self.run_once()

    def run_once(self) -> None:
        environment = self.slurm.environment()
        for name, words in self.commands().items():
            try:
                self.costs.setdefault(name, []).append(measured([STEELYARD, *words], environment))
            except RuntimeError as error:
                self.failures.append(str(error))

    def end(self) -> None:
        """Wait for the current pass, and run one that includes all jobs."""
        self.ended.set()
        self.thread.join()
        self.run_once()

    def figures(self) -> dict[str, object]:
        """Return passes, wall time, CPU time and memory of each command, and print them.

        Wall time is median and maximum in s, CPU time the sum of all passes in s, memory the
        largest resident MB of the first and of the last pass.
        """
        found: dict[str, object] = {}
        for name, costs in self.costs.items():
            walls, cpus, sizes = zip(*costs, strict=True)
            found[name] = {
                "passes": len(costs),
                "wall_s": [round(statistics.median(walls), 2), round(max(walls), 2)],
                "cpu_s": round(sum(cpus), 1),
                "memory_mb": [round(sizes[0]), round(sizes[-1])],
            }
            print(f"{name:<10} {found[name]}")
        return found


@contextmanager
def beside(slurm: Cluster, pause_s: float | None) -> Iterator[Services | None]:
    """Run the services in the `with` statement; with `pause_s` None, run none."""
    if pause_s is None:
        yield None
        return
    services = Services(slurm, pause_s)
    services.thread.start()
    try:
        yield services
    finally:
        services.end()


def read_top(slurm: Cluster, database: Path) -> Mapping[str, float]:
    """Return the sums of `steelyard top` over all jobs of a database."""
    argv = [STEELYARD, "top", "--by", "account", "--database", str(database), "--json"]
    done = subprocess.run(
        argv, env=slurm.environment(), stdout=subprocess.PIPE, check=True, timeout=300
    )
    total = json.loads(done.stdout)["total"]
    # The last digit of a sum of seconds depends on the order of the jobs.
    return {"jobs": total["jobs"], **{name: round(total[name]["sum"], 6) for name in TOP}}


def sweep_later(record_dir: Path) -> SweepReport:
    """Sweep as on a later day, when all of tonight's records are packed."""
    asked = SweepRequest(record_dir, PACK_AFTER_S)
    now_s = time.time()
    with mock.patch("time.time", lambda: now_s + LATER_S):
        return sweep(asked)


def check(services: Services, jobs: int) -> dict[str, object]:
    """Check that the database has every start of a job, and that one collected from packs is equal.

    Returns the messages of faults, and the number of packed files.
    """
    slurm, wrong = services.slurm, list(services.failures)
    tonight = read_top(slurm, services.database)
    if tonight["jobs"] != jobs:
        wrong.append(f"top reports {tonight['jobs']} jobs, {jobs} expected")
    report = sweep_later(slurm.record_dir)
    again = slurm.dir / "again"
    words = ["collect", "--cluster", str(again), "--record-dir", str(slurm.record_dir)]
    measured([STEELYARD, *words], slurm.environment())
    packed = read_top(slurm, again)
    if packed != tonight:
        wrong.append(f"out of packs top reports {packed}, not {tonight}")
    print(f"top: {tonight}; swept: {report}", file=sys.stderr)
    return {
        "services": services.figures(),
        "services_wrong": wrong,
        "packed_files": report.packed_files,
        "sweep_failed": report.failed,
    }
