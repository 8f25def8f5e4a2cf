"""Decides which samples of a counter are new readings.

A meter changes less often than samples are taken. Where a timer in the kernel takes samples (the
record's TICKS), the node's counters are read once a second. The samples between repeat the last
reading (docs/sampler.md, samples). Rates between such samples would be 0, and then many times too
high.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from steelyard.analysis.sources.records import Record

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


def compute_rates(readings: list[Reading]) -> list[tuple[float, float, float]]:
    """Return start and end of each time between two readings, and the growth per second in it."""
    pairs = [(one, other) for one, other in pairwise(readings) if other[0] > one[0]]
    return [(a_s, b_s, (b - a) / (b_s - a_s)) for (a_s, a), (b_s, b) in pairs]
