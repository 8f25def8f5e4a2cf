"""Jobs on two guests with delays in both directions, of which something is killed at any moment.

Both guests' queues are restored, no node is drained, and complete records are correct.

STEELYARD_FAULT_TRIES is the number of jobs (3; `tests/run.sh soak`: 30), STEELYARD_FAULT_SEED
selects them.
"""

from __future__ import annotations

import os
import random
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.guests.nodes.netem_guests import Job, address, states, submit, tree
from tests.throwaway_lab import Lab, is_whole, until

TRIES = int(os.environ.get("STEELYARD_FAULT_TRIES", "3"))
SEED = int(os.environ.get("STEELYARD_FAULT_SEED", "1"))
GUESTS = ("v1", "v2")
PORTION = 100_000  # bytes that a task writes before it reports them
LATEST_S = 2.0  # after sbatch, or after both tasks have begun to write, when something is killed
OF_SLURM = 60_000  # written by srun, on the first node, and slurmstepd in addition to the tasks

# On both guests until it is stopped; a line in its guest's file for each portion written.
TASK = (
    "until [ -e end.$SLURM_JOB_ID ]; do "
    f"head -c {PORTION} /dev/zero >/dev/null; echo >>wrote.$SLURM_JOB_ID.$SLURMD_NODENAME; done"
)
SCRIPT = f"srun -N2 -n2 --kill-on-bad-exit=0 sh -c {shlex.quote(TASK)}"

SLURMD = "^slurmd -N"
SAMPLER = "^[^ ]*steelyard-node sample .*--job-id {job} "
STEPDS = r"^slurmstepd: \[{job}\."
VICTIMS = {
    "slurmd": (SLURMD,),
    "the sampler": (SAMPLER,),
    "slurmstepd of the extern step": (STEPDS + "extern",),
    "slurmstepd of the job's steps": (STEPDS + "(batch|0)",),
    "all slurmstepd and the sampler": (STEPDS, SAMPLER),
}


@dataclass(frozen=True)
class Death:
    """What is killed, where, when."""

    victim: str
    guest: str
    at_work: bool
    after_s: float

    def __str__(self) -> str:
        since = "its tasks have begun" if self.at_work else "sbatch"
        return f"{self.victim} on {self.guest} {self.after_s:.2f} s after {since}"


def deaths() -> Iterator[Death]:
    """Each victim in its turn, of two jobs one at its start, the rest by chance."""
    chance = random.Random(SEED)
    for i in range(TRIES):
        victim = list(VICTIMS)[i % len(VICTIMS)]
        yield Death(victim, chance.choice(GUESTS), i % 2 == 0, chance.uniform(0, LATEST_S))


def kill(lab: Lab, job: str, death: Death) -> bool:
    """Kill processes; return whether any existed."""
    patterns = [shlex.quote(one.format(job=job)) for one in VICTIMS[death.victim]]
    lines = "; ".join(f"pgrep -f {one}" for one in patterns)
    done = lab.cluster.find_guest(death.guest).run(["sh", "-c", f"pids=$({lines}); kill -9 $pids"])
    return done.returncode == 0


def finish(lab: Lab, job: str, death: Death) -> None:
    """End the job: its tasks end by themselves, also those of a step without slurmstepd.

    The rest is cancelled. A slurmd is restarted, and the next job undoes conditions without an
    owner.
    """
    if death.victim == "slurmd":
        done = lab.cluster.find_guest(death.guest).run(["slurmd", "-N", death.guest])
        assert done.returncode == 0, done.stderr
    (lab.work / f"end.{job}").touch()
    time.sleep(1)
    lab.run("scancel", job)
    until(lambda: job not in lab.queued(), "the job is over", 120)
    if "all" in death.victim:
        lab.srun("-N2", "-w", ",".join(GUESTS))


def records(lab: Lab, job: str) -> list[dict[str, Any]]:
    """All that there are, once nobody writes them any more."""
    until(lambda: not any(samplers(lab, job)), "its samplers have ended")
    return lab.records(job, len(list(lab.folder(job).glob("*.json"))), complete=False)


def samplers(lab: Lab, job: str) -> Iterator[str]:
    for guest in GUESTS:
        found = lab.cluster.find_guest(guest).run(["pgrep", "-f", SAMPLER.format(job=job)])
        yield from found.stdout.split()


def portions(lab: Lab, job: str, guest: str) -> int:
    wrote = Path(lab.work / f"wrote.{job}.{guest}")
    return len(wrote.read_text()) if wrote.exists() else 0


def at_work(lab: Lab, job: str) -> bool:
    return all(portions(lab, job, guest) > 0 for guest in GUESTS)


def has_all_portions(lab: Lab, record: dict[str, Any]) -> bool:
    """Whether it has all that its guest's task reported, and at most one portion more."""
    least = portions(lab, record["job"]["job_id"], record["node"]) * (PORTION + 1)
    most = least + PORTION + OF_SLURM
    written = record["io"]["wchar_bytes"]
    return written is None or least <= written <= most


def judge(lab: Lab, job: Job) -> int:
    """Of every record; how many were not cut short."""
    complete = 0
    for record in records(lab, job.id):
        if is_whole(record):
            complete += 1
            assert has_all_portions(lab, record), (record["node"], record["io"])
            conditions = record["network_conditions"]
            assert conditions is None or conditions["undone"], record["node"]
        else:
            assert record["incomplete_reason"]
    return complete


def wait_undone(lab: Lab, before: dict[str, str], death: Death) -> None:
    """Both guests as they were, and up."""
    for guest, queues in before.items():
        same = partial(is_as_before, lab, guest, queues)
        until(same, f"{guest} is as before: {death}", 120, seen=partial(tree, lab.cluster, guest))
    lab.wait_nodes("idle", what=f"all nodes are idle: {death}", limit_s=120)


def is_as_before(lab: Lab, guest: str, queues: str) -> bool:
    return tree(lab.cluster, guest) == queues and not states(lab.cluster, guest)


def test_two_nodes_in_both_directions_whoever_is_killed(virtual_lab: Lab) -> None:
    lab, cluster = virtual_lab, virtual_lab.cluster
    before = {guest: tree(cluster, guest) for guest in GUESTS}
    spec = f"delay=20ms,to={address(cluster, 'n1')},direction=both"
    options = ("-N2", "-w", ",".join(GUESTS), "--exclusive", "--no-requeue")
    killed, complete = 0, 0
    for death in deaths():
        job = submit(lab, spec, *options, script=SCRIPT)
        if death.at_work:
            until(partial(at_work, lab, job.id), f"both tasks are at work: {death}", 120)
        time.sleep(death.after_s)
        killed += kill(lab, job.id, death)
        finish(lab, job.id, death)
        wait_undone(lab, before, death)
        complete += judge(lab, job)
    assert killed >= TRIES // 2, killed
    assert complete > 0
