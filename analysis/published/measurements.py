"""Measurements that others published, as a study: `steelyard report --preset NAME`.

A preset is a folder of this package with the values as printed (README.md there says from where),
averages that its source prints, and conclusions as data.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.resources
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.summary.load import Condition, Meta, Metric, Run, StudyData
from steelyard.analysis.summary.summary import Summary, summary_of

PUBLISHED_UNIX_S = 1_334_707_200.0  # 2012-04-18, the date of the thesis
FACTORS: dict[str, list[Any]] = {
    "filesystem": ["Lustre", "NFS", "PVFS"],
    "concurrent_nodes": [1, 2, 3, 4],
    "node_type": ["physical", "virtual"],
}
BASELINE = {"node_type": "physical"}
SECONDS = Metric("seconds", "s", "lower", True)


@dataclass(frozen=True, slots=True)
class Series:
    """One printed series: the iterations of a benchmark on one node (hpc: on all four)."""

    figure: str  # the source's own number
    variant: str
    condition: Condition
    node_index: int
    host: str
    metric: Metric
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Average:
    """An average that the source prints; `text` keeps its decimals, and is empty where only whether
    it agrees with the values was noted.
    """

    figure: str
    node_type: str
    column: str  # `total` or `per_process`
    text: str
    agrees: bool


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A sentence and the comparisons that it says something about (conclusions.toml)."""

    sentence: str
    wording: str  # `thesis` or `ours`
    place: str
    variants: str
    factor: str
    level: Any
    against: Any
    expect: str
    only: Condition


@dataclass(frozen=True)
class Published:
    """A preset as it was read; `repeated` maps a figure to the one that has its values, too."""

    name: str
    series: list[Series]
    repeated: dict[str, str]
    averages: list[Average]
    per_process: list[Series]  # of appendix D; they count in no mean but their own
    conclusions: list[Conclusion]
    summary: Summary


def read_preset(name: str) -> Published:
    """The preset's data and their summary; `name` is its folder's."""
    files = importlib.resources.files(__package__).joinpath("presets", name)
    with importlib.resources.as_file(files) as folder:
        return read_folder(name, folder)


def read_folder(name: str, folder: Path) -> Published:
    """The same of any folder with such files."""
    series = [*filesystem_series(folder), *hpc_series(folder)]
    repeated = repeated_series(series)
    counted = [one for one in series if one.figure not in repeated]
    return Published(
        name=name,
        series=series,
        repeated=repeated,
        averages=list(printed_averages(folder)),
        per_process=hpc_series(folder, "per_process"),
        conclusions=read_conclusions(folder / "conclusions.toml"),
        summary=summary_of(study_data(name, counted)),
    )


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The lines of a CSV file."""
    with path.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def filesystem_series(folder: Path) -> list[Series]:
    """Appendices B and C, in the order of the thesis."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows(folder / "jungels2012_filesystem.csv"):
        found.setdefault(row["figure"], []).append(row)
    return [
        Series(
            figure=figure,
            variant=f"filesystem test={first['test']}",
            condition={
                "filesystem": first["filesystem"],
                "concurrent_nodes": int(first["concurrent_nodes"]),
                "node_type": first["node_type"],
            },
            node_index=int(first["node_index"]),
            host=first["host"],
            metric=SECONDS,
            values=tuple(float(row["seconds"]) for row in lines),
        )
        for figure, lines in found.items()
        for first in lines[:1]
    ]


def printed_averages(folder: Path) -> Iterator[Average]:
    """In the order of the file."""
    for row in rows(folder / "printed_averages.csv"):
        figure, node_type, column, text, agrees = row.values()
        yield Average(figure, node_type, column, text, agrees == "yes")


def hpc_series(folder: Path, column: str = "total") -> list[Series]:
    """Appendix D: one series per benchmark and node type, where it has the column."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows(folder / "jungels2012_hpc.csv"):
        found.setdefault((row["figure"], row["node_type"]), []).append(row)
    return [
        Series(
            figure=figure,
            variant="hpl" if lines[0]["benchmark"] == "XHPL" else kernel(lines[0]["benchmark"]),
            condition={"node_type": node_type},
            node_index=1,
            host="4 nodes",
            metric=Metric(column, lines[0]["unit"], "higher", True),
            values=tuple(float(row[column]) for row in lines),
        )
        for (figure, node_type), lines in found.items()
        if lines[0][column]
    ]


def kernel(name: str) -> str:
    return f"npb kernel={name} class=B"


def repeated_series(series: Sequence[Series]) -> dict[str, str]:
    """Series that print the values of an earlier one: they count once."""
    first: dict[tuple[float, ...], str] = {}
    repeated = {}
    for one in series:
        earlier = first.setdefault(one.values, one.figure)
        if earlier != one.figure:
            repeated[one.figure] = earlier
    return repeated


def read_conclusions(path: Path) -> list[Conclusion]:
    """In the order of the file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["conclusion"]
    return [Conclusion(**{"only": {}} | table) for table in tables]


def study_data(name: str, series: Sequence[Series]) -> StudyData:
    """Iteration i of all nodes of a test is run i, its value the mean over the nodes."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        groups.setdefault((one.variant, label_of(one.condition)), []).append(one)
    runs: list[Run] = []
    values: dict[tuple[str, str, str], dict[str, float | None]] = {}
    metrics: dict[str, list[Metric]] = {}
    for (variant, label), members in groups.items():
        metric = members[0].metric
        metrics[variant] = [metric]
        found = values.setdefault((variant, label, metric.name), {})
        for number in range(1, max(len(one.values) for one in members) + 1):
            at_work = [one for one in members if len(one.values) >= number]
            runs.append(run_of(at_work, label, number))
            found[runs[-1].run_id] = sum(o.values[number - 1] for o in at_work) / len(at_work)
    return StudyData(
        folder=Path(name),
        meta=meta_of(name),
        runs=runs,
        metrics=metrics,
        values=values,
        records=[],
        gaps=[],
        repeated={one.variant: max(s.node_index for s in series if s.variant == one.variant)
                  for one in series},
    )  # fmt: skip


def label_of(condition: Condition) -> str:
    return ", ".join(f"{factor}={level}" for factor, level in condition.items())


def run_of(series: Sequence[Series], label: str, number: int) -> Run:
    """An iteration; its id names the figures that print it: `B2+B3 #7`."""
    first = series[0]
    figures = "+".join(dict.fromkeys(one.figure for one in series))
    if first.node_index == 1 and first.host == "4 nodes":
        figures += f" {first.condition['node_type']}"
    return Run(
        run_id=f"{figures} #{number}",
        block=None,
        position=number,
        benchmark=first.variant.split()[0],
        variant=first.variant,
        condition=first.condition,
        label=label,
        is_baseline=first.condition["node_type"] == BASELINE["node_type"],
        repeat=number,
        attempts=1,
        attempt=None,
        state="completed",
        reason=None,
        valid=True,
        invalid_reason=None,
        job_id=None,
        start_unix_s=None,
        elapsed_s=None,
        nodes=tuple(one.host for one in series),
    )


def meta_of(name: str) -> Meta:
    return Meta(
        study=name,
        seed=None,
        toml=None,
        toml_sha256=None,
        steelyard=importlib.metadata.version("steelyard"),
        collected_unix_s=PUBLISHED_UNIX_S,
        baseline=dict(BASELINE),
        factors={factor: list(levels) for factor, levels in FACTORS.items()},
    )
