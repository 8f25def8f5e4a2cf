"""Exports a report as plain values (JSON), and its tables as files: CSV, Parquet, JSON, LaTeX.

A value that is null is not known, never 0.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.figures import figure_jobs, start_drawing
from steelyard.analysis.report.latency_share import split_document
from steelyard.analysis.report.latex_tables import build_latex_tables
from steelyard.analysis.report.network import network_document
from steelyard.analysis.report.node_comparisons import node_documents
from steelyard.analysis.report.scaling import (
    law_rows,
    optimum_document,
    scaling_document,
    scaling_rows,
)
from steelyard.analysis.report.tolerated_levels import tolerance_document
from steelyard.analysis.stats.basics import unseen_share
from steelyard.analysis.store.row_files import Spool, quote_text
from steelyard.analysis.summary.latency_share import MODEL, build_split_rows
from steelyard.analysis.summary.node_comparisons import build_node_comparisons
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.scaling import build_scaling_curves, find_optima
from steelyard.analysis.summary.slopes import FactorLine, fit_factor_lines
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.tolerated_levels import find_tolerances

FORMAT, VERSION = "steelyard-report", 1


def document(summary: Summary, findings: Sequence[Finding] | None = None) -> dict[str, Any]:
    """Return the whole report; `findings` are those of the summary if they are already known."""
    meta = summary.data.meta
    with start_drawing(figure_jobs(summary, summary.variants), figure_document) as work:
        found = find_all(summary) if findings is None else findings
        return {
            "format": FORMAT,
            "version": VERSION,
            "study": meta.study,
            "seed": meta.seed,
            "baseline": meta.baseline,
            "factors": meta.factors,
            "equivalent_within": meta.equivalent,
            "tolerate": meta.tolerate,
            "toml_sha256": meta.toml_sha256,
            "collected_unix_s": meta.collected_unix_s,
            "answer": describe_answer(summary),
            "rows": [row_document(row) for row in summary.rows],
            "slopes": [slope_document(line) for line in fit_factor_lines(summary)],
            "tolerances": [tolerance_document(one) for one in find_tolerances(summary)],
            "nodes": [
                row for one in build_node_comparisons(summary) for row in node_documents(one)
            ],
            "scaling": [scaling_document(curve) for curve in build_scaling_curves(summary)],
            "optima": [optimum_document(one) for one in find_optima(summary)],
            "latency_and_throughput": {
                "model": MODEL,
                "splits": [split_document(one) for one in build_split_rows(summary)],
            },
            "network": network_document(summary),
            "findings": [finding_document(one) for one in found],
            "figures": [one for one in work.results() if one is not None],
        }


def slope_document(found: FactorLine) -> dict[str, Any]:
    """Return a line over a numeric factor, and its break."""
    slope, broken = found.line.slope, found.line.break_point
    return {
        "variant": found.variant,
        "metric": found.metric,
        "unit": found.unit,
        "factor": found.factor,
        "per": found.factor_unit,
        "others": found.others,
        "slope": slope.value if slope.reason is None else None,
        "low": slope.low,
        "high": slope.high,
        "intercept": slope.intercept if slope.reason is None else None,
        "n": slope.n,
        "levels": slope.levels,
        "blocks": slope.blocks,
        "all_blocks": slope.all_blocks,
        "p_holm": found.p if slope.reason is None else None,
        "reason": slope.reason,
        "break": broken
        and {
            "place": broken.position,
            "before": broken.before,
            "behind": broken.behind,
            "p": broken.p,
        },
    }


def finding_document(found: Finding) -> dict[str, Any]:
    return {
        "code": found.kind.code,
        "severity": found.kind.severity.value,
        "title": found.kind.title,
        "text": found.text,
        "advice": found.kind.advice,
        "places": list(found.places),
    }


def figure_document(drawing: Drawing) -> dict[str, Any]:
    """Return a figure's texts and numbers."""
    return {
        "name": drawing.name,
        "title": drawing.title,
        "caption": drawing.caption,
        "columns": list(drawing.columns),
        "rows": [list(row) for row in drawing.rows],
    }


