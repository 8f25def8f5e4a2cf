"""Joins a guest's job with its host: the hypervisor's record of the job's time (docs/virtual.md).

The host's record is from a sampler that followed the virtual machine's processes. If it still does,
its samples show up to when all counters were read. They have the host's energy and network traffic,
and the CPU time of the virtual machine. Counters are interpolated linearly between two samples.
Times of the two records are those of the nodes' own wall clocks.

The virtual machine's share of the host's energy has the interval of analysis/store/energy_shares.py.
The job starts and ends between samples, and the node's CPU time is read at most once a second. So
for the seconds in which the job starts and ends it is unknown how much of the others' work was in
the job's time: for the lower bound all of it, for the upper bound none of it.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.job import time_series
from steelyard.analysis.job.job_samples import load_samples
from steelyard.analysis.sources import sample_csv
from steelyard.analysis.sources.records import FILE_NAME, Record, RecordError, read_record
from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower, compute_energy_shares
from steelyard.jobscripts.regular_files import read_tail

if TYPE_CHECKING:
    import duckdb


Points = Sequence[tuple[float, float]]  # of a counter: unix_s, value

# A line for the job's start and one for its end, and between them the samples from the first to the
# last reading ($9, $10). $2, $3, $4: energy, own and the node's CPU seconds at the start; $6 to $8:
# at the end.
EDGE = "SELECT * REPLACE ({} AS unix_s, {} AS elapsed_s, {} AS energy_j, {} AS cpu_s, {} AS node_cpu_s)"
HELD = f"""CREATE TEMP TABLE samples AS
SELECT * REPLACE (unix_s AS elapsed_s) FROM whole WHERE unix_s >= $9 AND unix_s <= $10
UNION ALL {EDGE.format("$1", "$1", "$2", "$3", "$4")} FROM (SELECT * FROM whole LIMIT 1)
UNION ALL {EDGE.format("$5", "$5", "$6", "$7", "$8")} FROM (SELECT * FROM whole LIMIT 1)"""


def interpolate_value(points: Points, moment: float) -> float | None:
    """Interpolate linearly between the two samples around a time; None if there are not two.

    A sample within 1 ms of the time is used as it is.
    """
    index = bisect_left(points, moment, key=lambda point: point[0])
    matches = [
        point for point in points[max(0, index - 1) : index + 1] if abs(point[0] - moment) < 1e-3
    ]
    if matches:
        return matches[0][1]
    if not 0 < index < len(points):
        return None
    (t0, v0), (t1, v1) = points[index - 1], points[index]
    return v0 + (v1 - v0) * (moment - t0) / (t1 - t0)


def compute_host_share(
    connection: duckdb.DuckDBPyConnection,
    counters: tuple[Points, Points, Points],
    span: tuple[float, float],
    idle: IdlePower,
) -> EnergyShare | None:
    """Return the virtual machine's share; None: the samples have no line.

    `counters` are energy, the virtual machine's CPU seconds, and the node's; `span` is the job's,
    in unix_s.
    """
    connection.execute("ALTER VIEW samples RENAME TO whole")
    joules, own, node = counters
    read = find_readings(own, node)
    within = [point for point in read if span[0] < point[0] < span[1]]
    inner = (within[0][0], within[-1][0]) if within else (span[1], span[0])
    at = [[interpolate_value(points, moment) for points in (joules, own)] for moment in span]
    found = []
    for others in (find_others_around(read, span), find_others_within(read, span)):
        connection.execute(
            HELD,
            [
                *make_edge_line(span[0], at[0], others[0]),
                *make_edge_line(span[1], at[1], others[1]),
                *inner,
            ],
        )
        found.append(next(iter(compute_energy_shares(connection, idle)), None))
        connection.execute("DROP TABLE samples")
    least, most = found
    return None if least is None or most is None else replace(least, high_j=most.high_j)


def make_edge_line(
    moment: float, at: Sequence[float | None], others_s: float | None
) -> list[float | None]:
    """Return a line: time, energy, own CPU seconds and the node's."""
    joules, own_s = at
    node_s = None if own_s is None or others_s is None else own_s + others_s
    return [moment, joules, own_s, node_s]


def find_readings(own: Points, node: Points) -> Points:
    """Return when the node's CPU time changed, and what others had used until then.

    Others are all processes except the virtual machine.
    """
    readings = [
        (moment, value)
        for index, (moment, value) in enumerate(node)
        if index == 0 or value != node[index - 1][1]
    ]
    return [(t, v - mine) for t, v in readings if (mine := interpolate_value(own, t)) is not None]


