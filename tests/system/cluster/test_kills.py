"""A job of which something is killed at any moment, or that Slurm ends itself.

A complete record has the job's usage by its own count; nothing of it is left, and the node remains
available. STEELYARD_FAULT_TRIES is the number of tries of each way (1; a soak: 30),
STEELYARD_FAULT_SEED selects the moments; the table is printed at the end. A way is tried while the
job starts and while it works, in turn; the ways begin with one or the other in turn, too.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.processes import each_process, of_process
from tests.system.cluster.test_ends import parent_of
from tests.system.cluster.test_netem_faults import kill, restart_slurmd, slurmd
from tests.throwaway_lab import Lab, until

TRIES = int(os.environ.get("STEELYARD_FAULT_TRIES", "1"))
SEED = int(os.environ.get("STEELYARD_FAULT_SEED", "1"))
NODE = "n1"
LATEST_S = 1.0  # after sbatch, or after the load has begun, when something is killed
PORTION = 100_000  # bytes that the load writes, and 20 ms of CPU, before it reports them
# In addition to the load's report: one more portion, its start and its shell's.
MORE_WRITTEN = PORTION + 3_000
MORE_CPU_S = 0.2

# Until it is stopped: after each portion a line with its usage, including this line.
LOAD = f"""
import os, sys, time
null = os.open("/dev/null", os.O_WRONLY)
told = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
io = os.open("/proc/self/io", os.O_RDONLY)
while not os.path.exists(sys.argv[2]):
    os.write(null, bytes({PORTION}))
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    wrote = int(os.pread(io, 200, 0).split()[3]) + 40
    os.pwrite(told, f"{{time.process_time():.6f}} {{wrote}}".encode().ljust(40), 0)
    time.sleep(0.03)
"""
TABLE: dict[str, dict[str, int]] = {}


@pytest.fixture(scope="module", autouse=True)
def table(request: pytest.FixtureRequest) -> Iterator[None]:
    """What was tried, after all of it."""
    yield
    plugins = request.config.pluginmanager
    with plugins.getplugin("capturemanager").global_and_fixture_disabled():
        line = plugins.getplugin("terminalreporter").write_line
        names = ("tries", "met", "complete", "incomplete", "none")
        line(f"\n{'way of dying':<38}" + "".join(f"{name:>11}" for name in names))
        for way, counts in TABLE.items():
            line(f"{way:<38}" + "".join(f"{counts[name]:>11}" for name in names))


@dataclass
class Job:
    """A job that works until it is stopped."""

    lab: Lab
    id: str = ""
    met: bool = False  # there was somebody to kill

    def submit(self, *options: str) -> None:
        load = self.lab.work / "load.py"
        load.write_text(LOAD)
        script = (
            f"{sys.executable} -S {load} "
            "$PWD/told.$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0} $PWD/end.$SLURM_JOB_ID & wait"
        )
        self.id = self.lab.sbatch("-w", NODE, *options, script=script)

    def told(self, restart: int = 0) -> tuple[float, int] | None:
        """Return CPU and bytes of the load's last report; None: there is none."""
        path = self.lab.work / f"told.{self.id}.{restart}"
        words = path.read_text().split() if path.exists() else []
        return (float(words[0]), int(words[1])) if len(words) == 2 else None

    def wait_at_work(self) -> None:
        until(self.told, f"job {self.id} is at work")

    def sampler(self, *, child: bool) -> list[int]:
        found = self.lab.samplers()
        return [pid for pid in found if (parent_of(pid) in found) == child]

    def stepds(self, *steps: str) -> list[int]:
        return [pid for step in steps for pid in self.lab.stepds(self.id, step)]

    def scripts(self) -> list[int]:
        """Whom the batch step's daemon waits for: nobody waits for what such a one leaves."""
        tasks = (Path(f"/proc/{pid}/task/{pid}/children") for pid in self.stepds("batch"))
        return [int(pid) for path in tasks for pid in path.read_text().split()]

    def stop(self) -> None:
        """A load that nobody kills any more ends itself."""
        (self.lab.work / f"end.{self.id}").touch()
        until(lambda: not self.left(), "no process of the job is left", 30, self.left)

    def left(self) -> list[str]:
        """Processes with the job's number, but Slurm's own, in their environment."""
        found = []
        for pid, words in each_process("environ"):
            is_of_job = f"SLURM_JOB_ID={self.id}".encode() in words.split(b"\0")
            if is_of_job and str(self.lab.work).encode() in words:
                found.append(f"{pid} {of_process(pid, 'comm').decode().strip()}")
        return found


Victims = Callable[[Job], list[int]]
VICTIMS: dict[str, Victims] = {
    "the batch script": lambda job: job.scripts(),
    "slurmd": lambda job: [slurmd(job.lab)],
    "all slurmstepd": lambda job: job.stepds("extern", "batch"),
    "slurmstepd of the batch step": lambda job: job.stepds("batch"),
    "slurmstepd that watches the sampler": lambda job: job.stepds("extern"),
    "the sampler's parent": lambda job: job.sampler(child=False),
    "the sampler's child": lambda job: job.sampler(child=True),
    "the sampler": lambda job: job.lab.samplers(),
    "all slurmstepd and the sampler": lambda job: [
        *job.lab.samplers(),
        *job.stepds("extern", "batch"),
    ],
}


