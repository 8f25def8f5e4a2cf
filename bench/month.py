"""A made-up month of a cluster: N jobs, what sacct prints of them and the records of their nodes.

    python bench/month.py FOLDER [--jobs 1000000] [--seed 1] [--records SHARE] [--flat]

FOLDER then has `bin/sacct`, which answers -j, -X, -u, -S, -E and --format of these jobs; `records`,
by day (`--flat`: a folder for every job) of the first SHARE of the jobs; and `truth.json`: sums by
user, account, partition and node type that were never read from any of these files. Every figure is
a multiple of 1/8, so that sums of them are exact in any order and may be compared with `==`. The same
seed and N make the same month. A million jobs: 1.2 GB of accounting; of records 9 GB and 2.6 million
files, so that a share of them is usual. Users, accounts, arrays, requeued jobs, lost nodes, jobs that
were cancelled while they waited and nodes without a record are among them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from steelyard.analysis.sources import record_folders
from steelyard.analysis.sources.sacct import DELIMITER, FIELDS

RECORD = Path(__file__).parents[1] / "tests/data/records/complete/n1.1795251583.json"
BEGIN, MONTH_S = 1_790_812_800, 30 * 86400  # 1 October 2026, UTC
ACCOUNTS = ("astro", "bio", "chem", "climate", "hep", "math")
USERS_EACH = 20
# Of each partition: its share of the jobs, its nodes' letter and how many there are.
PARTITIONS = {"batch": (0.6, "p", 400), "short": (0.25, "p", 400), "cloud": (0.15, "v", 100)}
NODE_TYPES = {"p": "physical", "v": "virtual"}
CPUS = 64  # of a node
# State, its share, exit code; what sacct says of it is in the order of their shares.
STATES = (("COMPLETED", 0.88, "0:0"), ("FAILED", 0.06, "3:0"), ("TIMEOUT", 0.02, "0:0"),
          ("CANCELLED by 1001", 0.025, "0:15"), ("OUT_OF_MEMORY", 0.005, "0:125"),
          ("NODE_FAIL", 0.01, "1:0"))  # fmt: skip
WAITED = "CANCELLED by 1001"  # a third of these never began
CHUNK = 1000  # job ids in a file of the accounting


@dataclass(frozen=True, slots=True)
class OnNode:
    """What a node's record says of one start of a job; a record that is not `there` was lost."""

    node: str
    cpu_s: float
    energy_j: float
    read_bytes: int
    is_complete: bool = True
    there: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job; `begin_unix_s` None: cancelled while it waited."""

    begin_unix_s: int | None
    end_unix_s: int
    state: str
    exit_code: str
    nodes: tuple[OnNode, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the month; the last of its starts is the one that counts."""

    job_id: int
    array_id: int | None
    task: int
    user: str
    account: str
    partition: str
    submit_unix_s: int
    cpus_per_node: int
    starts: tuple[Start, ...]

    @property
    def name(self) -> str:
        """As sacct shows it: `4711` or `4711_3`."""
        return str(self.job_id) if self.array_id is None else f"{self.array_id}_{self.task}"

    @property
    def node_type(self) -> str:
        """Of all its nodes."""
        return NODE_TYPES[PARTITIONS[self.partition][1]]


def jobs(number: int, seed: int = 1) -> Iterator[Job]:
    """The month's jobs in the order of their ids, from 1000 on."""
    chance = random.Random(seed)
    array_id, tasks_left, task = None, 0, 0
    who = ("", "", "")
    for place in range(number):
        if not tasks_left:
            many = chance.random() < 0.02
            tasks_left = chance.randrange(2, 40) if many else 1
            array_id, task, who = (1000 + place if many else None), 0, someone(chance)
        submit = BEGIN + place * MONTH_S // number
        yield one_job(chance, 1000 + place, array_id, task, who, submit)
        tasks_left, task = tasks_left - 1, task + 1


def someone(chance: random.Random) -> tuple[str, str, str]:
    """User, account, partition; some users have far more jobs than others."""
    account = chance.choice(ACCOUNTS)
    user = f"{account}{int(USERS_EACH * chance.random() ** 2):02}"
    (partition,) = chance.choices(list(PARTITIONS), [share for share, _, _ in PARTITIONS.values()])
    return user, account, partition


