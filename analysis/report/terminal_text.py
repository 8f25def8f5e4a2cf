"""Formats a report for the terminal."""

from __future__ import annotations

import textwrap

from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.findings.finding import Finding, Severity
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.phrases import format_mean_and_n
from steelyard.analysis.report.scaling import build_scaling_section, describe_numeric_optima
from steelyard.analysis.report.tables import format_baseline
from steelyard.analysis.report.tolerated_levels import build_tolerance_sentences
from steelyard.analysis.summary.optimum import find_numeric_optima
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import list_within_factors
from steelyard.analysis.summary.summary import Summary, is_main
from steelyard.jobscripts.plurals import counted

MAX_CONDITIONS = 12  # per variant on the terminal
TERMINAL = 80  # columns


def format_summary(summary: Summary, findings: list[Finding]) -> str:
    """Return what `steelyard report` prints in 80 columns: the answer, overheads by variant."""
    meta = summary.data.meta
    counts = [group.counts for group in summary.groups]
    done, failed = sum(c.completed for c in counts), sum(c.failed for c in counts)
    cancelled = sum(c.cancelled for c in counts)
    lines = [
        f"{meta.study}: {done} of {counted(len(summary.data.runs), 'run')} completed, {failed} failed"
        + (f", {cancelled} cancelled" if cancelled else ""),
        f"baseline: {describe_baseline(summary)}",
    ]
    lines += ["", "answer:", *(format_paragraph(text) for text in describe_answer(summary))]
    if far := build_tolerance_sentences(summary):
        lines += ["", "how far:", *map(format_paragraph, far)]
    lines += format_scaling(summary)
    for variant in summary.variants:
        lines += ["", variant, *format_variant(summary, variant)]
    lines += [
        "",
        "n = runs of the condition + runs of the baseline; 95 % intervals in brackets;",
        "differences are those that stay significant after Holm's correction",
    ]
    return "\n".join([*lines, *format_findings(findings)])


def format_scaling(summary: Summary) -> list[str]:
    """Return speed-ups, efficiencies and the best levels of numeric factors."""
    section, optima = (
        build_scaling_section(summary),
        describe_numeric_optima(find_numeric_optima(summary)),
    )
    sentences = [*(section.sentences if section else ()), *optima]
    return ["", "scaling:", *(format_paragraph(text) for text in sentences)] if sentences else []


def format_paragraph(text: str) -> str:
    """Wrap text to the terminal's width; a number is not separated from its percent sign."""
    return textwrap.fill(
        text.replace(" %", "\u00a0%"),
        TERMINAL,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    ).replace("\u00a0", " ")


def describe_baseline(summary: Summary) -> str:
    meta = summary.data.meta
    if not meta.factors:
        return "none, since there are no factors"
    if list_within_factors(meta) == [NODE]:
        return "none: nodes are compared with their median"
    return format_baseline(meta) or "none named"


def format_variant(summary: Summary, variant: str) -> list[str]:
    """Return the baseline's means, then each condition's overheads, with names in a column."""
    rows = [r for r in summary.rows if r.group.variant == variant and is_main(r) and has_content(r)]
    if not rows:
        return ["  no values"]
    width = max((len(row.metric.name) for row in rows), default=0)
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(row.group.label, []).append(row)
    lines: list[str] = []
    for label, members in list(by_label.items())[:MAX_CONDITIONS]:
        is_base = summary.data.meta.baseline and label == members[0].group.baseline_label
        base = " (baseline)" if is_base else ""
        lines.append(f"  {label or 'all runs'}{base}")
        lines += (
            wrap_with_heading(f"    {row.metric.name:<{width}}  ", format_row(row))
            for row in members
        )
    if len(by_label) > MAX_CONDITIONS:
        lines.append(
            f"  … and {counted(len(by_label) - MAX_CONDITIONS, 'more condition')} in the report"
        )
    return lines


def wrap_with_heading(name: str, text: str) -> str:
    """Format text next to a name, wrapped to the terminal's width."""
    indent = " " * len(name)
    return textwrap.fill(
        text, TERMINAL, initial_indent=name, subsequent_indent=indent, break_on_hyphens=False
    )


def has_content(row: Row) -> bool:
    """Return whether a line has content: an unmeasured metric has none."""
    return bool(row.values) or row.metric.is_primary


def format_row(row: Row) -> str:
    return format_mean_and_n(row) if row.verdict is None else row.verdict.text


def format_findings(findings: list[Finding]) -> list[str]:
    """Return one line per finding; the report has places and advice."""
    if not findings:
        return []
    width = max(len(severity.value) for severity in Severity)
    return ["", "findings:"] + [
        f"  {f.kind.code} {f.kind.severity.value:<{width}} {f.kind.title}" for f in findings
    ]
