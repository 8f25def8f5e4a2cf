"""Derives rows of values that a paper prints and a study's summary does not have.

They are round-trip times of the jobs' own TCP (`tcp_rtt_*`), and a run's first iteration separate
from its others (`NAME_first`, `NAME_following`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.network import NodeNetwork, build_tcp_level
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary, build_row

TCP: Mapping[str, str] = {  # by metric: a field of LevelTcp
    "tcp_rtt_min_s": "floor_s",
    "tcp_rtt_max_s": "high_s",
    "tcp_rtt_median_s": "median_s",
    "tcp_rtt_mean_s": "mean_s",
    "tcp_rtt_sd_s": "sd_s",
}
FIRST, FOLLOWING = "_first", "_following"

Values = dict[str, float | None]  # by run


def build_derived_rows(summary: Summary, metrics: AbstractSet[str]) -> list[Row]:
    """Return the derived rows for `metrics`; those of TCP are made together or not at all."""
    found: list[tuple[str, str, Values]] = []
    if metrics & TCP.keys():
        found += [(name, "s", values) for name, values in read_round_trips(summary).items()]
    for name in sorted(metrics):
        if name.endswith((FIRST, FOLLOWING)):
            found.append((name, *read_iterations(summary, name)))
    return [row for name, unit, values in found for row in build_rows(summary, name, unit, values)]


def build_rows(summary: Summary, name: str, unit: str, values: Values) -> Iterator[Row]:
    """Yield a row for each condition that has values."""
    metric = Metric(name, unit, "lower", is_primary=False)
    for group in summary.groups:
        own = {run.run_id: values.get(run.run_id) for run in group.runs}
        key = (group.variant, group.label, name)
        row = build_row(replace(summary.data, values={key: own}), group, metric)
        if row.values:
            yield row


def read_round_trips(summary: Summary) -> dict[str, Values]:
    """Return each run's round-trip times, from all readings on its nodes."""
    nodes: dict[str, list[NodeNetwork]] = {}
    for node in summary.data.network:
        if node.tcp_rtt_s is not None:
            nodes.setdefault(node.run_id, []).append(node)
    by_run = {run: build_tcp_level(run, members) for run, members in nodes.items()}
    return {
        name: {run: getattr(tcp, field) for run, tcp in by_run.items()}
        for name, field in TCP.items()
    }


def read_iterations(summary: Summary, name: str) -> tuple[str, Values]:
    """Return the unit, and by run the first iteration's value or the mean of the others.

    A run with a single iteration has neither, because that may not have been the first.
    """
    with open_database(summary.data.folder) as connection:
        lines = connection.execute(
            """
            SELECT s.run_id, s.iteration, avg(s.value), any_value(s.unit)
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.metric = ? AND isfinite(s.value) GROUP BY s.run_id, s.iteration
            """,
            [name.removesuffix(FIRST).removesuffix(FOLLOWING)],
        ).fetchall()
    by_run: dict[str, dict[int, float]] = {}
    for run, iteration, value, _ in lines:
        by_run.setdefault(run, {})[iteration] = value
    unit = next((str(unit) for *_, unit in lines if unit), "")
    several = {run: values for run, values in by_run.items() if len(values) > 1 and 1 in values}
    if name.endswith(FIRST):
        return unit, {run: values[1] for run, values in several.items()}
    return unit, {
        run: statistics.fmean(value for number, value in values.items() if number > 1)
        for run, values in several.items()
    }
