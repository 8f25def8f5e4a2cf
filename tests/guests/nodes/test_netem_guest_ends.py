"""Ways of dying on a guest with sch_netem: its queues are restored, byte for byte.

STEELYARD_FAULT_TRIES is the number of tries of each (1; `tests/run.sh soak`: 30).
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable

import pytest
from tests.guests.nodes.netem_guests import address, states, submit, tree
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster import daemons, guest_start
from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

NODE = "v1"
TRIES = int(os.environ.get("STEELYARD_FAULT_TRIES", "1"))


def start(lab: Lab) -> str:
    """A job that is being delayed; its id."""
    spec = f"delay=30ms,loss=0%,to={address(lab.cluster, 'n1')}"
    script = "touch running.$SLURM_JOB_ID; exec sleep 60"
    job = submit(lab, spec, "-w", NODE, "--exclusive", script=script)
    lab.wait_running(job.id)
    shaped = tree(lab.cluster, NODE)
    assert "delay 30ms" in shaped and "gso_max_segs 1\n" in shaped
    return job.id


def kill(lab: Lab, *patterns: str) -> None:
    """kill -9 of what runs under these names in the guest, all at once; one may die of another."""
    lines = "; ".join(f"pgrep -f {shlex.quote(pattern)}" for pattern in patterns)
    script = f'pids=$({lines}); [ "$pids" ] && {{ kill -9 $pids || true; }}'
    done = lab.cluster.find_guest(NODE).run(["sh", "-c", script])
    assert done.returncode == 0, done.stderr


def stepd(job: str, step: str) -> str:
    return rf"^slurmstepd: \[{job}\.{step}\]"


def sampler(job: str) -> str:
    return f"^[^ ]*steelyard-node sample .*--job-id {job} "


def is_cancelled(lab: Lab) -> None:
    lab.run("scancel", start(lab))


def loses_its_sampler(lab: Lab) -> None:
    job = start(lab)
    kill(lab, sampler(job))
    lab.run("scancel", job)


def loses_its_extern_stepd(lab: Lab) -> None:
    """The job goes on, and under its conditions; then the sampler undoes them."""
    job = start(lab)
    kill(lab, stepd(job, "extern"))
    assert "delay 30ms" in tree(lab.cluster, NODE)
    lab.run("scancel", job)


def loses_sampler_and_all_stepds(lab: Lab) -> None:
    job = start(lab)
    kill(lab, sampler(job), stepd(job, "extern"), stepd(job, "batch"))
    kill(lab, "^sleep 60")
    lab.run("scancel", job)
    lab.srun("-w", NODE)  # the next job undoes it


def loses_slurmd(lab: Lab) -> None:
    job = start(lab)
    kill(lab, "^slurmd -N")
    start_slurmd(lab)
    lab.run("scancel", job)


def loses_everything(lab: Lab) -> None:
    job = start(lab)
    kill(lab, "^slurmd -N", sampler(job), stepd(job, "extern"), stepd(job, "batch"), "^sleep 60")
    start_slurmd(lab)
    lab.run("scancel", job)


def start_slurmd(lab: Lab) -> None:
    done = lab.cluster.find_guest(NODE).run(["slurmd", "-N", NODE])
    assert done.returncode == 0, done.stderr


WAYS: list[Callable[[Lab], None]] = [
    is_cancelled,
    loses_its_sampler,
    loses_its_extern_stepd,
    loses_sampler_and_all_stepds,
    loses_slurmd,
    loses_everything,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_however_a_job_dies_the_delay_is_undone(
    virtual_lab: Lab, way: Callable[[Lab], None]
) -> None:
    cluster = virtual_lab.cluster
    before = tree(cluster, NODE)
    for _ in range(TRIES):
        way(virtual_lab)
        # A slurmd that is only starting misses the cancellation: Slurm repeats it, or the job ends.
        until(
            lambda: tree(cluster, NODE) == before and not states(cluster, NODE), "it is undone", 120
        )
        virtual_lab.wait_nodes("idle", what="the node is up again")


def reboot(cluster: Cluster, left: str) -> None:
    """Start a guest that was killed; `left` is what its run folder still has from before."""
    old, network = cluster.find_guest(NODE), cluster.state.network
    assert network is not None
    cluster.state.daemons.remove(old.daemon)
    (old.dir / "ready").unlink()
    starter = daemons.Starter(ClusterConfig(dir=cluster.dir), cluster.state, cluster.environment())
    line = guest_start.launch_line(cluster.dir, NODE, network, ClusterConfig.memory_mb)
    starter.launch(f"guest.{NODE}", line, console=old.dir / "console", output=old.console)
    guest = cluster.find_guest(NODE)
    starter.wait_ready(guest.daemon, guest.is_ready, "booted")
    netem = cluster.dir / "run" / "steelyard" / "netem"
    plant = f"mkdir -m 700 {netem} && cat >{netem}/{NODE}.9.json && slurmd -N {NODE}"
    assert guest.run(["sh", "-c", plant], text=left).returncode == 0
    guest.run(["sh", str(cluster.dir / "guests" / "nfs_client.sh")])


def crash(lab: Lab, job: str) -> None:
    """The guest is gone at once, as by loss of power, and comes again with the states that a node
    has whose /run is on a disk."""
    cluster = lab.cluster
    netem = cluster.dir / "run" / "steelyard" / "netem"
    left = cluster.find_guest(NODE).run(["cat", f"{netem}/{NODE}.{job}.json"]).stdout
    os.kill(cluster.find_guest(NODE).daemon.pid, signal.SIGKILL)
    until(lambda: not cluster.find_guest(NODE).daemon.is_alive(), "the guest is dead")
    lab.run("scancel", job)
    reboot(cluster, left)


def test_a_node_that_crashed_has_nothing_to_undo_and_says_so(virtual_lab: Lab) -> None:
    cluster = virtual_lab.cluster
    before = tree(cluster, NODE)
    for _ in range(TRIES):
        job = start(virtual_lab)
        crash(virtual_lab, job)
        until(lambda: not states(cluster, NODE), "slurmd has looked at what was left")
        assert tree(cluster, NODE) == before
        virtual_lab.wait_nodes("idle", what="the node is up again", limit_s=120)
        (path,) = virtual_lab.folder(job).glob("*.json")
        record = json.loads(path.read_text())
        assert (record["complete"], bool(record["incomplete_reason"])) == (False, True)
        virtual_lab.srun("-w", NODE)