def row_document(row: Row) -> dict[str, Any]:
    """Return one metric of one variant and condition."""
    group, interval, spread, result = row.group, row.interval, row.spread, row.overhead
    return {
        "variant": group.variant,
        "condition": group.label,
        "is_baseline": group.label == group.baseline_label,
        "baseline": group.baseline_label,
        "metric": row.metric.name,
        "unit": row.metric.unit,
        "better": row.metric.better,
        "is_primary": row.metric.is_primary,
        "planned": group.counts.planned,
        "failed": group.counts.failed,
        "cancelled": group.counts.cancelled,
        "invalid": group.counts.invalid,
        "waiting": group.counts.waiting,
        "without_value": row.missing,
        "n": row.n,
        "mean": interval and interval.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "jobs": row.jobs,
        "blocks": row.blocks,
        "unseen_share": unseen_share(row.n) if row.n else None,
        "median": row.median,
        "sd": spread and spread.sd,
        "mad": spread and spread.mad,
        "min": row.minimum,
        "max": row.maximum,
        "outliers": [row.run_ids[index] for index in row.outliers.indices],
        "overhead": result and result.value,
        "overhead_low": result and result.low,
        "overhead_high": result and result.high,
        "overhead_method": result and result.method,
        "p_holm": row.p,
        "equivalent_within": row.margin,
        "p_equivalent": row.p_equivalent,
        "p_non_inferior": row.p_non_inferior,
        "effect_size": row.effect and row.effect.value,
        "effect_low": row.effect and row.effect.low,
        "effect_high": row.effect and row.effect.high,
        "effect_of": row.effect and (row.effect.design or "runs"),
        "verdict": row.verdict and row.verdict.text,
        "meaning": row.verdict and row.verdict.direction.value,
    }


TEXT, NUMBER, COUNT, FLAG, LIST = "VARCHAR", "DOUBLE", "BIGINT", "BOOLEAN", "VARCHAR[]"


@dataclass(frozen=True)
class Relation:
    """A table to export: names and DuckDB types of its columns, and its rows."""

    name: str
    columns: dict[str, str]
    rows: list[tuple[object, ...]]


MEANS = {
    "variant": TEXT, "condition": TEXT, "is_baseline": FLAG, "baseline": TEXT, "metric": TEXT,
    "unit": TEXT, "better": TEXT, "is_primary": FLAG, "planned": COUNT, "failed": COUNT,
    "cancelled": COUNT, "invalid": COUNT, "waiting": COUNT, "without_value": COUNT, "n": COUNT, "mean": NUMBER,
    "low": NUMBER, "high": NUMBER, "jobs": COUNT, "blocks": COUNT, "unseen_share": NUMBER, "median": NUMBER, "sd": NUMBER, "mad": NUMBER, "min": NUMBER,
    "max": NUMBER, "outliers": LIST, "overhead": NUMBER, "overhead_low": NUMBER,
    "overhead_high": NUMBER, "overhead_method": TEXT, "p_holm": NUMBER,
    "equivalent_within": NUMBER, "p_equivalent": NUMBER, "p_non_inferior": NUMBER,
    "effect_size": NUMBER, "effect_low": NUMBER, "effect_high": NUMBER, "effect_of": TEXT, "verdict": TEXT, "meaning": TEXT,
}  # fmt: skip
RUNS = {
    "run_id": TEXT, "variant": TEXT, "condition": TEXT, "is_baseline": FLAG, "repeat": COUNT,
    "state": TEXT, "reason": TEXT, "valid": FLAG, "invalid_reason": TEXT, "job_id": TEXT,
    "start_unix_s": NUMBER, "elapsed_s": NUMBER, "nodes": LIST,
}  # fmt: skip
VALUES = {
    "run_id": TEXT, "variant": TEXT, "condition": TEXT, "metric": TEXT, "unit": TEXT,
    "value": NUMBER, "outlier": FLAG,
}  # fmt: skip
SLOPES = {
    "variant": TEXT, "metric": TEXT, "unit": TEXT, "factor": TEXT, "per": TEXT, "others": TEXT,
    "slope": NUMBER, "low": NUMBER, "high": NUMBER, "intercept": NUMBER, "n": COUNT,
    "levels": COUNT, "blocks": COUNT, "all_blocks": COUNT, "p_holm": NUMBER, "reason": TEXT,
    "break_place": NUMBER, "break_before": NUMBER, "break_behind": NUMBER, "break_p": NUMBER,
}  # fmt: skip
TOLERANCES = {
    "variant": TEXT, "metric": TEXT, "unit": TEXT, "factor": TEXT, "per": TEXT, "others": TEXT,
    "side": TEXT, "baseline": NUMBER, "state": TEXT, "limit": NUMBER, "low": NUMBER, "high": NUMBER,
    "before": NUMBER, "behind": NUMBER, "returns": NUMBER, "farthest": NUMBER, "levels": COUNT,
    "n_least": COUNT, "n_most": COUNT, "blocks": COUNT, "reason": TEXT,
}  # fmt: skip
NODES = {
    "node": TEXT, "variant": TEXT, "metric": TEXT, "unit": TEXT, "others": TEXT, "median": NUMBER,
    "difference": NUMBER, "low": NUMBER, "high": NUMBER, "n": COUNT, "differs": FLAG, "blocks": COUNT,
    "reason": TEXT,
}  # fmt: skip
SHARES = {
    "variant": TEXT, "condition": TEXT, "baseline": TEXT, "metric": TEXT, "holds": FLAG,
    "broken": LIST,
    **{
        f"{quantity}_{end}": NUMBER
        for quantity in ("difference_s", "throughput_s", "latency_s", "throughput_share", "latency_share")
        for end in ("value", "low", "high")
    },
    "bytes_metric": TEXT, "bytes_condition": NUMBER, "bytes_baseline": NUMBER,
    "throughput_of": TEXT, "bytes_per_s_condition": NUMBER, "bytes_per_s_baseline": NUMBER,
    "n_condition": COUNT, "n_baseline": COUNT, "n_transfers_condition": COUNT,
    "n_transfers_baseline": COUNT,
}  # fmt: skip


