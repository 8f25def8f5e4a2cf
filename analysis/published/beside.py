"""Studies of one's own beside a paper: `steelyard report STUDY [STUDY …] --beside NAME`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find
from steelyard.analysis.published.beside_figures import beside_draws
from steelyard.analysis.published.facts import Known
from steelyard.analysis.published.made_rows import made_rows
from steelyard.analysis.published.paper import Paper, read_paper
from steelyard.analysis.published.printed import (
    Beside,
    beside_values,
    left_out,
    printed_tables,
    value_document,
)
from steelyard.analysis.published.together import told_apart
from steelyard.analysis.published.verdicts import OUTCOMES, Judgement, judge_claims
from steelyard.analysis.report.answer import answer
from steelyard.analysis.report.as_json import document, figure_document
from steelyard.analysis.report.export import (
    COUNT,
    NUMBER,
    TEXT,
    Content,
    relation_of,
    study_content,
)
from steelyard.analysis.report.extras import Extra, Section
from steelyard.analysis.report.figures import Draw, Job, begin
from steelyard.analysis.report.page import redo_commands
from steelyard.analysis.report.tables import Table, moment
from steelyard.analysis.stats.readable import MISSING
from steelyard.analysis.summary.summary import Summary

CLAIMS, NUMBERS, FAULTS = "claims", "printed", "faults"
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
NOT_ASKED = ("Claim", "Missing", "Printed", "From", "Our reading")
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
class BesideReport:
    """All that the command needs."""

    paper: Paper
    summaries: Sequence[Summary]  # the page is the first one's; all are judged together
    judged: Sequence[Judgement]
    values: Sequence[Beside]
    findings: list[Finding]
    draws: Sequence[Draw]

    @property
    def summary(self) -> Summary:
        """Whose page it is."""
        return self.summaries[0]

    @property
    def others(self) -> list[str]:
        """The other studies, by name."""
        return [one.data.meta.study for one in self.summaries[1:]]


def beside_report(summaries: Sequence[Summary], name: str) -> BesideReport:
    """Summaries of studies beside one of papers.names()."""
    paper = read_paper(name)
    known = Known.of([(one, made_rows(one, paper)) for one in told_apart(summaries)])
    judged = sorted(judge_claims(known, paper.claims), key=what_can_be_told)
    values = beside_values(known, paper.values)
    draws = list(beside_draws(known, paper, judged, values))
    return BesideReport(paper, summaries, judged, values, find(summaries[0]), draws)


def what_can_be_told(one: Judgement) -> tuple[bool, int]:
    """Claims that the study has figures for come first; among them what was decided."""
    return not one.seen, OUTCOMES.index(one.outcome)


def extra_of(report: BesideReport) -> Extra:
    """What is added to the page, the claims first."""
    meta = report.summary.data.meta
    files = " ".join(f"{name}.toml" for name in (meta.study, *report.others))
    last = f"steelyard report {files} --beside {report.paper.name}"
    return Extra(
        when=f"Collected {moment(meta.collected_unix_s)} UTC; beside {report.paper.title}",
        answer=[outcome_words(report), *answer(report.summary)],
        sections=[claims_section(report), numbers_section(report), faults_section(report.paper)],
        findings=report.findings,
        redo=[*redo_commands(meta.study)[:-1], last],
    )


def outcome_words(report: BesideReport) -> str:
    """`14 claims of Ruiz et al. 2015, by this study: holds: 3, does not hold: 1, cannot tell: 10.`"""
    counts = Counter(one.outcome for one in report.judged)
    parts = ", ".join(f"{one}: {counts[one]}" for one in OUTCOMES)
    by = "this study" if not report.others else f"{len(report.summaries)} studies"
    return f"{len(report.judged)} claims of {report.paper.short}, by {by}: {parts}."


def claims_section(report: BesideReport) -> Section:
    """Claims with their verdicts, and the figures of the paper's shape."""
    return Section(
        anchor=CLAIMS,
        title=f"Claims of {report.paper.short}",
        sentences=[RULE, *others_words(report)],
        tables=claim_tables(report.judged),
        draws=report.draws,
    )


def others_words(report: BesideReport) -> list[str]:
    """Of which studies claims and numbers are, where there are several."""
    if not report.others:
        return []
    first, others = report.summary.data.meta.study, ", ".join(report.others)
    whose = (
        f"Claims, printed numbers and the figures here are of {first} and of {others}, whose names "
        "stand before their conditions; all else here is of the first."
    )
    return [whose, ACROSS]


