"""The known loads of `steelyard calibrate`: what steelyard-load is told, and what it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.table import Quantity

MIB = 2**20
HELD_S = 0.7  # 7 samples at 10 Hz


@dataclass(frozen=True)
class Load:
    """One load: its name, the actions of steelyard-load, and which figures it is about."""

    name: str
    actions: tuple[str, ...]
    quantities: tuple[Quantity, ...] = table.USUAL
    unwaited: int = 0  # processes that nobody waits for: the kernel adds them to no parent


def standard(held_s: float = HELD_S, cpu_s: float = 0.2) -> Load:
    """A little of everything; what every way is tried with."""
    return Load(
        "a little of all",
        (
            f"cpu={cpu_s}",
            "processes=2:0.1:500000:0",
            "read=3000000",
            "write=2000000",
            f"fetch={MIB}",
            f"memory={64 * MIB}:{held_s}",
        ),
    )


CALLS = (table.CPU, table.READS, table.WRITES)
# What else a job may be like; tried in few ways.
LOADS = (
    Load("1 process", ("cpu=0.5",), (table.CPU,)),
    Load("50 processes", ("processes=50:0.5:20000:0.02",), CALLS),
    Load("500 processes of 1 ms", ("processes=500:0.5:2000:0",), CALLS),
    Load("4 threads", ("threads=4:0.4",), (table.CPU,)),
    Load("10 orphans", ("orphans=10:0.3:400000:0.3", "sleep=0.3"), CALLS, 10),
    Load("SIGCHLD ignored", ("ignored=20:0.3:200000:0.03", "sleep=0.3"), CALLS, 20),
    Load(
        "SIGCHLD ignored, 500 processes of 1 ms",
        ("ignored=500:0.5:2000:0", "sleep=0.3"),
        CALLS,
        500,
    ),
    Load("storage", (f"store={4 * MIB}", f"fetch={2 * MIB}"), (table.STORED, table.FETCHED)),
    Load("memory", (f"memory={200 * MIB}:{HELD_S}",), (table.MEMORY,)),
)
SLEEP = Load("sleep", ("sleep=0.3",), (table.ELAPSED,))
NOTHING = Load("nothing", (f"sleep={HELD_S}",), ())


@dataclass(frozen=True)
class Result:
    """One line of steelyard-load."""

    job: str
    node: str
    values: dict[str, float]

    @property
    def restarts(self) -> int:
        """Which start of its job it was."""
        return int(self.values["restarts"])

    @property
    def end_unix_s(self) -> float:
        """When it ended."""
        return self.values["start_unix_s"] + self.values["elapsed_s"]


def results(folder: Path) -> list[Result]:
    """Of a way's folder; files are named JOB,NODE,PROCESS.result: the names may have points."""
    found = []
    for path in sorted(folder.glob("*.result")):
        job, node, _ = path.name.split(",")
        found.append(Result(job, node, read(path)))
    return found


def read(path: Path) -> dict[str, float]:
    """The numbers of one result; MissingError for what is none."""
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise MissingError(f"{path}: no result of steelyard-load") from error
    return {key: value for key, value in document.items() if isinstance(value, int | float)}


def truth(quantity: Quantity, every: Iterable[Result]) -> float:
    """What these loads, of one job on one node, did together."""
    parts = list(every)
    if not parts:
        return 0
    if quantity is table.ELAPSED:
        return max(part.end_unix_s for part in parts) - min(
            part.values["start_unix_s"] for part in parts
        )
    if quantity is table.MEMORY:
        return max(part.values["memory_bytes"] for part in parts)
    return sum(PARTS[quantity.name](part.values) for part in parts)


def of_parents(quantity: Quantity, every: Iterable[Result]) -> float:
    """What shells that wait for these loads had used before; nothing where that was not asked."""
    name = PARENTS.get(quantity.name)
    unit = 1e6 if quantity is table.CPU else 1
    return sum(one.values[f"parent_{name}"] for one in every) / unit if name else 0


PARENTS = {
    "CPU": "cpu_us",
    "read calls": "read_calls_bytes",
    "write calls": "write_calls_bytes",
    "from storage": "from_storage_bytes",
    "to storage": "to_storage_bytes",
}


def _cpu(values: dict[str, float]) -> float:
    return (values["cpu_us"] + values["unwaited_cpu_us"]) / 1e6


def _calls(values: dict[str, float], name: str) -> float:
    """Counted by the load, by the kernel before it began, and of the program that it ran."""
    return sum(values[f"{prefix}{name}_bytes"] for prefix in ("", "before_", "others_"))


def _storage(values: dict[str, float], name: str) -> float:
    """At least what the load has synced; the kernel counts pages of the file system's own, too."""
    return max(_calls(values, name), values[f"kernel_{name}_bytes"])


PARTS: dict[str, Callable[[dict[str, float]], float]] = {
    "CPU": _cpu,
    "read calls": lambda values: _calls(values, "read_calls"),
    "write calls": lambda values: _calls(values, "write_calls"),
    "from storage": lambda values: _storage(values, "from_storage"),
    "to storage": lambda values: _storage(values, "to_storage"),
    "TCP sent": lambda values: values["sent_bytes"],
    "TCP received": lambda values: values["received_bytes"],
}
