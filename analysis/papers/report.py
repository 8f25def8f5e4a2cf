"""Reports studies compared with one of four papers: `steelyard report STUDY [STUDY …] --beside NAME`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.papers.bourilkov2012.paper import PAPER as BOURILKOV
from steelyard.analysis.papers.claims_figure import draw_claims
from steelyard.analysis.papers.conditions import Studies, label_summaries
from steelyard.analysis.papers.jungels2012.paper import PAPER as JUNGELS
from steelyard.analysis.papers.kommeri2016.paper import PAPER as KOMMERI
from steelyard.analysis.papers.paper import Paper
from steelyard.analysis.papers.printed_comparisons import (
    PrintedComparison,
    build_derived_rows,
    build_printed_tables,
    compare_values,
    describe_unmeasured,
    value_document,
)
from steelyard.analysis.papers.ruiz2015.paper import PAPER as RUIZ
from steelyard.analysis.papers.verdicts import OUTCOMES, Verdict, judge_claim
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.export import (
    COUNT,
    NUMBER,
    TEXT,
    Content,
    build_relation,
    build_study_content,
    document,
    figure_document,
)
from steelyard.analysis.report.figures import Draw, Job, start_drawing
from steelyard.analysis.report.page import Extra, Section, list_redo_commands
from steelyard.analysis.report.tables import Table, format_time
from steelyard.analysis.stats.number_format import MISSING
from steelyard.analysis.summary.summary import Summary

PAPERS = {paper.name: paper for paper in (BOURILKOV, JUNGELS, KOMMERI, RUIZ)}


CLAIMS, NUMBERS, CONTRADICTIONS = "claims", "printed", "faults"
WIDTH = 80  # columns of a terminal
RULE = (
    "A claim holds when every 95 % interval in question lies wholly on the claimed side, or within "
    "the claimed size; it does not hold when one lies wholly beyond. Else nobody can tell: an interval "
    "reaches over, or the study has no such conditions or values, and it is said which. The intervals "
    "are not corrected for their number: of 20 claims one may come out by chance."
)
SIZES = (
    "Programs, sizes and machines are not the paper's: how both go up and down can be compared, the "
    "numbers themselves only where nothing stands under “Not as printed”."
)
ACROSS = (
    "Where no study has both sides of a claim they are taken from two, which is said there: such sides "
    "did not take turns. Look at the findings of each study's own report, too."
)
HEADINGS = ("Claim", "Verdict", "Printed", "Our size", "Seen", "From", "Our reading")
UNJUDGED = ("Claim", "Missing", "Printed", "From", "Our reading")
CLAIM_COLUMNS = {
    "words": TEXT, "place": TEXT, "printed": TEXT, "verdict": TEXT, "size": TEXT, "reason": TEXT,
    "study": TEXT, "reading": TEXT,
}  # fmt: skip
VALUE_COLUMNS = {
    "table": TEXT, "place": TEXT, "column": TEXT, "unit": TEXT, "printed": NUMBER, "variant": TEXT,
    "condition": TEXT, "metric": TEXT, "mean": NUMBER, "low": NUMBER, "high": NUMBER, "n": COUNT,
    "remark": TEXT,
}  # fmt: skip


@dataclass(frozen=True)
class ComparisonReport:
    """The data of page, JSON, tables and terminal text."""

    paper: Paper
    summaries: Sequence[Summary]  # the page is that of the first one; all are judged together
    verdicts: Sequence[Verdict]
    values: Sequence[PrintedComparison]
    findings: list[Finding]
    draws: Sequence[Draw]

    @property
    def summary(self) -> Summary:
        """The summary of the study that the page is of."""
        return self.summaries[0]

    @property
    def others(self) -> list[str]:
        """The names of the other studies."""
        return [one.data.meta.study for one in self.summaries[1:]]

    def describe_claims(self) -> str:
        """Return the claims for a terminal."""
        return "\n".join(format_terminal_lines(self))

    def extra(self) -> Extra:
        """Return what the page has in addition to a study's own sections, with the claims first."""
        meta = self.summary.data.meta
        files = " ".join(f"{name}.toml" for name in (meta.study, *self.others))
        last = f"steelyard report {files} --beside {self.paper.name}"
        return Extra(
            when=f"Collected {format_time(meta.collected_unix_s)} UTC; beside {self.paper.title}",
            answer=[describe_outcomes(self), *describe_answer(self.summary)],
            sections=[
                claims_section(self),
                numbers_section(self),
                contradictions_section(self.paper),
            ],
            findings=self.findings,
            redo=[*list_redo_commands(meta.study)[:-1], last],
        )

    def document(self) -> dict[str, Any]:
        """Return the study's report as JSON, with `beside`."""
        jobs = [Job(CLAIMS, draw) for draw in self.draws]
        with start_drawing(jobs, figure_document) as work:
            found = document(self.summary, self.findings)
            figures = [one for one in work.results() if one is not None]
        return found | {
            "beside": {
                "paper": self.paper.name,
                "title": self.paper.title,
                "studies": [one.data.meta.study for one in self.summaries],
                "rule": RULE,
                "claims": [claim_document(one) for one in self.verdicts],
                "printed": [value_document(one) for one in self.values],
                "faults": [
                    {"place": one.place, "words": one.words} for one in self.paper.contradictions
                ],
                "figures": figures,
            }
        }

    def content(self) -> Content:
        """Return a study's tables for export, with claims and printed numbers."""
        plain = build_study_content(self.summary, self.findings)
        claims = [claim_document(one) for one in self.verdicts]
        printed = [
            value_document(one) | {"place": " · ".join(one.value.place)} for one in self.values
        ]
        relations = [
            build_relation(CLAIMS, CLAIM_COLUMNS, claims),
            build_relation(NUMBERS, VALUE_COLUMNS, printed),
        ]
        return Content([*plain.relations, *relations], plain.latex, partial(self.document))


