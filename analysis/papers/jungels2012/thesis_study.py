"""The 6,581 measurements that the thesis prints, as a study (README.md has the files)."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.papers.claim_files import read_csv_rows
from steelyard.analysis.summary.study_data import Meta, Metric, StudyData
from steelyard.analysis.summary.study_run import Condition, Run
from steelyard.analysis.summary.summary import Summary, build_summary

NAME = "jungels2012"
FOLDER = Path(__file__).parent
PUBLISHED_UNIX_S = 1_334_707_200.0  # 2012-04-18, the date of the thesis
NODE_TYPES = ("physical", "virtual")
FACTORS: dict[str, list[Any]] = {
    "filesystem": ["Lustre", "NFS", "PVFS"],
    "concurrent_nodes": [1, 2, 3, 4],
    "node_type": list(NODE_TYPES),
}
BASELINE = {"node_type": "physical"}
SECONDS = Metric("seconds", "s", "lower", True)
FOUR_NODES = "4 nodes"


@dataclass(frozen=True, slots=True)
class Series:
    """A printed series: the iterations of a benchmark on one node (NPB and XHPL: on all four)."""

    figure: str  # the thesis' own number
    variant: str
    condition: Condition
    node_index: int
    host: str
    metric: Metric
    values: tuple[float, ...]

    @property
    def node_type(self) -> str:
        """`physical` or `virtual`."""
        return str(self.condition["node_type"])


@dataclass(frozen=True, slots=True)
class Average:
    """A printed average; `text` has its decimals, and is empty if only `agrees` was noted."""

    figure: str
    node_type: str
    column: str  # `total` or `per_process`
    text: str
    agrees: bool


@dataclass(frozen=True)
class Measurements:
    """All that the thesis prints; `repeated` maps a figure to the earlier one with the same
    values.
    """

    series: list[Series]
    repeated: dict[str, str]
    averages: list[Average]
    per_process: list[Series]  # of appendix D: in no mean except their own
    summary: Summary


def read_measurements(folder: Path = FOLDER, equivalent: float | None = None) -> Measurements:
    """Read the package's own files, or others of that form; `equivalent` as in build_summary()."""
    series = read_series(folder)
    repeated = find_repeated_series(series)
    data = build_study_data([one for one in series if one.figure not in repeated])
    averages = [
        Average(r["figure"], r["node_type"], r["column"], r["average"], r["agrees"] == "yes")
        for r in read_csv_rows(folder / "printed_averages.csv")
    ]
    per_process = benchmark_series(folder, "per_process")
    summary = build_summary(data) if equivalent is None else build_summary(data, equivalent)
    return Measurements(series, repeated, averages, per_process, summary)


def read_series(folder: Path = FOLDER) -> list[Series]:
    """Return appendices B, C and D in the order of the thesis."""
    return [*file_series(folder), *benchmark_series(folder, "total")]


def file_series(folder: Path) -> list[Series]:
    """Return appendices B and C: seconds of file system tests, one series per figure."""
    found: dict[str, list[dict[str, str]]] = {}
    for row in read_csv_rows(folder / "filesystem.csv"):
        found.setdefault(row["figure"], []).append(row)
    return [
        Series(
            figure=figure,
            variant=f"filesystem test={lines[0]['test']}",
            condition={
                "filesystem": lines[0]["filesystem"],
                "concurrent_nodes": int(lines[0]["concurrent_nodes"]),
                "node_type": lines[0]["node_type"],
            },
            node_index=int(lines[0]["node_index"]),
            host=lines[0]["host"],
            metric=SECONDS,
            values=tuple(float(row["seconds"]) for row in lines),
        )
        for figure, lines in found.items()
    ]


def benchmark_series(folder: Path, column: str) -> list[Series]:
    """Return appendix D: a series per benchmark and node type that has the column."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in read_csv_rows(folder / "hpc.csv"):
        found.setdefault((row["figure"], row["node_type"]), []).append(row)
    return [
        Series(
            figure=figure,
            variant=find_variant(lines[0]["benchmark"]),
            condition={"node_type": node_type},
            node_index=1,
            host=FOUR_NODES,
            metric=Metric(column, lines[0]["unit"], "higher", True),
            values=tuple(float(row[column]) for row in lines),
        )
        for (figure, node_type), lines in found.items()
        if lines[0][column]
    ]


def find_variant(benchmark: str) -> str:
    """Return the variant of a benchmark of appendix D by its printed name."""
    return "hpl" if benchmark == "XHPL" else f"npb kernel={benchmark} class=B"


def find_repeated_series(series: Sequence[Series]) -> dict[str, str]:
    """Return the series that repeat the values of an earlier one, and so count once."""
    first: dict[tuple[float, ...], str] = {}
    repeated = {}
    for one in series:
        earlier = first.setdefault(one.values, one.figure)
        if earlier != one.figure:
            repeated[one.figure] = earlier
    return repeated


def build_study_data(series: Sequence[Series]) -> StudyData:
    """Return the study: iteration i on all nodes of a test is run i, the mean over nodes."""
    groups: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        label = ", ".join(f"{factor}={level}" for factor, level in one.condition.items())
        groups.setdefault((one.variant, label), []).append(one)
    runs: list[Run] = []
    values: dict[tuple[str, str, str], dict[str, float | None]] = {}
    for (variant, label), members in groups.items():
        found = values.setdefault((variant, label, members[0].metric.name), {})
        for number in range(1, max(len(one.values) for one in members) + 1):
            at_work = [one for one in members if len(one.values) >= number]
            runs.append(build_run(at_work, label, number))
            found[runs[-1].run_id] = sum(o.values[number - 1] for o in at_work) / len(at_work)
    variants = dict.fromkeys(one.variant for one in series)
    by_variant = {name: [one for one in series if one.variant == name] for name in variants}
    return StudyData(
        folder=Path(NAME),
        meta=build_meta(),
        runs=runs,
        metrics={name: [members[0].metric] for name, members in by_variant.items()},
        values=values,
        records=[],
        gaps=[],
        repeated={name: max(s.node_index for s in members) for name, members in by_variant.items()},
    )


def build_run(series: Sequence[Series], label: str, number: int) -> Run:
    """Return an iteration as a run; its id names the figures that print it: `B2+B3 #7`."""
    first = series[0]
    figures = "+".join(dict.fromkeys(one.figure for one in series))
    if first.host == FOUR_NODES:
        figures += f" {first.node_type}"
    return Run(
        run_id=f"{figures} #{number}",
        block=None,
        position=number,
        benchmark=first.variant.split()[0],
        variant=first.variant,
        condition=first.condition,
        label=label,
        is_baseline=first.node_type == BASELINE["node_type"],
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


def build_meta() -> Meta:
    """Return the study's description; Steelyard neither planned nor collected anything."""
    return Meta(
        study=NAME,
        seed=None,
        toml=None,
        toml_sha256=None,
        steelyard=importlib.metadata.version("steelyard"),
        collected_unix_s=PUBLISHED_UNIX_S,
        baseline=dict(BASELINE),
        factors={factor: list(levels) for factor, levels in FACTORS.items()},
    )
