"""Reads what a run itself wrote: its benchmark's figures, notes of its script, its program's usage.

The figures are in the benchmark's own output, which the benchmark's parser reads. The notes are
tags, programs and their checksums, and spans (docs/formats.md parts 6 and 7). Malformed lines of
notes are ignored, since users write these files.

The table `command_usage` has what a run's own program used, without the shells and srun around it.
Job scripts start programs by `sy_measured`. steelyard-time waits for them and reads their usage
with that of the children they waited for. Processes that were not waited for are missing. So the
figures are valid only if the job's record has no more CPU time than all shells of the run. The view
`measurements` compares these.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.collect.unchanged_attempts import SETTLED
from steelyard.analysis.sources.study_files import PlannedRun
from steelyard.analysis.store.database import read_table_columns, replace_rows
from steelyard.analysis.store.row_files import Spool, parse_json
from steelyard.jobscripts import client_usage
from steelyard.jobscripts.errors import BenchmarkError, FailedError
from steelyard.jobscripts.output import Note
from steelyard.jobscripts.registry import Benchmark, load
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table `results` without run and attempt."""

    client: int
    iteration: int
    metric: str
    value: float
    unit: str
    better: str | None
    is_primary: bool


@dataclass(frozen=True, slots=True)
class Output:
    """Figures of a run's output, or the reason why there are none."""

    figures: tuple[Figure, ...] = ()
    notes: tuple[tuple[int, Note], ...] = ()  # with the client
    reason: str | None = None
    is_gap: bool = False  # False with a reason: the benchmark itself reports a failure
    missing: Mapping[str, str] = field(default_factory=dict)  # the study's own figures, and why


# Errors of a parser that meets unexpected output. One run must not stop the others.
STUMBLES = (
    ValueError, LookupError, ArithmeticError, TypeError, AttributeError, AssertionError,
    RecursionError,
)  # fmt: skip


@functools.cache
def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark's description, which is read once."""
    return load(name)


def read_output(run: PlannedRun, attempt: Attempt) -> Output:
    """Return all clients' figures of a run that ended."""
    if attempt.folder is None:
        return Output(reason="the run left no folder with its output", is_gap=True)
    notes: list[tuple[int, Note]] = []
    missing: dict[str, str] = {}
    try:
        found = list(read_figures(run, attempt, notes, missing))
        # The mean of the other clients would not be the run's value.
        found = [one for one in found if one.metric not in missing]
        return Output(tuple(found), tuple(notes), missing=missing)
    except FailedError as error:
        return Output((), tuple(notes), f"the benchmark failed: {error}")
    except (BenchmarkError, OSError) as error:
        message = str(error)
    except STUMBLES as error:
        message = f"{type(error).__name__}: {error}"
    return Output((), tuple(notes), f"the output is not understood: {message}", is_gap=True)


def read_figures(
    run: PlannedRun, attempt: Attempt, notes: list[tuple[int, Note]], missing: dict[str, str]
) -> Iterator[Figure]:
    """Yield the figures client by client, as the parser returns them.

    Adds to `notes`, and adds to `missing` the reason for each of the study's own figures that a
    client lacks.
    """
    assert attempt.folder is not None  # read_output checks this
    described = find_benchmark(run.benchmark)
    specs = described.specs(run.parameters)
    for client in range(attempt.clients or 1):
        mine: list[Note] = []
        try:
            results = described.parse(attempt.folder.path, client, run.parameters, mine)
            own = described.own_figures(attempt.folder.path, client, run.parameters, mine)
        finally:
            notes += [(client, note) for note in mine]
        missing |= own.missing
        for found in (*results, *own.results):
            spec = specs[found.metric]
            yield Figure(
                client,
                found.iteration,
                found.metric,
                found.value,
                found.unit,
                spec.better,
                spec.primary,
            )


