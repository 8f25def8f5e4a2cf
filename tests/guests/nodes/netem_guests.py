"""Network conditions in guests: many concurrent jobs, their output and their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster.cluster import Cluster

DEVICE = "vec0"  # of every guest
SHARED = "shared"  # a partition where two jobs run on one guest


@dataclass
class Job:
    """A job that has ended on one node: its output and its record."""

    lab: Lab
    id: str
    spec: str
    _record: dict[str, Any] = field(default_factory=dict)

    @property
    def out(self) -> str:
        return (self.lab.work / f"out.{self.id}").read_text()

    @property
    def record(self) -> dict[str, Any]:
        if not self._record:
            (self._record,) = self.lab.records(self.id, 1, complete=False)
        return self._record

    @property
    def conditions(self) -> dict[str, Any]:
        """Return the conditions of its record, checked to be effective and undone."""
        found: dict[str, Any] = self.record["network_conditions"]
        assert found, self.out
        assert found["valid"] is True, found["invalid_reason"]
        assert found["requested"] == self.spec == found["applied"]
        assert (found["undone"], found["undone_by"]) == (True, "job")
        return found

    def rtt_ms(self, moment: str, which: str) -> float:
        """Return the round-trip time in ms at one of the four moments: `min` or `median`."""
        return float(self.conditions["rtt"][moment][f"{which}_s"] * 1e3)

    def added_ms(self, which: str = "min") -> tuple[float, float]:
        """Return by how many ms the round trip was longer at the job's start and at its end.

        Even the shortest round trip contains a delay, and a busy machine only adds to it. For
        jitter the median is needed.
        """
        before = self.rtt_ms("before", which)
        start, end = self.rtt_ms("during_start", which), self.rtt_ms("during_end", which)
        assert self.rtt_ms("after", "min") < self.rtt_ms("before", "min") + 1, "not afterwards"
        return start - before, end - before

    def word(self, name: str) -> str:
        """Return the value that the script printed as `NAME: …`."""
        (found,) = (line for line in self.out.splitlines() if line.startswith(f"{name}: "))
        return found.split(": ", 1)[1]


def tree(cluster: Cluster, name: str) -> str:
    """Return queues, filters, routes and devices of a guest as text."""
    show = f"tc qdisc show; tc filter show dev {DEVICE}; ip route; ip -o link | sed 's/ link.*//'"
    show += f"; ip -d link show {DEVICE} | grep -o 'gso_max_segs [0-9]*'"
    done = cluster.find_guest(name).run(["sh", "-c", show])
    assert done.returncode == 0, done.stderr
    return done.stdout


def address(cluster: Cluster, name: str) -> str:
    """Return a node's address in the cluster's network."""
    network = cluster.state.network
    assert network is not None
    return network.physical if name == "n1" else network.address(name)


def submit(lab: Lab, spec: str, *options: str, script: str) -> Job:
    """Submit a job with conditions."""
    job_id = lab.sbatch("-o", "out.%j", f"--netem={spec}", *options, script=script)
    return Job(lab, job_id, spec)


def wait_all(jobs: Mapping[str, Job], state: str = "COMPLETED") -> None:
    """Wait until every job has ended in this state."""
    for name, job in jobs.items():
        assert job.lab.wait_state(job.id, "COMPLETED", "FAILED") == state, (name, job.out)


@contextmanager
def two_on_a_guest(lab: Lab) -> Iterator[None]:
    """Use a partition that gives a guest's only CPU to two jobs at a time."""
    made = lab.run("scontrol", "create", f"partition={SHARED}", "nodes=v[1-2]",
                   "OverSubscribe=FORCE:2")  # fmt: skip
    assert made.returncode == 0, made.stderr
    try:
        yield
    finally:
        until(
            lambda: lab.run("scontrol", "delete", f"partition={SHARED}").returncode == 0,
            "the partition is gone",
        )


def states(cluster: Cluster, name: str) -> list[str]:
    """Return the names of conditions that a guest has in force, or has not undone."""
    folder = Path(cluster.dir) / "run" / "steelyard" / "netem"
    done = cluster.find_guest(name).run(["ls", str(folder)])
    return [word for word in done.stdout.split() if not word.endswith(".done.json")]
