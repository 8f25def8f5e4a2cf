"""A job's usage over time, from its samples: rates and levels in equal segments.

A meter changes less often than samples are taken. Where a timer in the kernel takes samples (the
record's TICKS), the node's counters are read once a second. The samples between repeat the last
reading (docs/sampler.md, samples). Rates between such samples would be 0, and then many times too
high, so only new readings count.
"""

from __future__ import annotations

import math
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.job.job_samples import load_job_samples
from steelyard.analysis.sources.records import Record

if TYPE_CHECKING:
    import duckdb


TICKS = "bpf.ticks"  # field of a record: how often the kernel's timer sampled the job
NODE_PERIOD_S = 1.0  # plugins/node/sampler: period of node counters with the kernel's timer
OF_NODE = ("energy_j", "node_cpu_s", "rx_bytes", "tx_bytes")

Reading = tuple[float, float]  # time in s; value of a counter


def find_idle_s(counter: str, by_timer: bool) -> float:
    """Return how many seconds a reading may repeat before it means that the counter did not grow.

    Energy always grows.
    """
    if counter == "energy_j":
        return math.inf
    return NODE_PERIOD_S if by_timer and counter in OF_NODE else 0.0


def is_by_timer(record: Record) -> bool:
    """Whether the kernel's timer took a record's samples."""
    return bool(record.get(TICKS))


def find_new_readings(samples: Iterable[Reading], idle_s: float) -> list[Reading]:
    """Return the samples of a counter that are new readings; the first one always is."""
    readings: list[Reading] = []
    for at_s, value in samples:
        if not readings or value != readings[-1][1] or at_s - readings[-1][0] >= idle_s:
            readings.append((at_s, value))
    return readings


def make_readings_sql(counter: str) -> str:
    """Return SQL for the new readings: node, unix_s and value.

    It reads the tables `samples` and `by_timer` (nodes whose samples the timer took). Of a second
    in which the counter did not grow, the first sample remains.
    """
    if counter not in OF_NODE:
        return f"SELECT node, unix_s, {counter} AS value FROM samples"
    selection = f"SELECT node, unix_s, {counter} AS value FROM samples WHERE value IS NOT NULL"
    is_new = "value IS DISTINCT FROM lag(value) OVER (PARTITION BY node ORDER BY unix_s)"
    if counter == "energy_j":
        return f"{selection} AND unix_s IS NOT NULL QUALIFY {is_new}"
    return f"""
        SELECT node, unix_s, value
        FROM (SELECT *, {is_new} AS is_new FROM ({selection} AND unix_s IS NOT NULL))
        WINDOW period AS (PARTITION BY node, floor(unix_s / {NODE_PERIOD_S}))
        QUALIFY is_new OR node NOT IN (FROM by_timer)
            OR NOT bool_or(is_new) OVER period AND unix_s = min(unix_s) OVER period"""


def compute_reading_rates(readings: list[Reading]) -> list[tuple[float, float, float]]:
    """Return start and end of each time between two readings, and the growth per second in it."""
    pairs = [(one, other) for one, other in pairwise(readings) if other[0] > one[0]]
    return [(a_s, b_s, (b - a) / (b_s - a_s)) for (a_s, a), (b_s, b) in pairs]


MOST_PIECES = 60
FEWEST_SAMPLES = 5  # with fewer there is no time series
JOBS_AT_ONCE = 50  # in one database: each job's samples are selected from those of all
# Name of each rate's series, and its counter.
RATES = {
    "cpus_busy": "cpu_s",
    "power_w": "energy_j",
    "read_bytes_per_s": "read_bytes",
    "write_bytes_per_s": "write_bytes",
    "rx_bytes_per_s": "rx_bytes",
    "tx_bytes_per_s": "tx_bytes",
}
LEVELS = ("memory_bytes",)
METERS = ("energy_j",)
READING_S = 1e-3  # tolerance in s between a sample and the end of the last segment

Series = list[float | None]


