"""The study's answer in words, for the report's head and for the terminal."""

from __future__ import annotations

import textwrap
from collections import Counter

from steelyard.analysis.findings.finding import Finding, Severity, counted
from steelyard.analysis.stats.overhead import Direction
from steelyard.analysis.stats.readable import mean_words
from steelyard.analysis.summary.energy_metrics import METRICS as ENERGY_SHARES
from steelyard.analysis.summary.summary import Row, Summary

# Of every run, shares where they were asked for; shown beside a benchmark's own figures.
MAIN = ("elapsed_s", "energy_j", *ENERGY_SHARES, "cpu_s")

MAX_CONDITIONS = 12  # of a variant on the terminal
TERMINAL = 80  # columns
MAX_MEANS = 3  # of a study without comparisons, in its answer

JUDGED = (Direction.WORSE, Direction.BETTER, Direction.DIFFERENT)


def is_main(row: Row) -> bool:
    """Whether a metric stands in the first tables."""
    return row.metric.is_primary or row.metric.name in MAIN


def answer(summary: Summary) -> list[str]:
    """What the study found, in about three sentences."""
    return [text for text in (largest(summary), tally(summary), energy(summary)) if text]


def size(row: Row) -> float:
    return abs(row.overhead.value) if row.overhead and row.overhead.value is not None else -1.0


def sentence(row: Row) -> str:
    """`filesystem test=x under clients=2: seconds slower by …`."""
    words = row.verdict.text if row.verdict else ""
    return f"{row.group.variant} under {row.group.label}: {row.metric.name} {words}"


def largest(summary: Summary) -> str:
    """The largest overheads that are shown, of the benchmarks' main figures."""
    judged = [row for row in summary.compared(primary=True) if row.verdict]
    rows = [row for row in judged if row.verdict and row.verdict.direction in JUDGED]
    if not judged:
        return uncompared(summary)
    if all(row.verdict and row.verdict.direction is Direction.UNKNOWN for row in judged):
        return "No main figure can be judged against the baseline: the table of overheads says why."
    if not rows:
        return "No main figure was shown to differ from the baseline."
    words = "; ".join(sentence(row) for row in sorted(rows, key=size, reverse=True)[:2])
    which = "The largest overhead" if len(rows) == 1 else "The largest overheads"
    return f"{which} against the baseline: {words}."


def uncompared(summary: Summary) -> str:
    """The means of a study without comparisons, or why there are none."""
    if not summary.data.runs:
        return "The study has no runs: nothing was measured."
    if not any(run.counts for run in summary.data.runs):
        return "No run has given a result that counts: there is nothing to compare."
    rows = [row for row in summary.rows if row.metric.is_primary and row.interval]
    told = "; ".join(mean_sentence(row) for row in rows[:MAX_MEANS])
    words = "Nothing was compared: no condition beside the baseline has a value"
    return f"{words}. {told}." if told else f"{words}."


def mean_sentence(row: Row) -> str:
    """`app: seconds 3.01 ± 0.02 s, n = 20`."""
    where = f"{row.group.variant} under {row.group.label}" if row.group.label else row.group.variant
    return f"{where}: {row.metric.name} {mean_and_n(row)}"


def tally(summary: Summary) -> str:
    """How many comparisons came out how, and on how many runs they rest."""
    runs = summary.data.runs
    done = sum(run.counts for run in runs)
    rested = f"{done} of {counted(len(runs), 'run')} gave a result"
    directions = Counter(r.verdict.direction for r in summary.compared(True) if r.verdict)
    if not directions:
        return f"{rested}."
    words = ", ".join(
        f"{directions[direction]} {direction.value}"
        for direction in (*JUDGED, Direction.NOT_SHOWN, Direction.UNKNOWN)
        if directions[direction]
    )
    number = counted(sum(directions.values()), "comparison")
    return f"Of {number} of a main figure with its baseline: {words}; {rested}."