SPAN = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class UsedFile:
    """A row of the table `environment` without run and attempt."""

    node: str
    kind: str  # program or library
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the table `spans` without run and attempt."""

    span: str
    iteration: int
    begin_unix_s: float
    end_unix_s: float


def read_tags(attempt: Attempt) -> dict[tuple[str, str], str]:
    """Return the value of each (node, key).

    A tag of the run's script replaces one of the record.
    """
    found = {
        (node, key): value
        for node, record in attempt.records.items()
        for key, value in record.tags.items()
    }
    for node, line in read_note_lines(attempt, "tags"):
        key, equals, value = line.partition("=")
        if key and equals:
            found[node, key] = value
    return found


def read_used_files(attempt: Attempt) -> Iterator[UsedFile]:
    """Yield programs and libraries, each once per node."""
    seen = set()
    for node, line in read_note_lines(attempt, "environment"):
        used = parse_used_file(node, line)
        if used is not None and used not in seen:
            seen.add(used)
            yield used


def parse_used_file(node: str, line: str) -> UsedFile | None:
    """Parse one line of environment.CLIENT; return None when it is malformed."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, Mapping):
        return None
    values = [document.get(key) for key in ("kind", "path", "sha256")]
    return UsedFile(node, *map(str, values)) if all(isinstance(w, str) for w in values) else None


def read_spans(attempt: Attempt) -> Iterator[Span]:
    """Yield the named time spans of the run's script, each iteration once.

    Ignore malformed lines.
    """
    texts = [line for _, line in read_note_lines(attempt, "spans")]
    if attempt.folder is not None:
        texts += read_text(attempt.folder.path / "spans.run").split("\n")[:-1]
    seen = set()
    for line in texts:
        span = parse_span(line)
        if span is not None and (span.span, span.iteration) not in seen:
            seen.add((span.span, span.iteration))
            yield span


def parse_span(line: str) -> Span | None:
    """Parse one line of spans.CLIENT or spans.run; return None when it is malformed."""
    try:
        document = parse_json(line)
        name, iteration = str(document["span"]), int(document.get("iteration", 1))
        begin, end = float(document["begin_unix_s"]), float(document["end_unix_s"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not SPAN.fullmatch(name) or not 0 <= begin < end or not 0 < iteration < 2**31:
        return None
    return Span(name, iteration, begin, end)


def read_note_lines(attempt: Attempt, name: str) -> Iterator[tuple[str, str]]:
    """Yield (node, line) of NAME.CLIENT of every client, without a truncated last line."""
    if attempt.folder is None:
        return
    for client in range(attempt.clients or 0):
        text = read_text(attempt.folder.path / f"{name}.{client}")
        if text:
            node = read_client_node(attempt.folder.path, client)
            yield from ((node, line) for line in text.split("\n")[:-1])


def read_client_node(folder: Path, client: int) -> str:
    """Return the node on which a client reported that it was ready, or an empty string."""
    fields = read_text(folder / f"client.{client}").split()
    return fields[1] if len(fields) > 1 and fields[0] == "ready" else ""


def read_text(path: Path) -> str:
    """Return a file's text, or an empty string when it does not exist or is no regular file."""
    try:
        return read_regular(path, NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


SUMS = ("cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
# Of a program that left processes behind, or whose children nobody waited for.
MISSES_PROCESSES = ("left_behind", "unwaited_cpu_s")
# A client may run several programs one after another: the largest value counts.
MAXIMA = ("max_memory_bytes", "largest_process_bytes")


def read_client_usage(folder: Path, client: int) -> dict[str, float]:
    """Return the usage of all programs of a client, without keys that are missing in one of them.

    Nothing is known if one of them misses processes.
    """
    programs = list(takewhile(bool, (client_usage.read(folder, client, n) for n in count(1))))
    if any(key in one for one in programs for key in MISSES_PROCESSES):
        return {}
    known = set.intersection(*map(set, programs)) if programs else set()
    sums = {key: sum(one[key] for one in programs) for key in SUMS if key in known}
    return sums | {key: max(one[key] for one in programs) for key in MAXIMA if key in known}


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