@dataclass(frozen=True, slots=True)
class JobTimeSeries:
    """Sums over the named nodes; a segment is None if no node has a value.

    `most_cpus` is the largest number of busy CPUs between two samples, which are `period_s` apart
    on average.
    """

    nodes: tuple[str, ...]
    start_unix_s: float
    piece_s: float
    series: Mapping[str, Series]
    most_cpus: float | None
    period_s: float

    @property
    def end_s(self) -> float:
        """Return the end in seconds since the start."""
        return self.piece_s * max((len(s) for s in self.series.values()), default=0)


def read_time_series(
    records: Mapping[str, Record], pieces: int = MOST_PIECES
) -> JobTimeSeries | None:
    """Return the time series of these nodes; None: there are no samples, or too few."""
    return read_all_time_series([records], pieces)[0]


def read_all_time_series(
    jobs: Sequence[Mapping[str, Record]], pieces: int = MOST_PIECES
) -> list[JobTimeSeries | None]:
    """Return the time series of each job.

    Several jobs share a database, since creating one takes longer than reading a job's samples.
    """
    found: dict[str, JobTimeSeries | None] = {}
    numbered = {str(n): job for n, job in enumerate(jobs) if job}
    rest = iter(numbered.items())
    while some := dict(islice(rest, JOBS_AT_ONCE)):
        found |= read_loaded_jobs(some, pieces)
    return [found.get(str(n)) for n in range(len(jobs))]


def read_loaded_jobs(
    jobs: Mapping[str, Mapping[str, Record]], pieces: int
) -> dict[str, JobTimeSeries | None]:
    """Return the time series of jobs whose samples are loaded together."""
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="steelyard-") as folder,
        load_job_samples(jobs, Path(folder)) as connection,
    ):
        connection.execute("ALTER VIEW samples RENAME TO samples_of_all")
        for job, records in jobs.items():
            timed = [n for n, record in records.items() if is_by_timer(record)]
            statement = (
                "CREATE OR REPLACE TEMP TABLE by_timer AS SELECT unnest(?::VARCHAR[]) AS node"
            )
            connection.execute(statement, [timed])
            own = "CREATE OR REPLACE TEMP TABLE samples AS FROM samples_of_all WHERE run_id = ?"
            connection.execute(own, [job])
            found[job] = read_series(connection, pieces)
    return found


def read_series(
    connection: duckdb.DuckDBPyConnection, pieces: int = MOST_PIECES
) -> JobTimeSeries | None:
    """Return the series from the tables `samples` and `by_timer`."""
    found = connection.execute(
        "SELECT node, count(*), min(unix_s), max(unix_s) FROM samples WHERE unix_s IS NOT NULL "
        "GROUP BY node ORDER BY node"
    ).fetchall()
    most = max((count for _, count, *_ in found), default=0)
    if most < FEWEST_SAMPLES:
        return None
    start, end = min(row[2] for row in found), max(row[3] for row in found)
    number = min(pieces, most - 1)
    width = (end - start) / number
    if width <= 0:
        return None
    nodes = tuple(row[0] for row in found)
    edges = [start + width * n for n in range(number + 1)]
    series: dict[str, Series] = {}
    for name, counter in RATES.items():
        points = read_counter_edges(connection, counter, start, width, number)
        series[name] = add_series(
            [
                compute_rates(points[node], edges, counter in METERS)
                for node in nodes
                if node in points
            ],
            number,
        )
    for name in LEVELS:
        tops = read_levels(connection, name, start, width, number)
        series[name] = add_series([fill_gaps(tops[n]) for n in nodes if n in tops], number)
    return JobTimeSeries(
        nodes, start, width, series, find_busiest(connection), (end - start) / (most - 1)
    )