def build_comparison_report(summaries: Sequence[Summary], name: str) -> ComparisonReport:
    """Compare studies with one of PAPERS."""
    paper = PAPERS[name]
    parts = [(one, build_derived_rows(one, paper.metrics)) for one in label_summaries(summaries)]
    studies = Studies.of(parts)
    judged = [judge_claim(studies, claim, paper.kinds) for claim in paper.claims]
    verdicts = sorted(judged, key=rank)
    values = compare_values(studies, paper.values)
    claims: Draw = partial(draw_claims, paper, verdicts)
    draws = [claims, *paper.draws(studies, values)]
    return ComparisonReport(paper, summaries, verdicts, values, find_all(summaries[0]), draws)


def rank(one: Verdict) -> tuple[bool, int]:
    """Return the sort key: claims with evidence first, and among them decided ones."""
    return not one.evidence, OUTCOMES.index(one.outcome)


def describe_outcomes(report: ComparisonReport) -> str:
    """Return `14 claims of Ruiz et al. 2015, by this study: holds: 3, does not hold: 1, …`."""
    counts = Counter(one.outcome for one in report.verdicts)
    parts = ", ".join(f"{one}: {counts[one]}" for one in OUTCOMES)
    by = "this study" if not report.others else f"{len(report.summaries)} studies"
    return f"{len(report.verdicts)} claims of {report.paper.short}, by {by}: {parts}."


def claims_section(report: ComparisonReport) -> Section:
    """Return the claims with their verdicts, and the figures like the paper's."""
    return Section(
        anchor=CLAIMS,
        title=f"Claims of {report.paper.short}",
        sentences=[RULE, *describe_other_studies(report)],
        tables=claim_tables(report.verdicts),
        draws=report.draws,
    )


def describe_other_studies(report: ComparisonReport) -> list[str]:
    """Describe which studies claims and numbers come from, if there are several."""
    if not report.others:
        return []
    first, others = report.summary.data.meta.study, ", ".join(report.others)
    whose = (
        f"Claims, printed numbers and the figures here are of {first} and of {others}, whose names "
        "stand before their conditions; all else here is of the first."
    )
    return [whose, ACROSS]