def one_job(
    chance: random.Random, job_id: int, array_id: int | None, task: int,
    who: tuple[str, str, str], submit: int,
) -> Job:  # fmt: skip
    """Its starts: one in fifty is requeued when a node fails."""
    ((state, _, code),) = chance.choices(STATES, [share for _, share, _ in STATES])
    nodes = 1 if chance.random() < 0.8 else chance.randrange(2, 5)
    starts, begin = [], submit + chance.randrange(600)
    if chance.random() < 0.02:
        starts.append(one_start(chance, who[2], nodes, begin, "NODE_FAIL", "1:0"))
        begin = starts[0].end_unix_s + 120
    if state == WAITED and chance.random() < 1 / 3:
        starts.append(Start(None, begin, state, "0:0", ()))
    else:
        starts.append(one_start(chance, who[2], nodes, begin, state, code))
    cpus = CPUS if chance.random() < 0.6 else chance.choice((1, 2, 4, 8))
    return Job(job_id, array_id, task, *who, submit, cpus, tuple(starts))


def one_start(
    chance: random.Random, partition: str, nodes: int, begin: int, state: str, code: str
) -> Start:
    """On neighbouring nodes; of one that failed the first node's record is cut short."""
    _, letter, known = PARTITIONS[partition]
    first, took = chance.randrange(1, known - nodes), 1 + int(chance.expovariate(1 / 900))
    found = []
    for place in range(nodes):
        cut = state == "NODE_FAIL" and place == 0
        found.append(OnNode(
            f"{letter}{first + place:03}", chance.randrange(8 * took) / 8,
            chance.randrange(8 * 100 * took) / 8, chance.randrange(1 << 32),
            is_complete=not cut, there=chance.random() >= 0.01,
        ))  # fmt: skip
    return Start(begin, begin + took, state, code, tuple(found))


Sums = dict[str, dict[str, dict[str, float]]]  # by, whom, what


def truth(month: Iterable[Job]) -> Sums:
    """Sums by user, account, partition and node type.

    `jobs`, `starts`; of all starts `node_s` and `cpu_held_s` (what was held), `cpu_used_s` (sacct's
    TotalCPU); of records that are there and whole `cpu_s`, `energy_j`, `read_bytes`; and how many
    `records`, `records_cut`, `records_lacking`. As `steelyard top` counts, of last starts that began:
    `begun`, `last_cpu_held_s`; `whole` of these, with a whole record of every node: `last_read_bytes`;
    `alone` of these, on nodes of their own: `last_energy_j`.
    """
    sums: Sums = defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    for job in month:
        own = figures(job)
        for by in ("user", "account", "partition", "node_type"):
            into = sums[by][getattr(job, by)]
            for name, value in own.items():
                into[name] += value
    return sums


def figures(job: Job) -> dict[str, float]:
    """What one job adds."""
    own: dict[str, float] = defaultdict(float, jobs=1, starts=len(job.starts))
    for start in job.starts:
        took = start.end_unix_s - (start.begin_unix_s or start.end_unix_s)
        own["node_s"] += took * len(start.nodes)
        own["cpu_held_s"] += took * len(start.nodes) * job.cpus_per_node
        own["cpu_used_s"] += used_s(start)
        for one in start.nodes:
            own["records"] += one.there
            own["records_cut"] += one.there and not one.is_complete
            own["records_lacking"] += not one.there
            if one.there and one.is_complete:
                own["cpu_s"] += one.cpu_s
                own["energy_j"] += one.energy_j
                own["read_bytes"] += one.read_bytes
    last_start(job, own)
    return own


def last_start(job: Job, own: dict[str, float]) -> None:
    """What the last start adds, if it began."""
    start = job.starts[-1]
    if start.begin_unix_s is None:
        return
    own["begun"] = 1
    own["last_cpu_held_s"] = (
        (start.end_unix_s - start.begin_unix_s) * len(start.nodes) * job.cpus_per_node
    )
    if all(one.there and one.is_complete for one in start.nodes):
        own["whole"] = 1
        own["last_read_bytes"] = sum(one.read_bytes for one in start.nodes)
        if job.cpus_per_node == CPUS:
            own["alone"] = 1
            own["last_energy_j"] = sum(one.energy_j for one in start.nodes)


# --- the accounting --------------------------------------------------------------------------


