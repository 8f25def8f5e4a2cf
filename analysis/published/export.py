"""Tables and JSON of published data: a study's own, conclusions, averages, and every measurement."""

from __future__ import annotations

from functools import partial

from steelyard.analysis.published.figures import COLUMNS, published_rows
from steelyard.analysis.published.findings import check_averages
from steelyard.analysis.published.report import (
    PublishedReport,
    average_document,
    averages_section,
    conclusion_document,
    conclusions_section,
    published_document,
)
from steelyard.analysis.report.as_latex import plain_table
from steelyard.analysis.report.export import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Content,
    Relation,
    relation_of,
    study_content,
)

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


def published_content(report: PublishedReport) -> Content:
    """A study's relations and tables, and those that only published data have."""
    plain = study_content(report.summary, report.findings)
    return Content(
        [*plain.relations, *published_relations(report)],
        {**plain.latex, **published_latex(report)},
        partial(published_document, report),
    )


def published_relations(report: PublishedReport) -> list[Relation]:
    """conclusions, their comparisons, averages; measurements: the numbers of the figures redone."""
    conclusions = [conclusion_document(one) for one in report.tested]
    comparisons = [
        {"sentence": one["sentence"], **comparison}
        for one in conclusions
        for comparison in one["comparisons"]
    ]
    averages = map(average_document, check_averages(report.published))
    return [
        relation_of("conclusions", CONCLUSIONS, conclusions),
        relation_of("comparisons", COMPARISONS, comparisons),
        relation_of("averages", AVERAGES, averages),
        Relation("measurements", MEASUREMENTS, list(published_rows(report.published))),
    ]


def published_latex(report: PublishedReport) -> dict[str, str]:
    """The page's tables of conclusions, comparisons and averages."""
    sections = conclusions_section(report), averages_section(report.published)
    tables = [table for section in sections for table in section.tables]
    return {
        name: plain_table(name, caption, found)
        for name, (caption, found) in zip(LATEX, tables, strict=True)
    }