def find_others_around(
    read: Points, span: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return what others had used at the last reading before the job, and at the first after it.

    Without one after it, the last reading is used.
    """
    begin = bisect_right(read, span[0], key=lambda point: point[0]) - 1
    end = bisect_left(read, span[1], key=lambda point: point[0])
    if begin < 0:
        return None, None
    return read[begin][1], read[min(end, len(read) - 1)][1]


def find_others_within(
    read: Points, span: tuple[float, float]
) -> tuple[float | None, float | None]:
    """Return the same at the first and last reading in the job's time; without any, no growth."""
    within = [others_s for moment, others_s in read if span[0] < moment < span[1]]
    if not within:
        before, _ = find_others_around(read, span)
        return before, before
    return within[0], within[-1]


COUNTERS = {
    "energy_j": "J",
    "cpu_s": "s",
    "node_cpu_s": "s",
    "rx_bytes": "bytes",
    "tx_bytes": "bytes",
}
# Paths of the counters in a record, for its reasons.
PATHS = {"energy_j": "energy.energy_j", "cpu_s": "cpu.cpu_s", "node_cpu_s": "cpu.node_cpu_s"}
PATHS |= {"rx_bytes": "network.rx_bytes", "tx_bytes": "network.tx_bytes"}

SHARED = ("energy_j", "cpu_s", "node_cpu_s")  # inputs of a virtual machine's share
Line = tuple[float | None, ...]  # unix_s and the COUNTERS

# A virtual machine may run for months. So only samples of the job's time and those around it are
# read, with some more since a cell may be empty.
AROUND_S = 60.0
LINES = f"""SELECT unix_s, {", ".join(COUNTERS)} FROM samples
WHERE unix_s >= (SELECT least(max(unix_s), $1 - {AROUND_S}) FROM samples WHERE unix_s <= $1)
AND unix_s <= (SELECT greatest(min(unix_s), $2 + {AROUND_S}) FROM samples WHERE unix_s >= $2)
ORDER BY unix_s"""
NODE_CPU_S = 1.0  # seconds between readings of the node's CPU time (plugins/node/counters/node.c)
TAIL_BYTES = 1 << 16  # bytes read from the end of a file of samples


@dataclass(frozen=True)
class Side:
    """A record, its samples, and the growth of its counters in the job's time."""

    record: Record
    lines: Sequence[Line]
    used: dict[str, float | None]
    missing: dict[str, str]
    thinned: str | None = None  # note on thinned samples


@dataclass(frozen=True)
class Joined:
    """The guest's job on one node, and its host; `share` is of the host's energy."""

    begin_unix_s: float
    end_unix_s: float
    guest: Side
    host: Side
    share: EnergyShare | None


def join_host(guest: Record, host: Record, idle: IdlePower) -> Joined:
    """Join both; raise MissingError if the host's record does not cover the job's time."""
    begin, end = find_span(guest)
    first, last = find_host_span(host)
    if begin < first or end > last:
        raise MissingError(
            f"{host.path}: expected a record of all of the job's time, {begin:.1f} to {end:.1f} s "
            f"since 1970; found one from {first:.1f} to {last:.1f}"
        )
    sides = []
    share = None
    for record in (guest, host):
        with (
            tempfile.TemporaryDirectory(prefix="steelyard-") as folder,
            load_samples({record.node: record}, Path(folder)) as connection,
        ):
            rows = connection.execute(LINES, [begin, end]).fetchall()
            totals = read_totals(guest) if record is guest else {}
            sides.append(build_side(record, rows, begin, end, totals))
            if record is host:
                joules, own, node = (select_points(rows, name) for name in SHARED)
                share = compute_host_share(connection, (joules, own, node), (begin, end), idle)
    return Joined(begin, end, sides[0], sides[1], share)


def find_span(record: Record) -> tuple[float, float]:
    """Return start and end of a record; raise MissingError if it has not ended."""
    begin, end = record.get("start_unix_s"), record.get("end_unix_s")
    if not isinstance(begin, int | float) or not isinstance(end, int | float):
        raise MissingError(f"{record.path}: expected a record that has ended; found no end_unix_s")
    return float(begin), float(end)


def find_host_span(record: Record) -> tuple[float, float]:
    """Do the same for the host. If its sampler runs, the end is the last complete reading."""
    begin = record.get("start_unix_s")
    if record.get("end_unix_s") is not None or not isinstance(begin, int | float):
        return find_span(record)
    last = read_last_sample_unix_s(record)
    if last is None:
        raise MissingError(f"{record.path}: has not ended, and has no samples so far")
    return float(begin), max(float(begin), last - NODE_CPU_S)


def read_last_sample_unix_s(record: Record) -> float | None:
    """Return the time of the last complete line of the samples, or None."""
    path = record.samples_path
    try:
        lines = (read_tail(path, TAIL_BYTES) if path else b"").split(b"\n")[:-1]
        return float(lines[-1].split(b",")[0])
    except (OSError, ValueError, IndexError):
        return None


def read_totals(record: Record) -> dict[str, float]:
    """Return the totals of the job's own record.

    They stand in for samples of a counter that do not cover the job's time.
    """
    found = {counter: record.get(path) for counter, path in PATHS.items()}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def build_side(
    record: Record, lines: Sequence[Line], begin: float, end: float, totals: Mapping[str, float]
) -> Side:
    """Return the growth of a record's counters; an unknown one is None with its reason."""
    used, missing = {}, {}
    for counter in COUNTERS:
        value = compute_growth(select_points(lines, counter), begin, end)
        if value is None:
            value = totals.get(counter)
        used[counter] = value
        if value is None:
            reason = record.missing_reason(PATHS[counter])
            missing[counter] = reason or "its samples do not cover all of the job's time"
    return Side(record, lines, used, missing, sample_csv.read_thinning_note(record.samples_path))


def select_points(lines: Sequence[Line], counter: str) -> Points:
    """Return (time, value) of the samples that have the counter."""
    column = 1 + list(COUNTERS).index(counter)
    return [
        (moment, value)
        for line in lines
        if (moment := line[0]) is not None and (value := line[column]) is not None
    ]


def compute_growth(points: Points, begin: float, end: float) -> float | None:
    """Return a counter's growth; None if a time is not between two samples."""
    ends = [interpolate_value(points, moment) for moment in (begin, end)]
    return None if ends[0] is None or ends[1] is None else ends[1] - ends[0]


def compute_counter_rates(
    side: Side, counter: str, begin: float, end: float
) -> tuple[list[float], list[float]]:
    """Return times since the job's start, and rates per second between two new readings.

    Each time is that of the later reading.
    """
    column = 1 + list(COUNTERS).index(counter)
    samples = [
        (s, v) for s, v in ((line[0], line[column]) for line in side.lines) if s and v is not None
    ]
    idle_s = time_series.find_idle_s(counter, time_series.is_by_timer(side.record))
    grown = time_series.compute_reading_rates(time_series.find_new_readings(samples, idle_s))
    inside = [(b, rate) for a, b, rate in grown if b > a + 1e-3 and b > begin and a < end]
    return [b - begin for b, _ in inside], [rate for _, rate in inside]


def find_host_record(path: Path, guest: Record) -> Record:
    """Return the record at `path`; in a folder, the one record of another node that covers the job.

    Raises UsageError if the path does not exist, and MissingError if not exactly one record fits.
    """
    if path.is_file():
        return read_record(path)
    if not path.is_dir():
        raise UsageError(
            f"{path}: expected a record of the host, or a folder of them; found neither"
        )
    begin, end = find_span(guest)
    found = [
        record
        for record in read_records(sorted(path.rglob("*.json")))
        if record.path.resolve() != guest.path.resolve() and is_within_record(record, begin, end)
    ]
    if len(found) != 1:
        names = ", ".join(str(record.path) for record in found) or "none"
        raise MissingError(
            f"{path}: expected one record that holds {begin:.1f} to {end:.1f} s since 1970; "
            f"found {names}: name the file"
        )
    return found[0]


def read_records(paths: Iterable[Path]) -> Iterable[Record]:
    """Yield the records among these files; skip others and invalid ones."""
    for path in paths:
        if FILE_NAME.fullmatch(path.name):
            try:
                yield read_record(path)
            except RecordError:
                continue


def is_within_record(record: Record, begin: float, end: float) -> bool:
    """Whether the record covers that time."""
    try:
        first, last = find_host_span(record)
    except MissingError:
        return False
    return first <= begin and end <= last