def rows(job: Job) -> Iterator[str]:
    """Each start's line and those of its steps, as `sacct -P -D` prints FIELDS."""
    for restart, start in enumerate(job.starts):
        shared = row_of(job, start, restart)
        yield line(job, "", shared)
        if start.begin_unix_s is not None:
            step = {"User": "", "Partition": "", "TimelimitRaw": "", "JobName": "batch"}
            yield line(job, ".batch", shared | step | {"MaxRSS": "1609728", "NTasks": "1"})
            yield line(
                job, ".extern", shared | step | {"JobName": "extern", "TotalCPU": "00:00:00"}
            )


def row_of(job: Job, start: Start, restart: int) -> dict[str, str]:
    """The fields of a start."""
    took = start.end_unix_s - (start.begin_unix_s or start.end_unix_s)
    cpus = job.cpus_per_node * max(len(start.nodes), 1)
    names = [one.node for one in start.nodes]
    return {
        "JobName": f"run{job.job_id % 7}", "Cluster": "month", "User": job.user,
        "Account": job.account, "Partition": job.partition, "State": start.state,
        "ExitCode": start.exit_code, "Submit": str(job.submit_unix_s),
        "Eligible": str(job.submit_unix_s), "Start": str(start.begin_unix_s or "Unknown"),
        "End": str(start.end_unix_s), "ElapsedRaw": str(took), "CPUTimeRAW": str(took * cpus),
        "TotalCPU": clock(used_s(start)), "NNodes": str(max(len(names), 1)),
        "NCPUS": str(cpus), "NodeList": hosts(names), "TimelimitRaw": "60", "Restarts": str(restart),
        "AllocTRES": f"billing={cpus},cpu={cpus},mem=4G,node={len(names)}" if names else "",
        "ReqTRES": f"billing={cpus},cpu={cpus},mem=4G,node={max(len(names), 1)}",
    }  # fmt: skip


def used_s(start: Start) -> float:
    """CPU seconds as sacct tells them: from an hour on whole ones."""
    seconds = sum(one.cpu_s for one in start.nodes)
    return seconds if seconds < 3600 else float(int(seconds))


def clock(seconds: float) -> str:
    """As sacct has it: `1-02:03:04`, below an hour `02:03.125`."""
    whole, part = divmod(seconds, 1)
    minutes, s = divmod(int(whole), 60)
    if minutes < 60:
        return f"{minutes:02}:{s:02}.{round(part * 1000):03}"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hours:02}:{minutes:02}:{s:02}"


def hosts(names: list[str]) -> str:
    """`p[007-009]`; neighbours all."""
    if len(names) < 2:
        return names[0] if names else "None assigned"
    return f"{names[0][0]}[{names[0][1:]}-{names[-1][1:]}]"


def line(job: Job, step: str, values: dict[str, str]) -> str:
    """One line of sacct."""
    ids = {"JobID": job.name + step, "JobIDRaw": f"{job.job_id}{step}"}
    return DELIMITER.join((values | ids).get(name, "") for name in FIELDS) + "\n"


# --- the records -----------------------------------------------------------------------------


@cache
def template() -> tuple[str, ...]:
    """The recorded record as text, cut where a job's own values go: text, name, text, name, …"""
    document = json.loads(RECORD.read_bytes())
    own: dict[str, Any] = {
        "node": "@node@", "complete": "@complete@", "incomplete_reason": "@why@",
        "start_unix_s": "@begin@", "end_unix_s": "@end@", "elapsed_s": "@took@",
        "samples_file": None,
    }  # fmt: skip
    document |= own
    document["job"] |= {"job_id": "@job@", "nodes": "@nodes@", "exclusive": "@exclusive@",
                        "cluster": "month", "user_id": "@uid@", "name": "@name@"}  # fmt: skip
    document["cpu"] |= {"cpu_s": "@cpu@"}
    document["io"] |= {"read_bytes": "@read@"}
    document["energy"] |= {"energy_j": "@energy@"}
    document["probe"]["node_type"] = "@type@"
    document["missing"].pop("energy.energy_j")
    return tuple(re.split(r'"@(\w+)@"', json.dumps(document)))


