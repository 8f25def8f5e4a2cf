"""Reads the seconds, joules and spread of earlier runs of the same benchmarks."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.sources.study_sessions import format_label
from steelyard.analysis.stats.basics import variance
from steelyard.analysis.store.database import FILE_NAME
from steelyard.analysis.summary.database_connection import open_database

MIN_RUNS = 2  # for a spread
Key = tuple[str, ...]

# One row per completed run: its benchmark and condition, time, joules, and main figures by name.
SQL = """
SELECT r.benchmark, r.parameters, r.condition, a.elapsed_s,
    max(m.value) FILTER (m.metric = 'energy_j'),
    map_from_entries(list((m.metric, m.value)) FILTER (m.is_primary AND m.value IS NOT NULL))
FROM runs AS r JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
LEFT JOIN measurements AS m ON m.run_id = r.run_id
WHERE r.state = 'completed' AND r.valid IS NOT false AND a.elapsed_s IS NOT NULL
GROUP BY r.run_id, r.benchmark, r.parameters, r.condition, a.elapsed_s
"""


@dataclass(frozen=True, slots=True)
class Spread:
    """The standard deviation as a share of the mean, and the number of runs that it comes from."""

    share: float
    runs: int


@dataclass
class MeasuredCost:
    """The measured times, joules and figures of similar runs."""

    elapsed_s: list[float] = field(default_factory=list)
    energy_j: list[float] = field(default_factory=list)
    # By the main figure's name: the values by study, parameters and condition.
    figures: dict[str, dict[Key, list[float]]] = field(default_factory=dict)

    def spread(self, figure: str) -> Spread | None:
        """Return the spread within conditions, which excludes differences between conditions.

        It is the pooled coefficient of variation, each condition weighted by its degrees of
        freedom: Zar (1999), "Biostatistical Analysis", 4th ed., equation 8.42. Returns None if no
        condition has two runs.
        """
        squares, degrees, runs = 0.0, 0, 0
        for values in self.figures[figure].values():
            mean = statistics.fmean(values)
            if len(values) >= MIN_RUNS and mean > 0:
                degrees += len(values) - 1
                squares += (len(values) - 1) * variance(values, mean) / mean**2
                runs += len(values)
        return Spread(math.sqrt(squares / degrees), runs) if degrees else None


@dataclass(frozen=True)
class EarlierRuns:
    """Earlier runs by their similarity to a requested run."""

    by_key: Mapping[Key, MeasuredCost]
    studies: tuple[str, ...]

    def of(
        self, benchmark: str, parameters: Mapping[str, Any], condition: Mapping[str, Any]
    ) -> tuple[MeasuredCost | None, str]:
        """Return the most similar runs and a description of their similarity.

        They have the same condition, else the same parameters, else the same benchmark.
        """
        for key, description in zip(make_keys(benchmark, parameters, condition), NEAR, strict=True):
            if key in self.by_key:
                return self.by_key[key], description
        return None, "no earlier run"


NEAR = ("the same condition", "the same parameters", "the same benchmark with others")
NONE = EarlierRuns({}, ())


def make_keys(
    benchmark: str, parameters: Mapping[str, Any], condition: Mapping[str, Any]
) -> list[Key]:
    """Return the keys of a run from the most to the least similar."""
    given, levels = normalize(parameters), normalize(condition)
    return [(benchmark, given, levels), (benchmark, given), (benchmark,)]


def normalize(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True)


def read_earlier_runs(folders: Iterable[Path]) -> EarlierRuns:
    """Read the databases of these studies; a study that was never collected has none."""
    found: dict[Key, MeasuredCost] = {}
    studies = []
    for folder in folders:
        if not (folder / FILE_NAME).is_file():
            continue
        studies.append(format_label(folder))
        with open_database(folder) as connection:
            for row in connection.execute(SQL).fetchall():
                add_row(found, studies[-1], row)
    return EarlierRuns(found, tuple(studies))


# Sums over all attempts of a run; a step is part of its job.
JOBS_SQL = """
SELECT run_id, sum(TRY_CAST(ElapsedRaw AS DOUBLE)) FROM accounting
WHERE run_id IS NOT NULL AND step IS NULL
GROUP BY run_id HAVING bool_and(TRY_CAST(ElapsedRaw AS DOUBLE) IS NOT NULL)
"""


def job_seconds(folder: Path) -> dict[str, float]:
    """Return by run how many seconds its jobs took, from the collected scheduler accounting."""
    if not (folder / FILE_NAME).is_file():
        return {}
    with open_database(folder) as connection:
        return dict(connection.execute(JOBS_SQL).fetchall())


def add_row(found: dict[Key, MeasuredCost], study: str, row: Sequence[Any]) -> None:
    """Add a run under all of its keys."""
    benchmark, parameters, condition, elapsed_s, energy_j, figures = row
    alike = make_keys(benchmark, json.loads(parameters), json.loads(condition))
    for key in alike:
        cost = found.setdefault(key, MeasuredCost())
        cost.elapsed_s.append(elapsed_s)
        cost.energy_j += [] if energy_j is None else [energy_j]
        for name, value in (figures or {}).items():
            cost.figures.setdefault(name, {}).setdefault((study, *alike[0]), []).append(value)
