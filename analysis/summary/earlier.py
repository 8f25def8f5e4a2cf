"""What earlier runs of the same benchmarks took: seconds, joules, and how widely they spread."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.stats.basics import variance
from steelyard.analysis.store.database import FILE_NAME
from steelyard.analysis.summary.opening import opened

MIN_RUNS = 2  # for a spread
Key = tuple[str, ...]

# One row a completed run: what it was, its time, its joules, and its main figure; of several the
# first by name, since seconds and rates have no common mean.
SQL = """
SELECT r.benchmark, r.parameters, r.condition, a.elapsed_s,
    max(m.value) FILTER (m.metric = 'energy_j'),
    arg_min(m.value, m.metric) FILTER (m.is_primary AND isfinite(m.value))
FROM runs AS r JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
LEFT JOIN measurements AS m ON m.run_id = r.run_id
WHERE r.state = 'completed' AND r.valid IS NOT false AND a.elapsed_s IS NOT NULL
GROUP BY r.run_id, r.benchmark, r.parameters, r.condition, a.elapsed_s
"""


@dataclass
class Seen:
    """Runs that are alike."""

    elapsed_s: list[float] = field(default_factory=list)
    energy_j: list[float] = field(default_factory=list)
    main: list[float] = field(default_factory=list)

    @property
    def spread(self) -> float | None:
        """The standard deviation of the main figure as a share of its mean."""
        if len(self.main) < MIN_RUNS:
            return None
        mean = sum(self.main) / len(self.main)
        return variance(self.main, mean) ** 0.5 / mean if mean > 0 else None


@dataclass(frozen=True)
class Earlier:
    """Runs by how much they have in common with what is asked for."""

    by_key: Mapping[Key, Seen]
    studies: tuple[str, ...]

    def of(
        self, benchmark: str, parameters: Mapping[str, Any], condition: Mapping[str, Any]
    ) -> tuple[Seen | None, str]:
        """The nearest runs there are, and in words how near: the same condition, else the same
        parameters, else the same benchmark."""
        for key, words in zip(keys(benchmark, parameters, condition), NEAR, strict=True):
            if key in self.by_key:
                return self.by_key[key], words
        return None, "no earlier run"


NEAR = ("the same condition", "the same parameters", "the same benchmark with others")
NONE = Earlier({}, ())


def keys(benchmark: str, parameters: Mapping[str, Any], condition: Mapping[str, Any]) -> list[Key]:
    """From the most to the least alike."""
    given, levels = canonical(parameters), canonical(condition)
    return [(benchmark, given, levels), (benchmark, given), (benchmark,)]


def canonical(table: Mapping[str, Any]) -> str:
    return json.dumps(table, sort_keys=True)


def read(folders: Iterable[Path]) -> Earlier:
    """From the databases of these studies; one that was never collected has none."""
    found: dict[Key, Seen] = {}
    studies = []
    for folder in folders:
        if not (folder / FILE_NAME).is_file():
            continue
        studies.append(folder.name.removesuffix(".study"))
        with opened(folder) as connection:
            for row in connection.execute(SQL).fetchall():
                add(found, row)
    return Earlier(found, tuple(studies))


def add(found: dict[Key, Seen], row: Sequence[Any]) -> None:
    """A run to all that it is like."""
    benchmark, parameters, condition, elapsed_s, energy_j, main = row
    for key in keys(benchmark, json.loads(parameters), json.loads(condition)):
        seen = found.setdefault(key, Seen())
        seen.elapsed_s.append(elapsed_s)
        seen.energy_j += [] if energy_j is None else [energy_j]
        seen.main += [] if main is None else [main]