def claim_tables(verdicts: Sequence[Verdict]) -> list[tuple[str, Table]]:
    """Return a table with a line per claim, and one of claims without evidence."""
    judged = [format_judged_cells(one) for one in verdicts if one.evidence]
    others = [format_unjudged_cells(one) for one in verdicts if not one.evidence]
    tables = [
        ("Claims that this study has figures for", Table(HEADINGS, judged)),
        ("Claims that this study cannot tell of", Table(UNJUDGED, others)),
    ]
    return [(title, table) for title, table in tables if table.rows]


def format_judged_cells(one: Verdict) -> tuple[str, ...]:
    claim = one.claim
    printed, size = claim.printed or MISSING, one.size or MISSING
    return (claim.words, one.outcome, printed, size, one.reason, claim.place, claim.reading)


def format_unjudged_cells(one: Verdict) -> tuple[str, ...]:
    """Return the cells of a claim without evidence; a reading as reason is not repeated."""
    claim = one.claim
    reading = "" if claim.reading == one.reason else claim.reading
    return (claim.words, one.reason, claim.printed or MISSING, claim.place, reading)


def numbers_section(report: ComparisonReport) -> Section:
    """Return the printed tables with our numbers."""
    tables = build_printed_tables(report.values)
    sentences = describe_unmeasured(report.values)
    if not report.values:
        sentences = ["The paper prints no numbers."]
    elif tables:
        sentences = [SIZES, *sentences]
    return Section(NUMBERS, "Printed numbers beside ours", sentences, tables)


def contradictions_section(paper: Paper) -> Section:
    """Return the contradictions within the paper."""
    return Section(
        CONTRADICTIONS,
        "What in the paper does not agree with itself",
        ["Found by redoing its arithmetic and by holding its parts against each other."],
        [("What does not agree", Table(("Where", "What"), paper.contradictions))],
    )


def format_terminal_lines(report: ComparisonReport) -> Iterator[str]:
    """Yield claims, printed numbers and contradictions in lines of WIDTH columns."""
    yield from wrap_text(describe_outcomes(report), "", "  ")
    yield ""
    for paragraph in describe_other_studies(report):
        yield from wrap_text(paragraph, "  ", "  ")
        yield ""
    for one in report.verdicts:
        yield from wrap_text(f"{one.outcome}: {one.claim.words}", "", "  ")
        if one.claim.printed:
            ours = f"; ours: {one.size}" if one.size else ""
            yield from wrap_text(f"printed: {one.claim.printed}{ours}", "    ", "      ")
        yield from wrap_text(one.reason, "    ", "      ")
    measured = sum(one.row is not None for one in report.values)
    yield ""
    yield f"{measured} of {len(report.values)} printed numbers have ours beside them"
    for sentence in describe_unmeasured(report.values):
        yield from wrap_text(sentence, "  ", "  ")
    yield ""
    contradictions = report.paper.contradictions
    yield f"what in the paper does not agree with itself: {len(contradictions)}"
    for fault in contradictions:
        yield from wrap_text(f"{fault.place}: {fault.words}", "  ", "    ")


def wrap_text(text: str, first: str, rest: str) -> list[str]:
    """Wrap text to WIDTH columns."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def claim_document(one: Verdict) -> dict[str, Any]:
    claim = one.claim
    return {
        "words": claim.words,
        "place": claim.place,
        "kind": claim.kind,
        "study": ", ".join(claim.studies),
        "printed": claim.printed or None,
        "printed_share": claim.printed_share,
        "low": claim.low,
        "high": claim.high,
        "reading": claim.reading or None,
        "verdict": one.outcome,
        "size": one.size or None,
        "reason": one.reason,
        "seen": [
            {
                "variant": evidence.variant,
                "condition": evidence.condition,
                "against": evidence.against or None,
                "value": evidence.value,
                "low": evidence.low,
                "high": evidence.high,
                "outcome": evidence.outcome,
                "words": evidence.words,
                "not_as_printed": evidence.remark or None,
            }
            for evidence in one.evidence
        ],
    }
