"""The pairs of conditions that a claim compares: they differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from steelyard.analysis.papers.claims import Claim, Facts
from steelyard.analysis.papers.conditions import Studies, fits, only_differ_in
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import StudyData
from steelyard.analysis.summary.summary import Summary, summary_of

Pair = tuple[Row, Row]  # the condition, and what it is compared with
BLOCKS = 1_000_000  # more than a study has


def pairs_of(studies: Studies, claim: Claim, more: Facts) -> list[Pair]:
    """Of the first metric with any pair, or of each; of the paper's own sizes alone, where there are any.

    `more`: further facts of the condition."""
    found: list[Pair] = []
    for metric in claim.metrics:
        if not found or claim.every_metric:
            found += pairs_in(studies, claim, metric, more)
    exact = [pair for pair in found if fits(studies.facts_of(pair[0]), claim.size)]
    return exact or found


def pairs_in(studies: Studies, claim: Claim, metric: str, more: Facts) -> Iterator[Pair]:
    """Within a row's own study; with another study's where its own does not have the other side."""
    names = {*claim.level, *claim.against}
    rows = studies.rows.get(metric, [])
    level = {**claim.where, **claim.level, **more}
    against = {**claim.where, **claim.against}
    possible_bases = [base for base in rows if fits(studies.facts_of(base), against)]
    for row in rows:
        facts = studies.facts_of(row)
        if not fits(facts, level):
            continue
        bases = [
            base
            for base in possible_bases
            if base is not row and only_differ_in(facts, studies.facts_of(base), names)
        ]
        yield from ((row, base) for base in of_same_study(studies, row, bases) or bases)


def of_same_study(studies: Studies, row: Row, others: Sequence[Row]) -> list[Row]:
    """The rows that are of the same study as `row`."""
    return [other for other in others if studies.study_of(other) is studies.study_of(row)]


def twins(studies: Studies, pair: Pair, others: Sequence[Pair], names: set[str]) -> list[Pair]:
    """Of other pairs those that differ from this one in these facts alone; of its own study, if any."""
    found = [other for other in others if all(
        only_differ_in(studies.facts_of(a), studies.facts_of(b), names)
        for a, b in zip(pair, other, strict=True)
    )]  # fmt: skip
    return [other for other in found if of_same_study(studies, pair[0], other[:1])] or found


def across_studies(studies: Studies, row: Row, base: Row) -> Iterator[str]:
    """What a pair of two studies does not have in common."""
    if studies.study_of(row) is studies.study_of(base):
        return
    yield "of two studies, which did not take turns"
    ours, theirs = processors(studies, row), processors(studies, base)
    if ours != theirs:
        yield f"on {' and '.join(sorted(ours))} against {' and '.join(sorted(theirs))}"


def processors(studies: Studies, row: Row) -> set[str]:
    """Models of the processors that a row's runs had, where records have them."""
    runs = set(row.run_ids)
    records = studies.study_of(row).data.records
    return {one.cpu_model or "unknown processors" for one in records if one.run_id in runs}


# --- several studies -----------------------------------------------------------------------------


def distinguished(summaries: Sequence[Summary]) -> list[Summary]:
    """Several studies with labels that begin with the study's name, and blocks that no two share."""
    if len(summaries) == 1:
        return list(summaries)
    return [summary_of(labeled(one.data, place)) for place, one in enumerate(summaries)]


def labeled(data: StudyData, place: int) -> StudyData:
    """A study's data so changed: runs of two studies are not paired by the number of their block."""
    study = data.meta.study
    runs = [
        replace(
            run,
            label=f"{study}: {run.label}",
            block=None if run.block is None else run.block + BLOCKS * place,
        )
        for run in data.runs
    ]
    values = {
        (variant, f"{study}: {label}", metric): found
        for (variant, label, metric), found in data.values.items()
    }
    return replace(data, runs=runs, values=values)
