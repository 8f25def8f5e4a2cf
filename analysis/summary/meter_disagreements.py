"""Compares energy meters of a record that measure the same part of a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

# Allowed difference of two meters: a share of the larger value, the resolution of both, and what is
# used in the time by which their readings may differ. Counters of one part differ by their
# calibration; a meter that samples power misses peaks between samples.
COUNTERS_SHARE, POWER_SHARE = 0.02, 0.1
APART_S = 0.2  # s; Cray counts ten times a second, RAPL a thousand times: two such steps


@dataclass(frozen=True, slots=True)
class MeterReading:
    """The readings of one kind of meter for one part, over all its units (packages, GPUs)."""

    meter: str
    covers: str
    watts: float  # mean over the time that its joules cover
    elapsed_s: float
    step_j: float
    period_s: float
    integrated: bool
    units: frozenset[int | None]  # {None}: one reading for all units


@dataclass(frozen=True, slots=True)
class MeterDisagreement:
    """Two meters of a part that differ more than their errors explain; joules of the same time."""

    run_id: str
    node: str
    covers: str
    meters: tuple[str, str]
    joules: tuple[float, float]
    allowed_j: float


def meter_readings(zones: list[dict[str, Any]]) -> Iterator[MeterReading]:
    """Return the readings by kind of meter and part; those with a missing unit are left out."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for zone in zones:
        if "meter" in zone and zone["covers"] != "other":
            name = zone["meter"] + (" (MMIO)" if "-mmio:" in zone["path"] else "")
            if name == "file":  # each file is a separate meter
                name = zone["name"]
            groups.setdefault((name, zone["covers"]), []).append(zone)
    for (name, covers), units in groups.items():
        if all(unit["energy_j"] is not None and unit.get("elapsed_s") for unit in units):
            elapsed_s = min(unit["elapsed_s"] for unit in units)
            integrated = units[0]["measures"] == "power"
            yield MeterReading(
                name,
                covers,
                sum(unit["energy_j"] / unit["elapsed_s"] for unit in units),
                elapsed_s,
                sum(unit.get("resolution_j") or 0 for unit in units)
                + sum((unit.get("resolution_w") or 0) * elapsed_s for unit in units),
                max(unit.get("period_s") or 0 for unit in units),
                integrated,
                frozenset(unit["unit"] for unit in units),
            )


def allowed_j(a: MeterReading, b: MeterReading) -> float:
    """Return the allowed difference of both meters in joules, over the shorter of their times."""
    share = POWER_SHARE if a.integrated or b.integrated else COUNTERS_SHARE
    watts = max(a.watts, b.watts)
    apart_s = APART_S + a.period_s + b.period_s + abs(a.elapsed_s - b.elapsed_s)
    return share * watts * min(a.elapsed_s, b.elapsed_s) + a.step_j + b.step_j + watts * apart_s


def same_units(a: frozenset[int | None], b: frozenset[int | None]) -> bool:
    """Return whether both have the same packages, or one has a single reading for all."""
    return a == b or frozenset([None]) in (a, b)


def find_disagreements(
    run_id: str, node: str, zones: list[dict[str, Any]]
) -> Iterator[MeterDisagreement]:
    for a, b in combinations(sorted(meter_readings(zones), key=lambda reading: reading.meter), 2):
        if a.covers != b.covers or not same_units(a.units, b.units):
            continue
        shorter = min(a.elapsed_s, b.elapsed_s)
        joules = (a.watts * shorter, b.watts * shorter)
        if abs(joules[0] - joules[1]) > (allowed := allowed_j(a, b)):
            yield MeterDisagreement(run_id, node, a.covers, (a.meter, b.meter), joules, allowed)


def read_meters(connection: DuckDBPyConnection) -> tuple[MeterDisagreement, ...]:
    """Read the disagreements in complete records that have more than one kind of meter."""
    rows = connection.execute(
        """
        SELECT n.run_id, n.node, json_extract(n.record, '$.energy.zones')::VARCHAR
        FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt
        WHERE n.complete AND (
            len(list_distinct(n.record->>'$.energy.zones[*].meter')) > 1
            OR contains(n.record->>'$.energy.zones', '-mmio:')
            OR list_contains(n.record->>'$.energy.zones[*].meter', 'file')
        )
        ORDER BY n.run_id, n.node
        """
    ).fetchall()
    return tuple(
        found
        for run, node, zones in rows
        for found in find_disagreements(run, node, json.loads(zones))
    )