def make_interval_columns(*names: str) -> dict[str, str]:
    """Return the columns of estimates or means: value and interval."""
    return {f"{name}_{end}": NUMBER for name in names for end in ("value", "low", "high")}


SCALING = {
    "variant": TEXT, "metric": TEXT, "unit": TEXT, "kind": TEXT, "over": LIST, "others": TEXT,
    "reference_scale": NUMBER, "scale": NUMBER, "condition": TEXT, "n": COUNT,
    **make_interval_columns(
        "mean", "speed_up", "efficiency", "serial_fraction", "energy_j", "energy_ratio", "node_hours"
    ),
    "reason": TEXT, "least_efficiency": NUMBER, **make_interval_columns("largest_efficient"),
}  # fmt: skip
LAWS = {
    "variant": TEXT, "metric": TEXT, "others": TEXT, "reference_scale": NUMBER, "law": TEXT,
    **make_interval_columns("serial", "crosstalk", "peak"), "p_misfit": NUMBER, "reason": TEXT,
}  # fmt: skip
OPTIMA = {
    "variant": TEXT, "metric": TEXT, "factor": TEXT, "others": TEXT, "value": NUMBER,
    "low": NUMBER, "high": NUMBER, "allowed": "DOUBLE[]", "tried": "DOUBLE[]",
}  # fmt: skip
PAIRS = ("bytes", "bytes_per_s", "n", "n_transfers")  # columns of SHARES for both sides
FINDINGS = {
    "code": TEXT, "severity": TEXT, "title": TEXT, "text": TEXT, "advice": TEXT, "places": LIST,
}  # fmt: skip


@dataclass(frozen=True)
class Content:
    """What a report can export: relations, LaTeX tables by name, a function for the JSON."""

    relations: Sequence[Relation]
    latex: Mapping[str, str]
    document: Callable[[], dict[str, Any]]


def build_study_content(summary: Summary, findings: Sequence[Finding]) -> Content:
    """Return the content of a study without a paper."""
    return Content(
        build_relations(summary, findings),
        build_latex_tables(summary),
        partial(document, summary, findings),
    )


