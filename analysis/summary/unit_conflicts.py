"""One unit per metric: a mean over seconds and milliseconds would be a wrong number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Of a row of read_values(): variant, condition, metric, run_ids, their values, unit, …
VARIANT, METRIC, RUNS, VALUES, UNIT = 0, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class OtherUnit:
    """Runs whose figure came in another unit than that of most; they are in no mean."""

    variant: str
    metric: str
    unit: str | None
    usual: str | None
    run_ids: tuple[str, ...]


def settle_units(
    rows: Sequence[tuple[Any, ...]],
) -> tuple[Sequence[tuple[Any, ...]], list[OtherUnit]]:
    """The rows with the unit of most runs for each variant and metric, other units' values None.

    A tie goes to the unit that comes first.
    """
    runs: dict[tuple[str, str], dict[str | None, list[str]]] = {}
    for row in rows:
        by_unit = runs.setdefault((row[VARIANT], row[METRIC]), {})
        by_unit.setdefault(row[UNIT], []).extend(row[RUNS])
    usual = {
        key: max(by_unit, key=lambda unit: len(by_unit[unit]))
        for key, by_unit in runs.items()
        if len(by_unit) > 1
    }
    if not usual:
        return rows, []
    others = [
        OtherUnit(*key, unit, usual[key], tuple(sorted(run_ids)))
        for key in usual
        for unit, run_ids in runs[key].items()
        if unit != usual[key]
    ]
    return [settled(row, usual) for row in rows], others


def settled(row: tuple[Any, ...], usual: dict[tuple[str, str], str | None]) -> tuple[Any, ...]:
    """The row as it is, or in the usual unit without its values."""
    unit = usual.get((row[VARIANT], row[METRIC]), row[UNIT])
    if row[UNIT] == unit:
        return row
    return (*row[:VALUES], [None] * len(row[VALUES]), unit, *row[UNIT + 1 :])