def loses(job: Job, victims: Victims, chance: random.Random, *, at_work: bool) -> None:
    """At a moment by chance, from sbatch or from the beginning of its work on."""
    job.submit("--no-requeue")
    if at_work:
        job.wait_at_work()
    time.sleep(chance.uniform(0, LATEST_S))
    pids = victims(job)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            kill(pid)
            job.met = True
    if victims is VICTIMS["slurmd"]:
        restart_slurmd(job.lab)
    time.sleep(0.3)
    job.stop()
    job.lab.run("scancel", job.id)


def is_requeued(job: Job, chance: random.Random) -> None:
    job.submit("--requeue")
    job.wait_at_work()
    time.sleep(chance.uniform(0, LATEST_S))
    done = job.lab.run("scontrol", "requeue", job.id)
    assert done.returncode == 0, done.stderr
    job.met = True
    until(lambda: job.lab.job(job.id)["JobState"] == "PENDING", "its first start is over")
    until(lambda: not job.stepds("extern", "batch"), "slurmd has killed it", 60)
    time.sleep(2.1)  # slurmd refuses a job that it has killed in the same second
    done = job.lab.run("scontrol", "update", f"JobId={job.id}", "StartTime=now")
    assert done.returncode == 0, done.stderr
    until(lambda: job.told(1), "it works again")
    time.sleep(chance.uniform(0, LATEST_S))
    job.stop()


def runs_into_its_limit(job: Job, chance: random.Random) -> None:
    job.submit("--no-requeue")
    job.wait_at_work()
    time.sleep(chance.uniform(0, LATEST_S))
    done = job.lab.run("scontrol", "update", f"JobId={job.id}", "EndTime=now+1")
    assert done.returncode == 0, done.stderr
    job.met = True
    job.lab.wait_state(job.id, "TIMEOUT", limit_s=90)


def is_right(record: dict[str, Any], told: tuple[float, int] | None) -> bool:
    """Compare a complete record with the load's last report."""
    cpu_s, wrote = told or (0.0, 0)
    said_s, said = record["cpu"]["cpu_s"], record["io"]["wchar_bytes"]
    if said_s is None or said is None:  # with a reason: usage of killed processes may be unknown
        return told is None or bool(record["missing"].get("io.wchar_bytes"))
    # The load's own start, before its first report.
    more_s = MORE_CPU_S if told else 1.0
    is_cpu = cpu_s - 0.02 <= said_s <= cpu_s + more_s
    return bool(is_cpu and wrote <= said <= wrote + MORE_WRITTEN)


def judge(job: Job, counts: dict[str, int]) -> None:
    """Return its records, once no process writes them."""
    lab = job.lab
    until(lambda: job.id not in lab.queued(), f"job {job.id} is over", 120)
    until(lambda: not lab.samplers(), "its sampler has ended", seen=lab.samplers)
    lab.srun("-w", NODE)  # whoever finishes records without a sampler
    lab.wait_nodes("idle", "mixed", what="the node stays")
    count = len(list(lab.folder(job.id).glob("*.json")))
    counts["none"] += not count
    assert count or job.told() is None, "a job that has worked has a record"
    for restart, record in enumerate(lab.records(job.id, count, complete=False) if count else ()):
        counts["complete" if record["complete"] else "incomplete"] += 1
        if record["complete"]:
            said = record["cpu"], record["io"], record["elapsed_s"]
            assert is_right(record, job.told(restart)), f"{job.told(restart)}: {said}"
        else:
            assert record["incomplete_reason"]
    assert not [path.name for path in lab.folder(job.id).glob(".*")], "no room is left"
    assert not job.left()


def tried(lab: Lab, name: str, count: int, way: Callable[[Job, random.Random, int], None]) -> None:
    counts = TABLE[name] = dict.fromkeys(("tries", "met", "complete", "incomplete", "none"), 0)
    for number in range(count):
        job = Job(lab)
        counts["tries"] += 1
        way(job, random.Random(f"{SEED} {name} {number}"), number)
        counts["met"] += job.met
        judge(job, counts)
    assert counts["met"] >= count // 2, counts
    next_one = lab.srun("-w", NODE)
    assert lab.records(next_one, 1)[0]["complete"], "and all is well again"


@pytest.mark.parametrize("victim", VICTIMS)
def test_whoever_is_killed_at_whatever_moment(lab: Lab, victim: str) -> None:
    first = list(VICTIMS).index(victim)
    tried(
        lab, victim, TRIES,
        lambda job, chance, n: loses(job, VICTIMS[victim], chance, at_work=(first + n) % 2 == 0),
    )  # fmt: skip


def test_requeued_at_whatever_moment(lab: Lab) -> None:
    tried(lab, "requeue", TRIES, lambda job, chance, _: is_requeued(job, chance))


def test_the_time_limit_at_whatever_moment(lab: Lab) -> None:
    """Slurm looks at time limits twice a minute."""
    tried(
        lab, "time limit", (TRIES + 1) // 2, lambda job, chance, _: runs_into_its_limit(job, chance)
    )
