"""Which conditions a claim sets beside each other: pairs that differ in nothing but what it compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from steelyard.analysis.published.facts import Known, fits, only_differ_in
from steelyard.analysis.published.paper import Claim, Facts
from steelyard.analysis.summary.factor_axes import axes
from steelyard.analysis.summary.slopes import FactorLine
from steelyard.analysis.summary.summary import Row, Summary

Pair = tuple[Row, Row]


def pairs_of(known: Known, claim: Claim, more: Facts) -> list[Pair]:
    """Of the first metric that has any, or of each; the paper's own sizes alone, where there are any."""
    found: list[Pair] = []
    for metric in claim.metric:
        if not found or claim.all_metrics:
            found += pairs_in(known, claim, metric, more)
    exact = [pair for pair in found if fits(known.of_row(pair[0]), claim.size)]
    return exact or found


def pairs_in(known: Known, claim: Claim, metric: str, more: Facts) -> Iterator[Pair]:
    """In the row's own study; where that has no other side, with another study's."""
    names = {*claim.level, *claim.against}
    rows = known.rows.get(metric, [])
    ours = [r for r in rows if fits(known.of_row(r), {**claim.where, **claim.level, **more})]
    theirs = [r for r in rows if fits(known.of_row(r), {**claim.where, **claim.against})]
    for row in ours:
        bases = [
            base
            for base in theirs
            if base is not row and only_differ_in(known.of_row(row), known.of_row(base), names)
        ]
        own = [base for base in bases if known.home(base) is known.home(row)]
        yield from ((row, base) for base in own or bases)


def across(known: Known, row: Row, base: Row) -> Iterator[str]:
    """What is not alike in sides of two studies."""
    if known.home(row) is known.home(base):
        return
    yield "of two studies, which did not take turns"
    ours, theirs = processors(known, row), processors(known, base)
    if ours != theirs:
        yield f"on {' and '.join(sorted(ours))} against {' and '.join(sorted(theirs))}"


def processors(known: Known, row: Row) -> set[str]:
    """Models of the nodes that a row's runs had, where records tell."""
    runs = set(row.run_ids)
    records = known.home(row).data.records
    return {one.cpu_model or "unknown processors" for one in records if one.run_id in runs}


def twins(known: Known, pair: Pair, others: Sequence[Pair], names: set[str]) -> list[Pair]:
    """Of other pairs those whose sides differ from this one's in these facts alone."""
    found = [other for other in others if all(
        only_differ_in(known.of_row(a), known.of_row(b), names)
        for a, b in zip(pair, other, strict=True)
    )]  # fmt: skip
    return [other for other in found if known.home(other[0]) is known.home(pair[0])] or found


def rows_on(known: Known, summary: Summary, line: FactorLine) -> list[Row]:
    """The rows that a line goes through."""
    members = []
    for axis in axes(summary.data.meta.factors):
        if (axis.factor, axis.unit) == (line.factor, line.factor_unit):
            members += [
                row
                for row in known.rows.get(line.metric, [])
                if known.home(row) is summary
                and row.group.variant == line.variant
                and axis.place(row.group.condition) is not None
                and axis.others(row.group.condition) == line.others
            ]
    return members