def claim_tables(judged: Sequence[Judgement]) -> list[tuple[str, Table]]:
    """A line a claim; apart from them those that the study has nothing for."""
    seen = [seen_cells(one) for one in judged if one.seen]
    others = [unasked_cells(one) for one in judged if not one.seen]
    tables = [
        ("Claims that this study has figures for", Table(HEADINGS, seen)),
        ("Claims that this study cannot tell of", Table(NOT_ASKED, others)),
    ]
    return [(title, table) for title, table in tables if table.rows]


def seen_cells(one: Judgement) -> tuple[str, ...]:
    claim = one.claim
    printed, size = claim.printed or MISSING, one.size or MISSING
    return (claim.words, one.outcome, printed, size, one.reason, claim.place, claim.reading)


def unasked_cells(one: Judgement) -> tuple[str, ...]:
    """Of a claim of no figure the reading is the reason itself."""
    claim = one.claim
    reading = "" if claim.reading == one.reason else claim.reading
    return (claim.words, one.reason, claim.printed or MISSING, claim.place, reading)


def numbers_section(report: BesideReport) -> Section:
    """Printed tables with our numbers beside."""
    tables = printed_tables(report.values)
    sentences = left_out(report.values)
    if not report.values:
        sentences = ["The paper prints no numbers."]
    elif tables:
        sentences = [
            SIZES,
            *sentences,
        ]
    return Section(NUMBERS, "Printed numbers beside ours", sentences, tables)


def faults_section(paper: Paper) -> Section:
    """What in the paper does not agree with itself."""
    rows = [(one.place, one.words) for one in paper.faults]
    return Section(
        FAULTS,
        "What in the paper does not agree with itself",
        ["Found by redoing its arithmetic and by holding its parts against each other."],
        [("What does not agree", Table(("Where", "What"), rows))],
    )


def claim_lines(report: BesideReport) -> str:
    """The claims for a terminal."""
    lines = [*wrapped(outcome_words(report), "", "  "), ""]
    for words in others_words(report):
        lines += [*wrapped(words, "  ", "  "), ""]
    for one in report.judged:
        lines += wrapped(f"{one.outcome}: {one.claim.words}", "", "  ")
        if one.claim.printed:
            ours = f"; ours: {one.size}" if one.size else ""
            lines += wrapped(f"printed: {one.claim.printed}{ours}", "    ", "      ")
        lines += wrapped(one.reason, "    ", "      ")
    measured = sum(one.row is not None for one in report.values)
    lines += ["", f"{measured} of {len(report.values)} printed numbers have ours beside them"]
    lines += [line for one in left_out(report.values) for line in wrapped(one, "  ", "  ")]
    lines += ["", f"what in the paper does not agree with itself: {len(report.paper.faults)}"]
    for fault in report.paper.faults:
        lines += wrapped(f"{fault.place}: {fault.words}", "  ", "    ")
    return "\n".join(lines)


def wrapped(words: str, first: str, rest: str) -> list[str]:
    """At most 80 columns."""
    return textwrap.wrap(
        words, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
    )


def beside_document(report: BesideReport) -> dict[str, Any]:
    """The study's report as JSON, with `beside`."""
    jobs = [Job(CLAIMS, draw) for draw in report.draws]
    with begin(jobs, figure_document) as work:
        found = document(report.summary, report.findings)
        figures = [one for one in work.results() if one is not None]
    return found | {
        "beside": {
            "paper": report.paper.name,
            "title": report.paper.title,
            "studies": [one.data.meta.study for one in report.summaries],
            "rule": RULE,
            "claims": [claim_document(one) for one in report.judged],
            "printed": [value_document(one) for one in report.values],
            "faults": [{"place": one.place, "words": one.words} for one in report.paper.faults],
            "figures": figures,
        }
    }


def claim_document(one: Judgement) -> dict[str, Any]:
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
                "variant": seen.variant,
                "condition": seen.condition,
                "against": seen.against or None,
                "value": seen.value,
                "low": seen.low,
                "high": seen.high,
                "outcome": seen.outcome,
                "words": seen.words,
                "not_as_printed": seen.remark or None,
            }
            for seen in one.seen
        ],
    }


def beside_content(report: BesideReport) -> Content:
    """A study's tables to export, with claims and printed numbers."""
    plain = study_content(report.summary, report.findings)
    claims = [claim_document(one) for one in report.judged]
    printed = [
        value | {"place": " · ".join(one.value.place)}
        for one, value in zip(report.values, map(value_document, report.values), strict=True)
    ]
    more = [
        relation_of(CLAIMS, CLAIM_COLUMNS, claims),
        relation_of(NUMBERS, VALUE_COLUMNS, printed),
    ]
    return Content([*plain.relations, *more], plain.latex, partial(beside_document, report))