def energy(summary: Summary) -> str:
    """The largest energy overhead, or why there is none."""
    rows = [row for row in summary.compared() if row.metric.name == "energy_j" and size(row) >= 0]
    if rows:
        return f"Energy, where it differs most: {sentence(max(rows, key=size))}."
    shares = [row for row in summary.compared() if row.metric.name == ENERGY_SHARES[0]]
    if shares:
        row = next((r for r in shares if r.verdict and r.verdict.direction in JUDGED), shares[0])
        where = f"{row.group.variant} under {row.group.label}"
        words = row.verdict.text if row.verdict else ""
        return f"Energy, the jobs' own above idle: {where}: {words}."
    reasons = Counter(r.no_energy_reason for r in summary.data.records if r.no_energy_reason)
    if reasons:
        return f"No energy can be compared: {reasons.most_common(1)[0][0].rstrip('.')}."
    measured = [row for row in summary.rows if row.metric.name == "energy_j" and row.interval]
    if measured:
        return f"Energy, compared with nothing: {mean_sentence(measured[0])}."
    return "No energy can be compared: no record has any."


def terminal(summary: Summary, findings: list[Finding]) -> str:
    """What `steelyard report` prints: per variant the overheads in words, 80 columns wide."""
    meta = summary.data.meta
    counts = [group.counts for group in summary.groups]
    done, failed = sum(c.completed for c in counts), sum(c.failed for c in counts)
    lines = [
        f"{meta.study}: {done} of {len(summary.data.runs)} runs completed, {failed} failed",
        f"baseline: {baseline_words(summary)}",
    ]
    for variant in summary.variants:
        lines += ["", variant, *variant_lines(summary, variant)]
    lines += [
        "",
        "n = runs of the condition + runs of the baseline; 95 % intervals in brackets;",
        "a difference is told when its test holds among all comparisons, too (Holm)",
    ]
    return "\n".join([*lines, *finding_lines(findings)])


def baseline_words(summary: Summary) -> str:
    meta = summary.data.meta
    if not meta.factors:
        return "none, since there are no factors"
    return ", ".join(f"{name}={level}" for name, level in meta.baseline.items()) or "none named"


def variant_lines(summary: Summary, variant: str) -> list[str]:
    """The baseline's means, then each condition's overheads, names in a column."""
    rows = [r for r in summary.rows if r.group.variant == variant and is_main(r) and shown(r)]
    if not rows:
        return ["  no values"]
    width = max((len(row.metric.name) for row in rows), default=0)
    by_label: dict[str, list[Row]] = {}
    for row in rows:
        by_label.setdefault(row.group.label, []).append(row)
    lines: list[str] = []
    for label, members in list(by_label.items())[:MAX_CONDITIONS]:
        is_base = summary.data.meta.factors and label == members[0].group.baseline_label
        base = " (baseline)" if is_base else ""
        lines.append(f"  {label or 'all runs'}{base}")
        lines += (wrapped(f"    {row.metric.name:<{width}}  ", row_words(row)) for row in members)
    if len(by_label) > MAX_CONDITIONS:
        lines.append(f"  … and {len(by_label) - MAX_CONDITIONS} more conditions in the report")
    return lines


def wrapped(name: str, words: str) -> str:
    """Words beside a name, on as many lines as a terminal takes."""
    indent = " " * len(name)
    return textwrap.fill(
        words, TERMINAL, initial_indent=name, subsequent_indent=indent, break_on_hyphens=False
    )


def shown(row: Row) -> bool:
    """Whether a line says anything: a metric that nobody measured does not."""
    return bool(row.values) or row.metric.is_primary


def row_words(row: Row) -> str:
    return mean_and_n(row) if row.verdict is None else row.verdict.text


def mean_and_n(row: Row) -> str:
    """`800 ± 32 ms, n = 5`."""
    if row.interval is None:
        return "no values"
    return f"{mean_words(row.interval, row.metric.unit)}, n = {row.n_words}"


def finding_lines(findings: list[Finding]) -> list[str]:
    """One line a finding; the report has places and advice."""
    if not findings:
        return []
    width = max(len(severity.value) for severity in Severity)
    return ["", "findings:"] + [
        f"  {f.kind.code} {f.kind.severity.value:<{width}} {f.kind.title}" for f in findings
    ]
