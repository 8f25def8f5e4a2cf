"""Converts every number of a report to plain values; null is not known, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.figures import figure_jobs, start_drawing
from steelyard.analysis.report.latency_share import split_document
from steelyard.analysis.report.network import network_document
from steelyard.analysis.report.node_comparisons import node_documents
from steelyard.analysis.report.scaling_document import optimum_document, scaling_document
from steelyard.analysis.report.tolerated_levels import tolerance_document
from steelyard.analysis.stats.basics import unseen_share
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
