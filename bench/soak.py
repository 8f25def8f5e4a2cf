"""Thousands of jobs in a row: none harmed, no node drained, no record missing, no daemon that
grows.

A throwaway Slurm with accounting runs short jobs of every kind in rounds: tasks of an array, jobs
on two nodes, single ones with a tag, srun alone. Each writes a number of bytes that follows from
its id. After each round the memory and descriptors of slurmctld, slurmdbd and each slurmd (of more
than two nodes their sum) are recorded; at the end the accounting, each record, and leftovers are
checked. The peer is the same Slurm without the plugin, with one round. How many: --jobs, or
STEELYARD_JOBS (200; soak: 10,000).

A night of a cluster in fast motion: --nodes 100 --services 10 --jobs 50000. `--services S` runs the
commands that cron runs beside jobs (publish, collect --cluster, metrics, sweep) in turn, each S
seconds after the end of the previous one. At the end `top` must report every start of a job, and
again when all records are packed.

Last line: JSON. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import soak_cron
import soak_load as load
from soak_load import ask, written_bytes

from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import SEPARATOR
from steelyard.analysis.sources.records import RecordError, read_record
from steelyard.analysis.sources.sacct import Sacct
from steelyard.analysis.sources.slurm_field_values import expand_nodes
from steelyard.analysis.stats.slope import Slope, line_slope
from steelyard.wrappers.base.programs import find_program
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout
from steelyard.wrappers.cluster.daemons import find_leftovers
from steelyard.wrappers.publish import publish
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
    ours = find_leftovers(Layout(slurm.dir).slurm_conf)
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


ROUND, FEWEST_ROUNDS = 500, 8
FEWEST_JOBS = 4 * FEWEST_ROUNDS
JUDGED_FROM = 10_000  # memory still grows until 3,500 jobs, also without the plugin
CPUS = 4  # jobs at a time on each of two nodes; on one of more nodes 1
DAY_S = 86400


@dataclass
class Looks:
    """Memory and descriptors of each daemon by number of jobs."""

    jobs: list[int] = field(default_factory=list)
    of: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def take(self, slurm: cluster.Cluster, jobs: int) -> None:
        self.jobs.append(jobs)
        for name, pair in memory_and_files(slurm).items():
            self.of.setdefault(name, []).append(pair)


@dataclass
class Ran:
    """The time of a number of jobs, and the growth of the logs."""

    jobs: int
    seconds: float
    grown: Mapping[str, int]

    def a_job(self, log: str) -> float:
        return self.grown[log] / self.jobs


def rounds_of(jobs: int) -> list[int]:
    """Return 10,000 in rounds of 500; few jobs in eight rounds, so that a slope exists."""
    count = max(FEWEST_ROUNDS, -(-jobs // ROUND))
    return [jobs * (i + 1) // count - jobs * i // count for i in range(count)]


def run_rounds(
    slurm: cluster.Cluster, sizes: Sequence[int], *, tags: bool, looks: Looks, limit_s: float
) -> Ran:
    """Run all rounds; record memory and descriptors before and after each."""
    before, began, done = load.log_bytes(slurm), time.monotonic(), 0
    looks.take(slurm, 0)
    for number, size in enumerate(sizes):
        if time.monotonic() - began > limit_s:
            break
        seconds = load.run(slurm, size, str(number) if tags else "")
        done += size
        looks.take(slurm, done)
        memory = ", ".join(f"{n} {pairs[-1][0]}/{pairs[-1][1]}" for n, pairs in looks.of.items())
        print(f"{done:>7} jobs  {size / seconds:>5.1f} a second  {memory}", flush=True)
    elapsed = time.monotonic() - began
    after = load.log_bytes(slurm)
    return Ran(done, elapsed, {name: after[name] - before[name] for name in before})


def published(slurm: cluster.Cluster, jobs: int) -> int | None:
    """Run `steelyard publish` once; return how many comments it wrote. None: it is not built."""
    if find_program(publish.PROGRAM) is None:
        return None
    os.environ.update(slurm.variables())
    asked = publish.PublishRequest(DAY_S, [slurm.record_dir], most=max(jobs, 10_000))
    found = publish.find_comments(asked, Sacct(), time.time() + 2 * publish.SETTLED_S)
    publish.write_comments(found)
    return found.written


def verify(slurm: cluster.Cluster, jobs: int, at_first: set[Path]) -> dict[str, object]:
    """Check everything that must hold after the last job."""
    left = wait_left(slurm, at_first)
    for path in small_files(slurm) - at_first:
        print(f"left: {path}", file=sys.stderr)
    found = accounted(slurm, jobs)
    faulty = faulty_records(slurm.record_dir, found)
    for name, why in list(faulty.items())[:10]:
        print(f"record {name}: {why}", file=sys.stderr)
    filled = published(slurm, jobs)
    return {
        "missing": jobs - len({job.job_id for job in found}),
        "harmed": sum(job.harmed for job in found),
        "started_again": len(found) - len({job.job_id for job in found}),
        "drained": drained(slurm),
        "records": sum(len(job.nodes) for job in found),
        "records_faulty": len(faulty),
        "comments_missed": without_comment(found),
        "comments_filled": filled,
        "comments_missing": None if filled is None else without_comment(starts(slurm)),
        **{f"left_{name}": count for name, count in left.items()},
    }


def is_judged(name: str, what: str, jobs: int) -> bool:
    """Whether growth is a fault: not slurmctld's memory, which contains jobs of the last minutes.

    slurmctld runs no code of ours.
    """
    return jobs >= JUDGED_FROM and (name != "slurmctld" or what == "files")


def slopes(looks: Looks, jobs: int) -> tuple[dict[str, object], list[str]]:
    """Return each daemon's growth over all jobs with its interval, and the ones that grow."""
    figures: dict[str, object] = {}
    grown = []
    for name, pairs in looks.of.items():
        for index, what in enumerate(("kb", "files")):
            values = [pair[index] for pair in pairs]
            slope = growth(looks.jobs, values)
            if slope is None:
                continue
            ends = [round(end * jobs, 1) for end in (slope.value, *ends_of(slope))]
            figures[f"{name}_{what}"] = {"first": values[0], "last": values[-1],
                                         "growth": ends, "p": round(slope.p, 4)}  # fmt: skip
            flat = is_flat(slope, values, jobs)
            print(f"{name:<10} {what:<5} {values[0]:>7} → {values[-1]:>7}, behind the warm-up "
                  f"{ends[0]:+} ({ends[1]:+} to {ends[2]:+}) over {jobs} jobs, p {slope.p:.3f}: "
                  f"{'flat' if flat else 'not flat'}")  # fmt: skip
            if is_judged(name, what, jobs) and not flat and slope.value > 0:
                grown.append(f"{name}_{what}")
    return figures, grown