def record(job: Job, start: Start, one: OnNode) -> str:
    """The record of a node as text."""
    begin = start.begin_unix_s or 0
    values = {
        "node": one.node, "complete": one.is_complete, "begin": begin + 0.25,
        "why": None if one.is_complete else "the node went away", "job": str(job.job_id),
        "end": start.end_unix_s if one.is_complete else None, "took": start.end_unix_s - begin - 0.25,
        "nodes": hosts([n.node for n in start.nodes]), "exclusive": job.cpus_per_node == CPUS,
        "uid": str(2000 + sum(map(ord, job.user))), "name": f"run{job.job_id % 7}", "cpu": one.cpu_s,
        "read": one.read_bytes, "energy": one.energy_j, "type": job.node_type,
    }  # fmt: skip
    pieces = template()
    return "".join(p if n % 2 == 0 else json.dumps(values[p]) for n, p in enumerate(pieces))


def write_records(job: Job, record_dir: Path, flat: bool) -> None:
    """The files of all its nodes."""
    for start in job.starts:
        begin = start.begin_unix_s
        if begin is None or not any(one.there for one in start.nodes):
            continue
        day = "" if flat else record_folders.day_of(begin)
        folder = record_dir / day / str(job.job_id)
        folder.mkdir(parents=True, exist_ok=True)
        for one in start.nodes:
            if one.there:
                path = f"{folder}/{one.node}.{begin}.json"
                with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a million of them
                    file.write(record(job, start, one))


# --- all of it -------------------------------------------------------------------------------


def make(
    folder: Path, number: int, seed: int = 1, share: float = 1.0, flat: bool = False
) -> dict[str, Any]:
    """Write a month below `folder`; what truth.json then holds."""
    accounting, record_dir, bin_dir = (folder / n for n in ("accounting", "records", "bin"))
    for path in (accounting, record_dir, bin_dir):
        path.mkdir(parents=True)
    if not flat:
        (record_dir / record_folders.MARK).touch()
    spans: dict[int, list[int]] = {}
    month = spanned(written(folder, number, seed, int(share * number), flat), spans)
    told = {"jobs": number, "seed": seed, "records_of_jobs": int(share * number), "rows": 0,
            "sums": truth(month)}  # fmt: skip
    told["rows"] = sum(path.read_bytes().count(b"\n") for path in accounting.iterdir())
    (folder / "truth.json").write_text(json.dumps(told, indent=1), encoding="utf-8")
    program = Path(__file__).with_name("month_sacct.py").read_text(encoding="utf-8")
    (bin_dir / "sacct").write_text(f"#!{sys.executable} -IS\n{program}", encoding="utf-8")
    (bin_dir / "sacct").chmod(0o755)
    head = {"fields": FIELDS, "delimiter": DELIMITER, "chunk": CHUNK, "spans": spans}
    (folder / "head.json").write_text(json.dumps(head), encoding="utf-8")
    return told


def spanned(month: Iterable[Job], spans: dict[int, list[int]]) -> Iterator[Job]:
    """The same, and of each file of the accounting the first begin and the last end in it."""
    for job in month:
        for start in job.starts:
            begin, end = start.begin_unix_s or start.end_unix_s, start.end_unix_s
            first, last = spans.get(job.job_id // CHUNK, (begin, end))
            spans[job.job_id // CHUNK] = [min(first, begin), max(last, end)]
        yield job


def written(folder: Path, number: int, seed: int, with_records: int, flat: bool) -> Iterator[Job]:
    """The jobs, each when it is on disk."""
    file: TextIO | None = None
    for place, job in enumerate(jobs(number, seed)):
        if file is None or job.job_id % CHUNK == 0:
            if file is not None:
                file.close()
            name = f"{job.job_id // CHUNK}.txt"
            file = (folder / "accounting" / name).open("w", encoding="utf-8", newline="\n")
        file.writelines(rows(job))
        if place < with_records:
            write_records(job, folder / "records", flat)
        yield job
    if file is not None:
        file.close()


def main() -> int:
    """Make a month and say what is in it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="made anew")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=float, default=1.0, metavar="SHARE", help="of the jobs")
    parser.add_argument("--flat", action="store_true", help="RECORD_DIR/JOB, not by day")
    asked = parser.parse_args()
    told = make(asked.folder, asked.jobs, asked.seed, asked.records, asked.flat)
    print(json.dumps({name: told[name] for name in ("jobs", "rows", "seed", "records_of_jobs")}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
