"""The table `command_usage`: what a run's own program used, without the shells and srun around it.

Job scripts start programs by `sy_measured`. steelyard-time waits for them and reads their usage
with that of the children they waited for. Processes that were not waited for are missing. So the
figures are valid only if the job's record has no more CPU time than all shells of the run. The view
`measurements` compares these.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.collect.tags_and_spans import read_client_node
from steelyard.analysis.collect.unchanged_attempts import SETTLED
from steelyard.analysis.store.database import read_table_columns, replace_rows
from steelyard.analysis.store.row_files import Spool
from steelyard.jobscripts import client_usage

SUMS = ("cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
# Of a program that left processes behind, or whose children nobody waited for.
MISSES_PROCESSES = ("left_behind", "unwaited_cpu_s")
# A client may run several programs one after another: the largest value counts.
LARGEST = ("max_memory_bytes", "largest_process_bytes")


def read_client_usage(folder: Path, client: int) -> dict[str, float]:
    """Return the usage of all programs of a client, without keys that are missing in one of them.

    Nothing is known if one of them misses processes.
    """
    programs = list(takewhile(bool, (client_usage.read(folder, client, n) for n in count(1))))
    if any(key in one for one in programs for key in MISSES_PROCESSES):
        return {}
    known = set.intersection(*map(set, programs)) if programs else set()
    sums = {key: sum(one[key] for one in programs) for key in SUMS if key in known}
    return sums | {key: max(one[key] for one in programs) for key in LARGEST if key in known}


def sum_shells_cpu_s(folder: Path, clients: int) -> float | None:
    """Return the CPU time in seconds of all shells of the run and what they waited for.

    None: some shell's time is missing.
    """
    noted = [client_usage.shell_cpu_s(folder, str(name)) for name in ("main", *range(clients))]
    known = [one for one in noted if one is not None]
    if len(known) < len(noted):
        return None
    return sum(cpu_s for cpu_s, is_below in known if not is_below)


def build_row(attempt: Attempt) -> list[float | None] | None:
    """Return an attempt's figures in the table's order; None: a client's figures are missing."""
    if attempt.folder is None or not attempt.clients:
        return None
    folder = attempt.folder.path
    clients = [read_client_usage(folder, client) for client in range(attempt.clients)]
    shells = sum_shells_cpu_s(folder, attempt.clients)
    if shells is None or not all(
        {"cpu_s", "largest_process_bytes"} <= one.keys() for one in clients
    ):
        return None
    sums = [
        sum(one[k] for one in clients) if all(k in one for one in clients) else None for k in SUMS
    ]
    return [
        shells,
        *sums,
        find_largest_memory(folder, clients),
        max(one["largest_process_bytes"] for one in clients),
    ]


def find_largest_memory(folder: Path, clients: Sequence[Mapping[str, float]]) -> float | None:
    """Return the largest memory in bytes of a node's clients together; None: one is missing."""
    nodes: dict[str, float] = defaultdict(float)
    for client, one in enumerate(clients):
        if "max_memory_bytes" not in one:
            return None
        nodes[read_client_node(folder, client)] += one["max_memory_bytes"]
    return max(nodes.values())


def write_usage(connection: DuckDBPyConnection, attempts: Iterable[Attempt], scratch: Path) -> None:
    """Write the table. Attempts without figures of their program get no row."""
    columns = read_table_columns(connection, "command_usage")
    with Spool(scratch / "command_usage.jsonl", columns) as spool:
        for attempt in attempts:
            found = build_row(attempt)
            if found is not None:
                spool.write((attempt.run_id, attempt.attempt, *found))
    replace_rows(connection, "command_usage", spool, SETTLED)
