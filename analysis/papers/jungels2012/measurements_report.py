"""`report --preset jungels2012`: the thesis' own measurements as a page, JSON and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all, sort_by_severity
from steelyard.analysis.papers.conditions import format_facts
from steelyard.analysis.papers.jungels2012.conclusions import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_SHOWN,
    Comparison,
    Tested,
    judge_conclusions,
    read_conclusions,
)
from steelyard.analysis.papers.jungels2012.measurement_findings import (
    CheckedAverage,
    check_averages,
    find_in_thesis,
    format_counts,
)
from steelyard.analysis.papers.jungels2012.thesis_figures import (
    COLUMNS,
    measurement_rows,
    thesis_draws,
)
from steelyard.analysis.papers.jungels2012.thesis_study import (
    NAME,
    Measurements,
    read_measurements,
)
from steelyard.analysis.report.answer import describe_costs, describe_counts
from steelyard.analysis.report.export import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Content,
    Relation,
    build_relation,
    build_study_content,
    document,
    figure_document,
)
from steelyard.analysis.report.figures import Draw, Job, start_drawing
from steelyard.analysis.report.latex_tables import format_plain_table
from steelyard.analysis.report.links import find_anchor, run_anchors
from steelyard.analysis.report.page import Extra, Section
from steelyard.analysis.report.tables import Table, format_p
from steelyard.analysis.stats.number_format import MISSING, count_decimals, format_number
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary

FIGURES = "published-figures"
OUTCOMES = (HOLDS, IN_PART, FAILS, NOT_SHOWN)
PLURAL = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold", NOT_SHOWN: NOT_SHOWN}
# Columns of the exported tables, and their types.
CONCLUSIONS = {
    "sentence": TEXT, "wording": TEXT, "place": TEXT, "expect": TEXT, "outcome": TEXT,
    "agree": COUNT, "oppose": COUNT, "agree_order_allowed_for": COUNT,
}  # fmt: skip
COMPARISONS = {
    "sentence": TEXT, "variant": TEXT, "condition": TEXT, "against": TEXT, "overhead": NUMBER,
    "overhead_low": NUMBER, "overhead_high": NUMBER, "p_holm": NUMBER,
    "p_holm_order_allowed_for": NUMBER, "verdict": TEXT, "meaning": TEXT,
}  # fmt: skip
AVERAGES = {
    "figure": TEXT, "variant": TEXT, "node_type": TEXT, "column": TEXT, "printed": NUMBER, "n": COUNT,
    "mean": NUMBER, "agrees": FLAG, "next_value": NUMBER, "next_value_is_plausible": FLAG,
    "mean_without_iteration": COUNT,
}  # fmt: skip
NUMBERS = ("value", "average_low", "average_high", "average")
COUNTS = ("concurrent_nodes", "iteration", "average_n")
MEASUREMENTS = {
    name: NUMBER if name in NUMBERS else COUNT if name in COUNTS else TEXT for name in COLUMNS
}
LATEX = ("conclusions", "comparisons", "averages")


@dataclass(frozen=True)
class ThesisReport:
    """The data of page, JSON, tables and terminal text."""

    measurements: Measurements
    tested: list[Tested]
    findings: list[Finding]
    draws: Sequence[Draw]

    @property
    def summary(self) -> Summary:
        """The summary of the measurements as a study."""
        return self.measurements.summary

    def describe_outcomes(self) -> str:
        """Return how many conclusions had which outcome."""
        counts = Counter(one.outcome for one in self.tested)
        parts = ", ".join(
            f"{counts[o]} {o if counts[o] == 1 else PLURAL[o]}" for o in OUTCOMES if counts[o]
        )
        return f"Of {len(self.tested)} conclusions held against the data at 95 %: {parts}."

    def extra(self) -> Extra:
        """Return what the page has in addition to a study's own sections."""
        return Extra(
            when="Published 2012-04-18 by G. M. Jungels, Purdue University; values as printed",
            answer=self.answer(),
            sections=[
                conclusions_section(self),
                averages_section(self.measurements),
                figures_section(self.draws),
            ],
            findings=self.findings,
            redo=[f"steelyard report --preset {NAME}"],
        )

    def answer(self) -> list[str]:
        """Return costs, counts and conclusions, in sentences."""
        return [
            *describe_costs(self.summary),
            describe_counts(self.summary),
            self.describe_outcomes(),
        ]

    def document(self) -> dict[str, Any]:
        """Return the report as JSON, with conclusions, averages and every figure."""
        jobs = [Job(FIGURES, draw) for draw in self.draws]
        with start_drawing(jobs, figure_document) as work:
            found = document(self.summary, self.findings)
            return found | {
                "preset": NAME,
                "answer": self.answer(),
                "conclusions": [conclusion_document(one) for one in self.tested],
                "averages": [average_document(o) for o in check_averages(self.measurements)],
                "repeated_series": self.measurements.repeated,
                "figures": work.results(),
                "figures_of_any_study": found["figures"],
            }

    def content(self) -> Content:
        """Return a study's tables for export, with conclusions, averages and every measurement."""
        plain = build_study_content(self.summary, self.findings)
        conclusions = [conclusion_document(one) for one in self.tested]
        comparisons = [
            {"sentence": one["sentence"], **comparison}
            for one in conclusions
            for comparison in one["comparisons"]
        ]
        averages = map(average_document, check_averages(self.measurements))
        relations = [
            build_relation("conclusions", CONCLUSIONS, conclusions),
            build_relation("comparisons", COMPARISONS, comparisons),
            build_relation("averages", AVERAGES, averages),
            Relation("measurements", MEASUREMENTS, list(measurement_rows(self.measurements))),
        ]
        sections = conclusions_section(self), averages_section(self.measurements)
        tables = [table for section in sections for table in section.tables]
        latex = {
            name: format_plain_table(name, caption, found)
            for name, (caption, found) in zip(LATEX, tables, strict=True)
        }
        return Content(
            [*plain.relations, *relations], {**plain.latex, **latex}, partial(self.document)
        )


