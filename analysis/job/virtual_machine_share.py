"""Computes a virtual machine's share of its host's energy in a job's time.

The job starts and ends between samples. The interval is that of analysis/store/energy_shares.py.
The node's CPU time is read at most once a second. So for the seconds in which the job starts and
ends it is unknown how much of the others' work was in the job's time: for the lower bound all of
it, for the upper bound none of it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower, compute_energy_shares

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
