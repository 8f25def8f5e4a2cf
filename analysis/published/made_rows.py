"""Figures that a paper prints and a study has only in parts: the round trips of the jobs' own TCP, and
a figure's first iteration beside the following ones. As rows like all others."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from steelyard.analysis.published.paper import Paper
from steelyard.analysis.summary.load import Metric
from steelyard.analysis.summary.network import LevelTcp, NodeNetwork, tcp_of
from steelyard.analysis.summary.opening import opened
from steelyard.analysis.summary.summary import Row, Summary, row_of

TCP: Mapping[str, str] = {  # by metric: what of LevelTcp
    "tcp_rtt_min_s": "floor_s",
    "tcp_rtt_max_s": "high_s",
    "tcp_rtt_median_s": "median_s",
    "tcp_rtt_mean_s": "mean_s",
    "tcp_rtt_sd_s": "sd_s",
}
FIRST, FOLLOWING = "_first", "_following"

Values = dict[str, float | None]  # by run


def made_rows(summary: Summary, paper: Paper) -> list[Row]:
    """Those of the metrics that the paper's claims and tables ask for."""
    wanted = {value.metric for value in paper.values}
    wanted |= {name for claim in paper.claims for name in claim.metric}
    found: dict[str, tuple[str, Values]] = {}
    if wanted & TCP.keys():
        found |= {name: ("s", values) for name, values in round_trips(summary).items()}
    for name in sorted(wanted):
        if name.endswith((FIRST, FOLLOWING)):
            found[name] = of_iterations(summary, name)
    return [
        row for name, (unit, values) in found.items() for row in rows(summary, name, unit, values)
    ]


def rows(summary: Summary, name: str, unit: str, values: Values) -> Iterator[Row]:
    """Of each condition that has values."""
    metric = Metric(name, unit, "lower", is_primary=False)
    for group in summary.groups:
        own = {run.run_id: values.get(run.run_id) for run in group.runs}
        key = (group.variant, group.label, name)
        row = row_of(replace(summary.data, values={key: own}), group, metric)
        if row.values:
            yield row


def round_trips(summary: Summary) -> dict[str, Values]:
    """Each run's, of all readings on its nodes together."""
    nodes: dict[str, list[NodeNetwork]] = {}
    for node in summary.data.network:
        if node.tcp_rtt_s is not None:
            nodes.setdefault(node.run_id, []).append(node)
    told = {run: tcp_of(run, mine) for run, mine in nodes.items()}
    return {name: of_each(told, field) for name, field in TCP.items()}


def of_each(told: Mapping[str, LevelTcp], field: str) -> Values:
    return {run: getattr(tcp, field) for run, tcp in told.items()}


def of_iterations(summary: Summary, name: str) -> tuple[str, Values]:
    """The unit, and the first iteration's value or the mean of the following ones, run by run; of runs
    that have but one neither: whether it was a first one is not said."""
    first = name.endswith(FIRST)
    metric = name.removesuffix(FIRST).removesuffix(FOLLOWING)
    with opened(summary.data.folder) as connection:
        lines = connection.execute(
            """
            SELECT s.run_id, s.iteration, avg(s.value), any_value(s.unit)
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.metric = ? AND isfinite(s.value) GROUP BY s.run_id, s.iteration
            """,
            [metric],
        ).fetchall()
    by_run: dict[str, dict[int, float]] = {}
    for run, iteration, value, _ in lines:
        by_run.setdefault(run, {})[iteration] = value
    unit = next((str(unit) for *_, unit in lines if unit), "")
    return unit, {
        run: values[1] if first else following(values)
        for run, values in by_run.items()
        if len(values) > 1 and 1 in values
    }


def following(values: Mapping[int, float]) -> float:
    others: Iterable[float] = (value for number, value in values.items() if number > 1)
    return statistics.fmean(others)
