"""Which samples of a counter are new readings of it.

A meter changes more seldom than samples are taken, and where a timer in the kernel takes them (the
record's TICKS) what is the node's is read once a second: the samples between repeat the last
reading (docs/sampler.md, samples). Rates between such samples would be 0, and then many times too high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from steelyard.analysis.sources.records import Record

TICKS = "bpf.ticks"  # of a record: how often the timer took what is the job's
NODE_PERIOD_S = 1.0  # plugins/node/sampler: what is the node's, beside a timer in the kernel
OF_NODE = ("energy_j", "node_cpu_s", "rx_bytes", "tx_bytes")

Reading = tuple[float, float]  # when, in s; what a counter had then


def find_idle_s(counter: str, by_timer: bool) -> float:
    """For how long a reading is repeated at most, until it means that nothing was counted: joules always
    grow."""
    if counter == "energy_j":
        return math.inf
    return NODE_PERIOD_S if by_timer and counter in OF_NODE else 0.0


def is_by_timer(record: Record) -> bool:
    """Whether the kernel's timer took a record's samples."""
    return bool(record.get(TICKS))


def find_new_readings(samples: Iterable[Reading], idle_s: float) -> list[Reading]:
    """Those of a counter that tell anything new, the first one always."""
    kept: list[Reading] = []
    for at_s, value in samples:
        if not kept or value != kept[-1][1] or at_s - kept[-1][0] >= idle_s:
            kept.append((at_s, value))
    return kept


def make_readings_sql(counter: str) -> str:
    """SQL of the same: node, unix_s and value, out of the tables `samples` and `by_timer`, the nodes whose
    samples a timer took. Of a second in which nothing was counted the first sample stands."""
    if counter not in OF_NODE:
        return f"SELECT node, unix_s, {counter} AS value FROM samples"
    told = f"SELECT node, unix_s, {counter} AS value FROM samples WHERE value IS NOT NULL"
    is_new = "value IS DISTINCT FROM lag(value) OVER (PARTITION BY node ORDER BY unix_s)"
    if counter == "energy_j":
        return f"{told} AND unix_s IS NOT NULL QUALIFY {is_new}"
    return f"""
        SELECT node, unix_s, value
        FROM (SELECT *, {is_new} AS is_new FROM ({told} AND unix_s IS NOT NULL))
        WINDOW period AS (PARTITION BY node, floor(unix_s / {NODE_PERIOD_S}))
        QUALIFY is_new OR node NOT IN (FROM by_timer)
            OR NOT bool_or(is_new) OVER period AND unix_s = min(unix_s) OVER period"""


def compute_rates(readings: list[Reading]) -> list[tuple[float, float, float]]:
    """Begin and end of each time between two readings, and the growth a second in it."""
    pairs = [(one, other) for one, other in pairwise(readings) if other[0] > one[0]]
    return [(a_s, b_s, (b - a) / (b_s - a_s)) for (a_s, a), (b_s, b) in pairs]
