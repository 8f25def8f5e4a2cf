"""One file with the answer, tables and figures of a collected study; it opens offline.

Prints the overheads in words. Collect again and report again at any time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.wrappers import console, options, studydir
from steelyard.wrappers.errors import DONE, UsageError

if TYPE_CHECKING:
    from steelyard.analysis.summary import Row, Summary

FORMATS = ("svg", "pdf", "png", "csv")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_study(parser, optional=True)
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, default=Path("report.html"),
        help="where the report goes (report.html)",
    )  # fmt: skip
    parser.add_argument(
        "--figures", metavar="DIR", nargs="?", const="",
        help="also each figure in files of its own; without DIR into figures/ beside the report",
    )  # fmt: skip
    parser.add_argument(
        "--format", metavar="LIST", default=",".join(FORMATS),
        help=f"of these figures, comma-separated: {', '.join(FORMATS)} (all)",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print all numbers as JSON instead; writes no report"
    )


def main(args: argparse.Namespace) -> int:
    """Write the report and print its words."""
    formats = figure_formats(args.format)
    # Here and not above: scipy and duckdb would make `--help` slow.
    from steelyard.analysis.report import write_report
    from steelyard.analysis.summary import summarize

    summary = summarize(studydir.resolve(args.study))
    if args.json:
        console.print_json(document(summary))
        return DONE
    figures = None
    if args.figures is not None:
        figures = Path(args.figures or args.output.parent / "figures")
    paths = write_report(summary, args.output, figures, formats)
    print(words(summary))
    print(f"\nreport: {paths[0]}")
    if figures is not None:
        print(f"figures: {len(paths) - 1} files in {figures}")
    return DONE


def figure_formats(text: str) -> tuple[str, ...]:
    """`svg,png` checked."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in FORMATS:
            raise UsageError(f"--format: unknown '{name}', allowed: {', '.join(FORMATS)}", name)
    if not names:
        raise UsageError(f"--format: expected one or more of {', '.join(FORMATS)}", text)
    return names


def summary_text(study: Path) -> str:
    """The overheads of a study's folder in words, for the terminal."""
    from steelyard.analysis.summary import summarize

    return words(summarize(study))


def words(summary: Summary) -> str:
    from steelyard.analysis.report_words import terminal
    from steelyard.analysis.summary_findings import find

    return terminal(summary, find(summary))


def document(summary: Summary) -> dict[str, Any]:
    """Every number of the report, for programs; null is not known, never 0."""
    from steelyard.analysis.report_words import answer
    from steelyard.analysis.summary_findings import find

    meta = summary.data.meta
    return {
        "format": "steelyard-report",
        "version": 1,
        "study": meta.study,
        "seed": meta.seed,
        "baseline": meta.baseline,
        "factors": meta.factors,
        "toml_sha256": meta.toml_sha256,
        "collected_unix_s": meta.collected_unix_s,
        "answer": answer(summary),
        "rows": [row_document(row) for row in summary.rows],
        "findings": [
            {
                "code": found.kind.code,
                "severity": found.kind.severity.value,
                "title": found.kind.title,
                "text": found.text,
                "advice": found.kind.advice,
                "places": found.places,
            }
            for found in find(summary)
        ],
    }


def row_document(row: Row) -> dict[str, Any]:
    """One metric of one variant and condition."""
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
        "invalid": group.counts.invalid,
        "waiting": group.counts.waiting,
        "without_value": row.missing,
        "n": row.n,
        "mean": interval and interval.mean,
        "low": interval and interval.low,
        "high": interval and interval.high,
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
        "verdict": row.verdict and row.verdict.text,
        "meaning": row.verdict and row.verdict.direction.value,
    }