def read_counter_edges(
    connection: duckdb.DuckDBPyConnection, counter: str, start: float, width: float, number: int
) -> dict[str, list[Reading]]:
    """Return by node the first and the last reading of a counter in each non-empty segment."""
    piece = f"least({number - 1}, floor((unix_s - ?) / ?))"
    rows = connection.execute(
        f"SELECT node, min(unix_s), min(value), max(unix_s), max(value) "
        f"FROM ({make_readings_sql(counter)}) "
        f"WHERE value IS NOT NULL AND unix_s IS NOT NULL GROUP BY node, {piece} "
        "ORDER BY node, min(unix_s)",
        [start, width],
    ).fetchall()
    points: dict[str, list[Reading]] = {}
    for node, first_s, first, last_s, last in rows:
        known = points.setdefault(node, [])
        if not known and first_s > start:
            known.append((start, 0.0))  # counting starts at 0 with the record
        known += [(first_s, float(first)), (last_s, float(last))]
    return points


def compute_rates(points: Sequence[Reading], edges: Sequence[float], is_meter: bool) -> Series:
    """Return the counter's growth per second in each segment. All segments add up to its growth.

    After a meter's last reading the values are unknown.
    """
    end = points[-1][0] + READING_S if is_meter else math.inf
    values = [interpolate_counter(points, edge) if edge <= end else None for edge in edges]
    return [
        None if before is None or after is None else (after - before) / (edges[1] - edges[0])
        for before, after in pairwise(values)
    ]


def interpolate_counter(points: Sequence[Reading], moment: float) -> float | None:
    """Interpolate the counter linearly at a time; after the last reading it stays constant."""
    if moment < points[0][0]:
        return None
    if moment >= points[-1][0]:
        return points[-1][1]
    index = bisect_left(points, (moment, float("inf")))
    (a_s, a), (b_s, b) = points[index - 1], points[index]
    return a + (b - a) * (moment - a_s) / (b_s - a_s) if b_s > a_s else b


def read_levels(
    connection: duckdb.DuckDBPyConnection, name: str, start: float, width: float, number: int
) -> dict[str, Series]:
    """Return by node the highest level in each segment."""
    piece = f"least({number - 1}, floor((unix_s - ?) / ?))"
    rows = connection.execute(
        f"SELECT node, {piece} AS piece, max({name}) FROM samples WHERE {name} IS NOT NULL "
        "AND unix_s IS NOT NULL GROUP BY ALL ORDER BY node, piece",
        [start, width],
    ).fetchall()
    found: dict[str, Series] = {}
    for node, piece_number, top in rows:
        found.setdefault(node, [None] * number)[int(piece_number)] = float(top)
    return found


def fill_gaps(series: Series) -> Series:
    """Fill a segment without samples, between two that have some, with the value before it."""
    known = [index for index, value in enumerate(series) if value is not None]
    last = known[-1] if known else 0
    result: Series = []
    for index, value in enumerate(series):
        before = result[-1] if result and index < last else None
        result.append(before if value is None else value)
    return result


def add_series(several: Sequence[Series], number: int) -> Series:
    """Add several series by segment; unknown values add nothing."""
    pieces = [[s[index] for s in several] for index in range(number)]
    known = [[value for value in piece if value is not None] for piece in pieces]
    return [sum(piece) if piece else None for piece in known]


def find_busiest(connection: duckdb.DuckDBPyConnection) -> float | None:
    """Return the largest number of busy CPUs on a node between two samples.

    Samples closer than half the median distance are ignored: the last one may be 1 ms after the one
    before, which is too short for a rate.
    """
    row = connection.execute(
        """
        WITH gaps AS (
            SELECT node, unix_s - lag(unix_s) OVER w AS s, cpu_s - lag(cpu_s) OVER w AS cpu_s
            FROM (
                SELECT node, unix_s,  -- no process yet at the first one: 0
                       coalesce(cpu_s, if(row_number() OVER v = 1, 0, NULL)) AS cpu_s
                FROM samples WHERE unix_s IS NOT NULL
                WINDOW v AS (PARTITION BY node ORDER BY unix_s)
            )
            WHERE cpu_s IS NOT NULL
            WINDOW w AS (PARTITION BY node ORDER BY unix_s)
        )
        SELECT max(cpu_s / s) FROM gaps
        WHERE s > 0 AND s >= (SELECT median(s) / 2 FROM gaps WHERE s IS NOT NULL)
        """
    ).fetchone()
    return None if row is None else row[0]