def build_thesis_report(
    measurements: Measurements | None = None, equivalent: float | None = None
) -> ThesisReport:
    """Read and test the measurements; overheads below the share `equivalent` count as none."""
    found = measurements or read_measurements(equivalent=equivalent)
    tested = judge_conclusions(found.summary, read_conclusions())
    findings = sort_by_severity([*find_in_thesis(found, tested), *find_all(found.summary)])
    return ThesisReport(found, tested, findings, list(thesis_draws(found)))


def conclusions_section(report: ThesisReport) -> Section:
    """Return the conclusions, then each comparison that does not show its own."""
    headings = ("Conclusion", "Wording", "From", "At 95 %", "Comparisons", "… order allowed for")
    return Section(
        anchor="conclusions",
        title="Conclusions against the data",
        sentences=[
            (
                "A conclusion holds when all of its comparisons show it (interval and Welch's test with "
                "Holm's correction for all of them together). `ours`: the sentence is our wording of what "
                "averages and figures show; `thesis`: it is printed there."
            ),
            (
                "Order allowed for: how many comparisons still show it when iterations that resemble their "
                "neighbours are not taken for independent ones (effective n, Bayley & Hammersley 1946)."
            ),
        ],
        tables=[
            ("Conclusions", Table(headings, [conclusion_row(one) for one in report.tested])),
            ("Comparisons that do not show what the conclusion says", comparison_table(report)),
        ],
    )


def comparison_table(report: ThesisReport) -> Table:
    """Return the comparisons that do not show their conclusion."""
    anchors = run_anchors(report.summary)
    headings = ("Condition", "Variant", "Against", "Found", "p (Holm)", "Conclusion")
    compared = [
        (one, comparison)
        for one in report.tested
        for comparison in one.comparisons
        if comparison.judged.verdict.direction.value != one.conclusion.expect
    ]
    rows = [comparison_row(one, comparison) for one, comparison in compared]
    return Table(
        headings, rows, [find_anchor(anchors, comparison.row) for _, comparison in compared]
    )


