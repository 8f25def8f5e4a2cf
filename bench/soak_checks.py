"""What bench/soak.py checks after its jobs: the accounting, the records, the machine."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from soak_load import ask, written_bytes

from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import SEPARATOR
from steelyard.analysis.sources.records import RecordError, read_record
from steelyard.analysis.sources.slurm_field_values import expand_nodes
from steelyard.analysis.stats.slope import Slope, line_slope
from steelyard.wrappers.cluster import daemon_processes
from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.cluster.cluster_config import Layout
from steelyard.wrappers.sweep.sweep import LOCK

FIELDS = ("JobIDRaw", "State", "ExitCode", "NodeList", "AdminComment")
TOLD_LIMIT_S = 300.0  # slurmctld reports to slurmdbd with a delay
OWN_BYTES = 64  # written by Slurm and the shell in a job, in addition
WARM_UP = 4  # a quarter of the checks: allocators and threads reach their final size
MOST_ALONE = 4  # daemons: slurmctld, slurmdbd, two slurmd
SMALL = 0.01  # of the memory: a harmless growth
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


@dataclass(frozen=True, slots=True)
class Job:
    """One start of a job in slurmdbd."""

    job_id: int
    state: str
    exit_code: str
    nodes: tuple[str, ...]
    comment: str

    @property
    def harmed(self) -> bool:
        return (self.state, self.exit_code) != ("COMPLETED", "0:0")


def accounted(slurm: Cluster, jobs: int) -> list[Job]:
    """Return every start of every job, when slurmdbd has the end of all."""
    end = time.monotonic() + TOLD_LIMIT_S
    while True:
        found = starts(slurm)
        ended = sum(job.state.split(" ")[0] in FINAL for job in found)
        if (ended >= jobs and ended == len(found)) or time.monotonic() > end:
            return found
        time.sleep(2)


def starts(slurm: Cluster) -> list[Job]:
    text = ask(slurm, "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "2000-01-01",
               f"--delimiter={SEPARATOR}", "-o", ",".join(FIELDS))  # fmt: skip
    found = []
    for line in text.strip("\n").split("\n"):
        job_id, state, code, nodes, comment = line.split(SEPARATOR)
        names = () if nodes == "None assigned" else tuple(expand_nodes(nodes))
        found.append(Job(int(job_id), state, code, names, comment))
    return found


def drained(slurm: Cluster) -> int:
    """Count nodes that take no jobs, and lines of slurmctld's log on drained nodes."""
    nodes = ask(slurm, "scontrol", "-o", "show", "nodes").splitlines()
    bad = sum(bool(re.search(r"State=\S*(DRAIN|DOWN|FAIL)|Reason=", line)) for line in nodes)
    log = (slurm.dir / "log" / "slurmctld.log").read_text(errors="replace")
    return bad + len(re.findall(r"drain", log, re.IGNORECASE))


def faulty_records(folder: Path, jobs: Sequence[Job]) -> dict[str, str]:
    """Return the fault of each faulty record, by JOB.NODE."""
    found = {}
    for job in jobs:
        for node in job.nodes:
            why = fault(folder / str(job.job_id), node, job)
            if why:
                found[f"{job.job_id}.{node}"] = why
    return found


def fault(folder: Path, node: str, job: Job) -> str | None:
    """Return what is wrong with the record of a job on a node; None: nothing."""
    paths = list(folder.glob(f"{node}.*.json"))
    if len(paths) != 1:
        return f"{len(paths)} records"
    try:
        record = read_record(paths[0])
    except RecordError as error:
        return str(error)
    if not record.complete or record.get("job.job_id") != str(job.job_id):
        return f"of job {record.get('job.job_id')}, complete: {record.complete}"
    if not paths[0].with_suffix(".csv").is_file():
        return "no samples"
    # With two nodes, the first one may have srun's own bytes in addition.
    more = (record.get("io.wchar_bytes") or 0) - written_bytes(job.job_id)
    if more < 0 or (len(job.nodes) == 1 and more > OWN_BYTES):
        return f"{more:+d} bytes written"
    return None


def without_comment(jobs: Sequence[Job]) -> int:
    """Count jobs whose AdminComment lacks our object, or some nodes."""
    found = (admin_comment.read_own_comment(job.comment) for job in jobs)
    return sum(own is None or own["nodes_measured"] != own["nodes"] for own in found)


def small_files(slurm: Cluster) -> set[Path]:
    """Return the cluster's files, without logs, records, the database and slurmctld's state."""
    folders = (slurm.dir / name for name in ("run", "spool", "etc", "lib"))
    found = {path for folder in folders for path in folder.rglob("*")}
    return {
        path
        for path in found
        if not path.is_dir() and not re.match(r"cred_state|n\d+\.", path.name)
    }


def left_behind(slurm: Cluster, at_first: set[Path]) -> dict[str, int]:
    """Count leftover processes and files, including sockets, of ended jobs."""
    daemons = {daemon.pid for daemon in slurm.state.daemons}
    ours = daemon_processes.find_leftovers(Layout(slurm.dir).slurm_conf)
    records = [path for path in slurm.record_dir.rglob("*") if path.name != LOCK]
    return {
        "processes": sum(daemon.pid not in daemons for daemon in ours),
        "files": len(small_files(slurm) - at_first),
        "record_files": sum(p.is_file() and p.suffix not in (".json", ".csv") for p in records),
    }


def wait_left(slurm: Cluster, at_first: set[Path], limit_s: float = 30.0) -> dict[str, int]:
    """Return what is left after the last steps have had time to end."""
    end = time.monotonic() + limit_s
    while any((left := left_behind(slurm, at_first)).values()) and time.monotonic() < end:
        time.sleep(0.5)
    return left


def memory_and_files(slurm: Cluster) -> dict[str, tuple[int, int]]:
    """Return resident kB and open descriptors of each daemon of Slurm.

    Of more than two slurmd they are summed.
    """
    found: dict[str, tuple[int, int]] = {}
    daemons = [daemon for daemon in slurm.state.daemons if daemon.name.startswith("slurm")]
    for daemon in daemons:
        name = daemon.name.split(".")[0] if len(daemons) > MOST_ALONE else daemon.name
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{daemon.pid}/status").read_text()
            (resident,) = re.findall(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
            files = len(list(Path(f"/proc/{daemon.pid}/fd").iterdir()))
            before = found.get(name, (0, 0))
            found[name] = (before[0] + int(resident), before[1] + files)
    return found


def growth(jobs: Sequence[int], values: Sequence[int]) -> Slope | None:
    """Return the slope after the warm-up; None: too few values."""
    begin = max(1, len(jobs) // WARM_UP)
    return line_slope(jobs[begin:], values[begin:])


def is_flat(slope: Slope, values: Sequence[int], jobs: int) -> bool:
    """Whether the slope is not significant at 1 % (two-sided), or its interval is small."""
    most = max(map(abs, ends_of(slope))) * jobs
    unproven = slope.low is not None and slope.p >= 0.01
    return unproven or most <= SMALL * max(values)


def ends_of(slope: Slope) -> tuple[float, float]:
    """Return the slope's interval; the slope itself if the values lie on one line exactly."""
    if slope.low is None or slope.high is None:
        return slope.value, slope.value
    return slope.low, slope.high
