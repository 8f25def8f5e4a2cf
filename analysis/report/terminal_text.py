"""What a report says on the terminal."""

from __future__ import annotations

import textwrap

from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.findings.finding import Finding, Severity
from steelyard.analysis.report.answer import answer
from steelyard.analysis.report.phrases import mean_and_n
from steelyard.analysis.report.scaling import numeric_optima_words, scaling_part
from steelyard.analysis.report.tables import baseline_text
from steelyard.analysis.report.tolerances import tolerance_sentences
from steelyard.analysis.summary.optimum import numeric_optima
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import within
from steelyard.analysis.summary.summary import Summary, is_main
from steelyard.jobscripts.plurals import counted

MAX_CONDITIONS = 12  # of a variant on the terminal
TERMINAL = 80  # columns


def format_summary(summary: Summary, findings: list[Finding]) -> str:
    """What `steelyard report` prints, 80 columns wide: the answer, then each variant's overheads."""
    meta = summary.data.meta
    counts = [group.counts for group in summary.groups]
    done, failed = sum(c.completed for c in counts), sum(c.failed for c in counts)
    cancelled = sum(c.cancelled for c in counts)
    lines = [
        f"{meta.study}: {done} of {counted(len(summary.data.runs), 'run')} completed, {failed} failed"
        + (f", {cancelled} cancelled" if cancelled else ""),
        f"baseline: {baseline_words(summary)}",
    ]
    lines += ["", "answer:", *(paragraph(text) for text in answer(summary))]
    if far := tolerance_sentences(summary):
        lines += ["", "how far:", *map(paragraph, far)]
    lines += scaling_lines(summary)
    for variant in summary.variants:
        lines += ["", variant, *variant_lines(summary, variant)]
    lines += [
        "",
        "n = runs of the condition + runs of the baseline; 95 % intervals in brackets;",
        "differences are those that stay significant after Holm's correction",
    ]
    return "\n".join([*lines, *finding_lines(findings)])


def scaling_lines(summary: Summary) -> list[str]:
    """Speed-ups, efficiencies and the best levels of numeric factors."""
    part, optima = scaling_part(summary), numeric_optima_words(numeric_optima(summary))
    sentences = [*(part.sentences if part else ()), *optima]
    return ["", "scaling:", *(paragraph(text) for text in sentences)] if sentences else []


def paragraph(text: str) -> str:
    """As wide as a terminal, later lines indented further; a number keeps its percent sign."""
    return textwrap.fill(
        text.replace(" %", "\u00a0%"),
        TERMINAL,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    ).replace("\u00a0", " ")


def baseline_words(summary: Summary) -> str:
    meta = summary.data.meta
    if not meta.factors:
        return "none, since there are no factors"
    if within(meta) == [NODE]:
        return "none: nodes are compared with their median"
    return baseline_text(meta) or "none named"


def variant_lines(summary: Summary, variant: str) -> list[str]:
    """The baseline's means, then each condition's overheads, names in a column."""
    rows = [r for r in summary.rows if r.group.variant == variant and is_main(r) and is_shown(r)]
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
        lines += (wrapped(f"    {row.metric.name:<{width}}  ", row_words(row)) for row in members)
    if len(by_label) > MAX_CONDITIONS:
        lines.append(
            f"  … and {counted(len(by_label) - MAX_CONDITIONS, 'more condition')} in the report"
        )
    return lines


def wrapped(name: str, words: str) -> str:
    """Words beside a name, on as many lines as a terminal takes."""
    indent = " " * len(name)
    return textwrap.fill(
        words, TERMINAL, initial_indent=name, subsequent_indent=indent, break_on_hyphens=False
    )


def is_shown(row: Row) -> bool:
    """Whether a line says anything: a metric that nobody measured does not."""
    return bool(row.values) or row.metric.is_primary


def row_words(row: Row) -> str:
    return mean_and_n(row) if row.verdict is None else row.verdict.text


def finding_lines(findings: list[Finding]) -> list[str]:
    """One line a finding; the report has places and advice."""
    if not findings:
        return []
    width = max(len(severity.value) for severity in Severity)
    return ["", "findings:"] + [
        f"  {f.kind.code} {f.kind.severity.value:<{width}} {f.kind.title}" for f in findings
    ]
