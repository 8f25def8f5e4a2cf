"""The known loads: the actions of steelyard-load, and what it counted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.table import Quantity

MIB = 2**20
MEMORY_S = 0.7  # how long memory is used: 7 samples at 10 Hz
RESULT = "%j,%n,%p.result"  # a result's file: JOB,NODE,PROCESS


@dataclass(frozen=True)
class KnownLoad:
    """A load's name, its actions of steelyard-load, and the figures that it tests."""

    name: str
    actions: tuple[str, ...]
    quantities: tuple[Quantity, ...] = table.USUAL
    unwaited: int = 0  # processes that no parent waits for: the kernel adds their usage to none


def standard_load(memory_s: float = MEMORY_S) -> KnownLoad:
    """Return a load with a small amount of every quantity; each launch method is measured with
    it."""
    return KnownLoad(
        "a little of all",
        (
            "cpu=0.2",
            "processes=2:0.1:500000:0",
            "read=3000000",
            "write=2000000",
            f"fetch={MIB}",
            f"memory={64 * MIB}:{memory_s}",
        ),
    )


CALLS = (table.CPU, table.READS, table.WRITES)
# Special loads, tested with few launch methods.
LOADS = (
    KnownLoad("1 process", ("cpu=0.5",), (table.CPU,)),
    KnownLoad("50 processes", ("processes=50:0.5:20000:0.02",), CALLS),
    KnownLoad("500 processes of 1 ms", ("processes=500:0.5:2000:0",), CALLS),
    KnownLoad("4 threads", ("threads=4:0.4",), (table.CPU,)),
    KnownLoad("10 orphans", ("orphans=10:0.3:400000:0.3", "sleep=0.3"), CALLS, 10),
    KnownLoad("SIGCHLD ignored", ("ignored=20:0.3:200000:0.03", "sleep=0.3"), CALLS, 20),
    KnownLoad(
        "SIGCHLD ignored, 500 processes of 1 ms",
        ("ignored=500:0.5:2000:0", "sleep=0.3"),
        CALLS,
        500,
    ),
    KnownLoad("storage", (f"store={4 * MIB}", f"fetch={2 * MIB}"), (table.STORED, table.FETCHED)),
    KnownLoad("memory", (f"memory={200 * MIB}:{MEMORY_S}",), (table.MEMORY,)),
)
SLEEP = KnownLoad("sleep", ("sleep=0.3",), (table.ELAPSED,))
NOTHING = KnownLoad("nothing", (f"sleep={MEMORY_S}",), ())
RATES_HZ = (0, 1, 10, 100)
ALLOCATION = ("SLURM_JOBID", "SLURM_JOB_ID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")


def load_at_rate(rate_hz: int) -> KnownLoad:
    """Return the standard load, with memory used long enough for at least two samples."""
    return standard_load(2.2 if rate_hz == 1 else MEMORY_S)


def mpi_load(program: Path) -> KnownLoad:
    """Return a load with two MPI ranks; its parent counts their usage with that of mpirun."""
    rank = [str(program), "rank.%p", "cpu=0.2", "read=300000", "write=200000"]
    start = ["mpirun", "-n", "2", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    # Without these variables Open MPI does not start the ranks by srun, whose usage no parent here
    # would count.
    alone = ["env", *(word for name in ALLOCATION for word in ("-u", name))]
    return KnownLoad("MPI", ("--", *alone, *start, "--oversubscribe", *rank), CALLS)


@dataclass(frozen=True)
class Result:
    """What one steelyard-load counted."""

    job: str
    node: str
    values: dict[str, float]

    @property
    def end_unix_s(self) -> float:
        """The time of its end."""
        return self.values["start_unix_s"] + self.values["elapsed_s"]


def read_results(folder: Path) -> list[Result]:
    """Return the results of the loads that ran in a folder; names of jobs and nodes may contain
    periods."""
    found = []
    for path in sorted(folder.glob("*.result")):
        job, node, _ = path.name.split(",")
        try:
            document = json.loads(path.read_bytes())
        except ValueError as error:
            raise MissingError(f"{path}: no result of steelyard-load") from error
        values = {key: value for key, value in document.items() if isinstance(value, int | float)}
        found.append(Result(job, node, values))
    return found


def true_value(quantity: Quantity, loads: Iterable[Result]) -> float:
    """Return what these loads, of one job on one node, used together."""
    found = list(loads)
    if not found:
        return 0
    if quantity is table.ELAPSED:
        first = min(one.values["start_unix_s"] for one in found)
        return max(one.end_unix_s for one in found) - first
    if quantity is table.MEMORY:
        return max(one.values["memory_bytes"] for one in found)
    return sum(read_amount(quantity, one.values) for one in found)


# The load's counter for each quantity's name.
COUNTERS = {
    table.READS.name: "read_calls_bytes",
    table.WRITES.name: "write_calls_bytes",
    table.FETCHED.name: "from_storage_bytes",
    table.STORED.name: "to_storage_bytes",
}


def read_amount(quantity: Quantity, values: dict[str, float]) -> float:
    """Return what the load counted, including usage before its start and that of the program it
    ran."""
    if quantity is table.CPU:
        return (values["cpu_us"] + values["unwaited_cpu_us"]) / 1e6
    if quantity in (table.SENT, table.RECEIVED):
        return values["sent_bytes" if quantity is table.SENT else "received_bytes"]
    counter = COUNTERS[quantity.name]
    counted = sum(values[f"{prefix}{counter}"] for prefix in ("", "before_", "others_"))
    if quantity in (table.FETCHED, table.STORED):  # includes pages of the file system itself
        return max(counted, values[f"kernel_{counter}"])
    return counted


def used_by_parents(quantity: Quantity, loads: Iterable[Result]) -> float:
    """Return what the shells that wait for these loads used before them; 0 if the load did not read
    it."""
    if quantity is table.CPU:
        return sum(one.values["parent_cpu_us"] for one in loads) / 1e6
    counter = COUNTERS.get(quantity.name)
    return sum(one.values[f"parent_{counter}"] for one in loads) if counter else 0
