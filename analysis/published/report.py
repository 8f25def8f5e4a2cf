"""What the report of published data has besides a study's own: conclusions, averages, figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import by_gravity, find
from steelyard.analysis.published.conclusions import (
    FAILS,
    HOLDS,
    IN_PART,
    NOT_SHOWN,
    Comparison,
    Tested,
    test_conclusions,
)
from steelyard.analysis.published.figures import published_draws
from steelyard.analysis.published.findings import (
    CheckedAverage,
    check_averages,
    count_words,
    find_published,
)
from steelyard.analysis.published.measurements import Published, read_preset
from steelyard.analysis.report.answer import costs, tally
from steelyard.analysis.report.as_json import document, figure_document
from steelyard.analysis.report.extras import Extra, Section
from steelyard.analysis.report.figures import Draw, Job, begin
from steelyard.analysis.report.links import anchor_of, run_anchors
from steelyard.analysis.report.tables import Table, p_text
from steelyard.analysis.stats.readable import MISSING, decimals, text
from steelyard.analysis.summary.summary import Row, Summary, summary_of

WHEN = {
    "jungels2012": "Published 2012-04-18 by G. M. Jungels, Purdue University; values as printed"
}
FIGURES = "published-figures"
OUTCOMES = (HOLDS, IN_PART, FAILS, NOT_SHOWN)


@dataclass(frozen=True)
class PublishedReport:
    """All that the command needs."""

    published: Published
    tested: list[Tested]
    findings: list[Finding]
    draws: list[Draw]

    @property
    def summary(self) -> Summary:
        return self.published.summary


def published_report(name: str, equivalent: float | None = None) -> PublishedReport:
    """Read and test; overheads of less than `equivalent`, a share, count as none."""
    published = read_preset(name)
    if equivalent is not None:
        summary = summary_of(published.summary.data, equivalent)
        published = replace(published, summary=summary)
    tested = test_conclusions(published)
    findings = by_gravity([*find_published(published, tested), *find(published.summary)])
    return PublishedReport(published, tested, findings, list(published_draws(published)))


def extra_of(report: PublishedReport) -> Extra:
    """What is added to the page."""
    name = report.published.name
    return Extra(
        when=WHEN[name],
        answer=answer(report),
        sections=[
            conclusions_section(report),
            averages_section(report.published),
            figures_section(report.draws),
        ],
        findings=report.findings,
        redo=[f"steelyard report --preset {name}"],
    )


def answer(report: PublishedReport) -> list[str]:
    """In three sentences."""
    summary = report.summary
    return [*costs(summary), tally(summary), outcome_words(report.tested)]


def outcome_words(tested: Sequence[Tested]) -> str:
    """How many conclusions came out how."""
    counts = Counter(one.outcome for one in tested)
    parts = ", ".join(f"{counts[o]} {plural(o, counts[o])}" for o in OUTCOMES if counts[o])
    return f"Of {len(tested)} conclusions held against the data at 95 %: {parts}."


def plural(outcome: str, count: int) -> str:
    """`hold`, where there are several."""
    if count == 1:
        return outcome
    return {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold"}.get(outcome, outcome)


def conclusions_section(report: PublishedReport) -> Section:
    """The conclusions, then each comparison that does not show its own."""
    headings = ("Conclusion", "Wording", "From", "At 95 %", "Comparisons", "… order allowed for")
    return Section(
        anchor="conclusions",
        title="Conclusions against the data",
        sentences=[
            (
                "A conclusion holds when all of its comparisons show it (interval and Welch's test with "
                "Holm's correction for all of them together). `ours`: the sentence is our wording of what "
                "averages and figures show; `thesis`: it stands there."
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


def comparison_table(report: PublishedReport) -> Table:
    """Those that speak against a conclusion, or for nothing."""
    anchors = run_anchors(report.summary)
    headings = ("Condition", "Variant", "Against", "Found", "p (Holm)", "Conclusion")
    shown = [
        (one, comparison)
        for one in report.tested
        for comparison in one.comparisons
        if comparison.judged.verdict.direction.value != one.conclusion.expect
    ]
    rows = [comparison_row(one, comparison) for one, comparison in shown]
    return Table(headings, rows, [anchor_of(anchors, comparison.row) for _, comparison in shown])


def conclusion_row(one: Tested) -> tuple[str, ...]:
    said = one.conclusion
    ordered = f"{one.agree_ordered} of {len(one.comparisons)}"
    return (said.sentence, said.wording, said.place, one.outcome, count_words(one), ordered)


def comparison_row(one: Tested, comparison: Comparison) -> tuple[str, ...]:
    row, base, judged = comparison.row, comparison.base, comparison.judged
    return (
        row.group.label,
        row.group.variant,
        f"{one.conclusion.factor}={base.group.condition[one.conclusion.factor]}",
        judged.verdict.text,
        p_text(judged.p),
        one.conclusion.sentence,
    )


def averages_section(published: Published) -> Section:
    """Means of the printed values of appendix D beside the averages that are printed."""
    printed = {
        (one.series.variant, one.printed.node_type): one for one in check_averages(published)
    }
    rows = [row for row in published.summary.rows if row.metric.name == "total"]
    anchors = run_anchors(published.summary)
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
                    [anchor_of(anchors, row) for row in rows],
                ),
            )
        ],
    )


def average_row(row: Row, printed: dict[tuple[str, str], CheckedAverage]) -> tuple[str, ...]:
    interval = row.interval
    assert interval is not None  # every series has values
    found = printed.get((row.group.variant, row.group.condition["node_type"]))
    places = decimals(interval.mean, interval.half_width) + 1
    ends = MISSING
    if interval.low is not None:
        ends = f"{text(interval.low, 1, places)} … {text(interval.high, 1, places)}"
    return (
        row.group.variant,
        row.group.condition["node_type"],
        str(row.n),
        f"{text(interval.mean, 1, places)} {row.metric.unit}",
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


def published_document(report: PublishedReport) -> dict[str, Any]:
    """The report as JSON, with conclusions, averages and every figure."""
    jobs = [Job(FIGURES, draw) for draw in report.draws]
    with begin(jobs, figure_document) as work:
        found = document(report.summary, report.findings) | {
            "preset": report.published.name,
            "answer": answer(report),
            "conclusions": [conclusion_document(one) for one in report.tested],
            "averages": [average_document(one) for one in check_averages(report.published)],
            "repeated_series": report.published.repeated,
        }
        return found | {
            "figures": work.results(),
            "figures_of_any_study": found["figures"],
        }


def conclusion_document(one: Tested) -> dict[str, Any]:
    said = one.conclusion
    return {
        "sentence": said.sentence,
        "wording": said.wording,
        "place": said.place,
        "expect": said.expect,
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
        "agrees": one.agrees,
        "next_value": one.next_value,
        "next_value_is_plausible": one.fits,
        "mean_without_iteration": None if one.left_out is None else one.left_out + 1,
    }
