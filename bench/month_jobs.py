"""Jobs of a generated month (month_generator.py): users, times, nodes and usage; sums of them.

Every figure is a multiple of 1/8, so that sums of them are exact in any order and may be compared
with `==`. Jobs last 900 s on average, exponentially distributed (half of them less than 624 s, a
tenth more than 2072 s), on one node (80 %) or on two to four.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

BEGIN, MONTH_S = 1_790_812_800, 30 * 86400  # 1 October 2026, UTC
ACCOUNTS = ("astro", "bio", "chem", "climate", "hep", "math")
USERS_EACH = 20
# By partition: its share of the jobs, the prefix of its nodes, and their number.
PARTITIONS = {"batch": (0.6, "p", 400), "short": (0.25, "p", 400), "cloud": (0.15, "v", 100)}
NODE_TYPES = {"p": "physical", "v": "virtual"}
CPUS = 64  # per node
# State, its share, exit code, in the order of their shares.
STATES = (("COMPLETED", 0.88, "0:0"), ("FAILED", 0.06, "3:0"), ("TIMEOUT", 0.02, "0:0"),
          ("CANCELLED by 1001", 0.025, "0:15"), ("OUT_OF_MEMORY", 0.005, "0:125"),
          ("NODE_FAIL", 0.01, "1:0"))  # fmt: skip
WAITED = "CANCELLED by 1001"  # a third of these never began


@dataclass(frozen=True, slots=True)
class OnNode:
    """The values of a node's record for one start of a job; without `there`, it was lost."""

    node: str
    cpu_s: float
    energy_j: float
    read_bytes: int
    is_complete: bool = True
    there: bool = True


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a job; `begin_unix_s` None: cancelled while pending."""

    begin_unix_s: int | None
    end_unix_s: int
    state: str
    exit_code: str
    nodes: tuple[OnNode, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the month; its last start is the one that counts."""

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
        """Return the id as sacct shows it: `4711` or `4711_3`."""
        return str(self.job_id) if self.array_id is None else f"{self.array_id}_{self.task}"

    @property
    def node_type(self) -> str:
        """Return the type of its nodes."""
        return NODE_TYPES[PARTITIONS[self.partition][1]]


def jobs(number: int, seed: int = 1) -> Iterator[Job]:
    """Yield the month's jobs in the order of their ids, from 1000 on."""
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
    """Return user, account, partition; some users have far more jobs than others."""
    account = chance.choice(ACCOUNTS)
    user = f"{account}{int(USERS_EACH * chance.random() ** 2):02}"
    (partition,) = chance.choices(list(PARTITIONS), [share for share, _, _ in PARTITIONS.values()])
    return user, account, partition


def one_job(
    chance: random.Random, job_id: int, array_id: int | None, task: int,
    who: tuple[str, str, str], submit: int,
) -> Job:  # fmt: skip
    """Return a job with its starts: one in fifty is requeued after a node failure."""
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
    """Return a start on adjacent nodes; after a node failure, its first record is truncated."""
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


Sums = dict[str, dict[str, dict[str, float]]]  # by dimension, its value, figure


def truth(month: Iterable[Job]) -> Sums:
    """Sum by user, account, partition and node type.

    `jobs`, `starts`; of all starts `node_s` and `cpu_held_s` (allocated), `cpu_used_s` (sacct's
    TotalCPU); of existing complete records `cpu_s`, `energy_j`, `read_bytes`; and the numbers of
    `records`, `records_cut`, `records_lacking`. As in `steelyard top`, of last starts that began:
    `begun`, `last_cpu_held_s`; `whole` of these, with a complete record of every node:
    `last_read_bytes`; `alone` of these, on exclusive nodes: `last_energy_j`.
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
    """Return what one job adds."""
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
    """Add the figures of the last start, if it began."""
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


def used_s(start: Start) -> float:
    """Return CPU seconds as sacct prints them: integers from an hour on."""
    seconds = sum(one.cpu_s for one in start.nodes)
    return seconds if seconds < 3600 else float(int(seconds))


def hosts(names: list[str]) -> str:
    """Return `p[007-009]`; all names are adjacent."""
    if len(names) < 2:
        return names[0] if names else "None assigned"
    return f"{names[0][0]}[{names[0][1:]}-{names[-1][1:]}]"