def measure(folder: Path, args: argparse.Namespace) -> dict[str, object]:
    """Run the peer, then all jobs."""
    plugin, node_program = cluster.find_plugin()
    alike = {
        "physical_nodes": args.nodes,
        "virtual_nodes": 0,
        "cpus": CPUS if args.nodes <= 2 else 1,
    }
    sizes, limit_s = rounds_of(args.jobs), args.minutes * 60
    with cluster.start_cluster(ClusterConfig(dir=folder / "a", **alike)) as plain:
        load.set_up(plain)
        print("without the plugin; memory in kB / open descriptors")
        peer = run_rounds(plain, sizes[:1], tags=False, looks=Looks(), limit_s=limit_s)
    config = ClusterConfig(dir=folder / "b", plugin=plugin, node_program=node_program, **alike)
    with cluster.start_cluster(config) as slurm:
        load.set_up(slurm)
        print("with the plugin")
        at_first, looks = small_files(slurm), Looks()
        with soak_cron.beside(slurm, args.services) as services:
            ours = run_rounds(slurm, sizes, tags=True, looks=looks, limit_s=limit_s)
            jobs = ours.jobs
            found = verify(slurm, jobs, at_first)
        if services:
            found |= soak_cron.check(services, jobs)
    memory, grown = slopes(looks, jobs)
    rates = {"jobs": jobs, "jobs_per_s": round(jobs / ours.seconds, 2),
             "plain_jobs_per_s": round(peer.jobs / peer.seconds, 2)}  # fmt: skip
    logs = {f"{name}_log_bytes": round(ours.a_job(name), 1) for name in ours.grown}
    plain_logs = {f"plain_{name}_log_bytes": round(peer.a_job(name), 1) for name in peer.grown}
    return {**rates, **found, **logs, **plain_logs, "grown": grown, "daemons": memory}


def faults(figures: Mapping[str, object]) -> list[str]:
    """Describe the figures that must be 0 or empty, and are not."""
    zero = ("missing", "harmed", "started_again", "drained", "records_faulty", "comments_missing")
    left = tuple(name for name in figures if name.startswith("left_"))
    empty = ("grown", "services_wrong", "sweep_failed")
    return [f"{name}: {figures[name]}" for name in (*zero, *left, *empty) if figures.get(name)]


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("STEELYARD_JOBS", "200")))
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no round after that")
    parser.add_argument("--nodes", type=int, default=2, help="slurmd on this machine (2)")
    parser.add_argument(
        "--services", type=float, metavar="S", help="run cron's commands, S seconds apart"
    )
    args = parser.parse_args()
    jobs: int = args.jobs
    if jobs < FEWEST_JOBS:
        parser.error(f"--jobs: {FEWEST_JOBS} at least, so that each round has every kind")
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            figures = measure(Path(folder), args)
    except SteelyardError as error:
        print(f"bench jobs: {error}", file=sys.stderr)
        return 3
    wrong = faults(figures)
    print(f"{figures['jobs']} of {jobs} jobs, {figures['records']} records; load average {os.getloadavg()[0]:.1f}; "
          + ("; ".join(wrong) or "nothing harmed, missing or left"))  # fmt: skip
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