def build_relations(summary: Summary, findings: Sequence[Finding]) -> list[Relation]:
    """Return the relations, from means (with overheads) to findings."""
    lines = (slope_document(line) for line in fit_factor_lines(summary))
    nodes = (row for one in build_node_comparisons(summary) for row in node_documents(one))
    splits = (split_document(one) for one in build_split_rows(summary))
    curves = build_scaling_curves(summary)
    return [
        build_relation("means", MEANS, map(row_document, summary.rows)),
        Relation("runs", RUNS, list(run_rows(summary))),
        Relation("values", VALUES, list(value_rows(summary))),
        build_relation("slopes", SLOPES, map(flatten, lines)),
        build_relation("tolerances", TOLERANCES, map(tolerance_document, find_tolerances(summary))),
        build_relation("nodes", NODES, nodes),
        build_relation("scaling", SCALING, map(flatten, scaling_rows(curves))),
        build_relation("scaling_laws", LAWS, map(flatten, law_rows(curves))),
        build_relation("optima", OPTIMA, map(optimum_document, find_optima(summary))),
        build_relation("shares", SHARES, (flatten(name_pairs(split)) for split in splits)),
        build_relation("findings", FINDINGS, map(finding_document, findings)),
    ]


def build_relation(
    name: str, columns: dict[str, str], documents: Iterable[Mapping[str, Any]]
) -> Relation:
    """Make a relation from documents; missing keys become null."""
    return Relation(name, columns, [tuple(map(one.get, columns)) for one in documents])


def name_pairs(split: Mapping[str, Any]) -> dict[str, Any]:
    """Name the members of pairs: `n` becomes `n_condition` and `n_baseline`."""
    sides = {name: dict(zip(("condition", "baseline"), split[name], strict=True)) for name in PAIRS}
    return {**split, **sides}


def flatten(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document with nested values added under the keys NAME_PART."""
    cells = dict(found)
    for name, item in found.items():
        if isinstance(item, dict):
            cells |= {f"{name}_{key}": value for key, value in item.items()}
    return cells


def run_rows(summary: Summary) -> Iterator[tuple[object, ...]]:
    for run in summary.data.runs:
        yield (
            run.run_id, run.variant, run.label, run.is_baseline, run.repeat, run.state, run.reason,
            run.valid, run.invalid_reason, run.job_id, run.start_unix_s, run.elapsed_s,
            list(run.nodes),
        )  # fmt: skip


def value_rows(summary: Summary) -> Iterator[tuple[object, ...]]:
    """Yield the values of the runs that count."""
    for row in summary.rows:
        marked = set(row.outliers.indices)
        fixed = (row.group.variant, row.group.label, row.metric.name, row.metric.unit)
        for index, (run_id, value) in enumerate(zip(row.run_ids, row.values, strict=True)):
            yield (run_id, *fixed, value, index in marked)


def export_tables(content: Content, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write files of each format into `folder` and return their paths.

    Raises MissingError if a file cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name in formats for path in WRITERS[name](content, folder)]
    except OSError as error:
        raise MissingError(
            f"{error.filename or folder} cannot be written: {error.strerror}; choose another place "
            "with -o"
        ) from error


def write_csv(content: Content, folder: Path) -> list[Path]:
    """Write NAME.csv; unknown values are empty cells, and lists are JSON."""
    paths = []
    for relation in content.relations:
        paths.append(folder / f"{relation.name}.csv")
        with paths[-1].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(relation.columns)
            writer.writerows([format_cell(value) for value in row] for row in relation.rows)
    return paths


def format_cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


def write_parquet(content: Content, folder: Path) -> list[Path]:
    """Write NAME.parquet."""
    import duckdb

    paths = []
    with duckdb.connect() as connection:
        for relation in content.relations:
            temporary = folder / f".{relation.name}.jsonl"
            with Spool(temporary, relation.columns) as spool:
                for row in relation.rows:
                    spool.write(row)
            paths.append(folder / f"{relation.name}.parquet")
            target = quote_text(str(paths[-1]))
            connection.execute(f"COPY ({spool.select()}) TO {target} (FORMAT parquet)")
            temporary.unlink()
    return paths


def write_json(content: Content, folder: Path) -> list[Path]:
    """Write report.json, as `steelyard report --json` prints it."""
    path = folder / "report.json"
    text = json.dumps(content.document(), indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return [path]


def write_latex(content: Content, folder: Path) -> list[Path]:
    """Write NAME.tex, to be read by \\input."""
    paths = []
    for name, text in content.latex.items():
        paths.append(folder / f"{name}.tex")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


Writer = Callable[[Content, Path], list[Path]]
WRITERS: dict[str, Writer] = {
    "csv": write_csv,
    "parquet": write_parquet,
    "json": write_json,
    "latex": write_latex,
}