def conclusion_row(one: Tested) -> tuple[str, ...]:
    conclusion = one.conclusion
    ordered = f"{one.agree_ordered} of {len(one.comparisons)}"
    return (
        conclusion.sentence,
        conclusion.wording,
        conclusion.place,
        one.outcome,
        format_counts(one),
        ordered,
    )


def comparison_row(one: Tested, comparison: Comparison) -> tuple[str, ...]:
    row, judged = comparison.row, comparison.judged
    return (
        row.group.label,
        row.group.variant,
        format_facts(one.conclusion.against),
        judged.verdict.text,
        format_p(judged.p),
        one.conclusion.sentence,
    )


def averages_section(measurements: Measurements) -> Section:
    """Return the means of the printed values of appendix D with the printed averages."""
    printed = {
        (one.series.variant, one.printed.node_type): one for one in check_averages(measurements)
    }
    rows = [row for row in measurements.summary.rows if row.metric.name == "total"]
    anchors = run_anchors(measurements.summary)
    return Section(
        anchor="averages",
        title="Means of the printed values",
        sentences=["Beside them printed averages that differ; the findings say by what."],
        tables=[
            (
                "NPB class B and XHPL: means of the printed values",
                Table(
                    ("Benchmark", "Node type", "n", "Mean", "95 % interval", "Printed average"),
                    [average_row(row, printed) for row in rows],
                    [find_anchor(anchors, row) for row in rows],
                ),
            )
        ],
    )


def average_row(row: Row, printed: dict[tuple[str, str], CheckedAverage]) -> tuple[str, ...]:
    interval = row.interval
    assert interval is not None  # every series has values
    found = printed.get((row.group.variant, row.group.condition["node_type"]))
    places = count_decimals(interval.mean, interval.half_width) + 1
    ends = MISSING
    if interval.low is not None:
        ends = (
            f"{format_number(interval.low, 1, places)} … {format_number(interval.high, 1, places)}"
        )
    return (
        row.group.variant,
        row.group.condition["node_type"],
        str(row.n),
        f"{format_number(interval.mean, 1, places)} {row.metric.unit}",
        ends,
        found.printed.text if found else MISSING,
    )


def figures_section(draws: Sequence[Draw]) -> Section:
    return Section(
        anchor=FIGURES,
        title="The figures redone",
        sentences=[
            (
                f"{len(draws)} figures: the three file-system tests with 1 to 4 nodes at once, and the "
                "nine benchmarks. How they are put together is ours."
            )
        ],
        draws=draws,
    )


def conclusion_document(one: Tested) -> dict[str, Any]:
    conclusion = one.conclusion
    return {
        "sentence": conclusion.sentence,
        "wording": conclusion.wording,
        "place": conclusion.place,
        "expect": conclusion.expect,
        "outcome": one.outcome,
        "agree": one.agree,
        "oppose": one.oppose,
        "agree_order_allowed_for": one.agree_ordered,
        "comparisons": [
            {
                "variant": c.row.group.variant,
                "condition": c.row.group.label,
                "against": c.base.group.label,
                "overhead": c.judged.overhead and c.judged.overhead.value,
                "overhead_low": c.judged.overhead and c.judged.overhead.low,
                "overhead_high": c.judged.overhead and c.judged.overhead.high,
                "p_holm": c.judged.p,
                "p_holm_order_allowed_for": c.p_ordered,
                "verdict": c.judged.verdict.text,
                "meaning": c.judged.verdict.direction.value,
            }
            for c in one.comparisons
        ],
    }


def average_document(one: CheckedAverage) -> dict[str, Any]:
    return {
        "figure": one.printed.figure,
        "variant": one.series.variant,
        "node_type": one.printed.node_type,
        "column": one.printed.column,
        "printed": float(one.printed.text),
        "n": len(one.series.values),
        "mean": one.mean,
        "agrees": one.is_equal,
        "next_value": one.next_value,
        "next_value_is_plausible": one.is_printed,
        "mean_without_iteration": None if one.omitted_value is None else one.omitted_value + 1,
    }
