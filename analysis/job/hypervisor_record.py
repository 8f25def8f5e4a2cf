"""Joins a guest's job with its host: the hypervisor's record of the job's time (docs/virtual.md).

The host's record is from a sampler that followed the virtual machine's processes. If it still does,
its samples show up to when all counters were read. They have the host's energy and network traffic,
and the CPU time of the virtual machine. Counters are interpolated linearly between two samples.
Times of the two records are those of the nodes' own wall clocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.job import repeated_readings
from steelyard.analysis.job.job_samples import load_samples
from steelyard.analysis.job.virtual_machine_share import (
    Points,
    compute_host_share,
    interpolate_value,
)
from steelyard.analysis.sources import thinning_note
from steelyard.analysis.sources.records import FILE_NAME, Record, RecordError, read_record
from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower
from steelyard.jobscripts.regular_files import read_tail

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
    record: Record,
    lines: Sequence[Line],
    begin: float,
    end: float,
    totals: Mapping[str, float],
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
    return Side(record, lines, used, missing, thinning_note.read_note(record.samples_path))


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


def compute_rates(
    side: Side, counter: str, begin: float, end: float
) -> tuple[list[float], list[float]]:
    """Return times since the job's start, and rates per second between two new readings.

    Each time is that of the later reading.
    """
    column = 1 + list(COUNTERS).index(counter)
    samples = [
        (s, v) for s, v in ((line[0], line[column]) for line in side.lines) if s and v is not None
    ]
    idle_s = repeated_readings.find_idle_s(counter, repeated_readings.is_by_timer(side.record))
    grown = repeated_readings.compute_rates(repeated_readings.find_new_readings(samples, idle_s))
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
