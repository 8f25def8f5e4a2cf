"""Finds the pairs of conditions that a claim compares, which differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from steelyard.analysis.papers.claim_files import Claim, Facts
from steelyard.analysis.papers.conditions import Studies, has_facts, is_equal_except
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import StudyData
from steelyard.analysis.summary.summary import Summary, build_summary

Pair = tuple[Row, Row]  # the condition, and what it is compared with
BLOCKS = 1_000_000  # more than a study has


def find_pairs(studies: Studies, claim: Claim, more: Facts) -> list[Pair]:
    """Return the pairs of the first metric with any, or of each metric.

    If there are pairs of the paper's own sizes, only these are returned. `more` has further facts
    of the condition.
    """
    found: list[Pair] = []
    for metric in claim.metrics:
        if not found or claim.every_metric:
            found += find_metric_pairs(studies, claim, metric, more)
    exact = [pair for pair in found if has_facts(studies.find_facts(pair[0]), claim.size)]
    return exact or found


def find_metric_pairs(studies: Studies, claim: Claim, metric: str, more: Facts) -> Iterator[Pair]:
    """Yield pairs within a row's own study, or with another study if its own lacks the other
    side.
    """
    names = {*claim.level, *claim.against}
    rows = studies.rows.get(metric, [])
    level = {**claim.where, **claim.level, **more}
    against = {**claim.where, **claim.against}
    possible_bases = [base for base in rows if has_facts(studies.find_facts(base), against)]
    for row in rows:
        facts = studies.find_facts(row)
        if not has_facts(facts, level):
            continue
        bases = [
            base
            for base in possible_bases
            if base is not row and is_equal_except(facts, studies.find_facts(base), names)
        ]
        yield from ((row, base) for base in select_same_study(studies, row, bases) or bases)


def select_same_study(studies: Studies, row: Row, others: Sequence[Row]) -> list[Row]:
    """Return the rows of the same study as `row`."""
    return [other for other in others if studies.find_study(other) is studies.find_study(row)]


def find_twins(studies: Studies, pair: Pair, others: Sequence[Pair], names: set[str]) -> list[Pair]:
    """Return the pairs that differ from this one only in `names`; those of its own study, if
    any.
    """
    found = [other for other in others if all(
        is_equal_except(studies.find_facts(a), studies.find_facts(b), names)
        for a, b in zip(pair, other, strict=True)
    )]  # fmt: skip
    return [other for other in found if select_same_study(studies, pair[0], other[:1])] or found


def describe_study_differences(studies: Studies, row: Row, base: Row) -> Iterator[str]:
    """Yield the differences of a pair from two studies."""
    if studies.find_study(row) is studies.find_study(base):
        return
    yield "of two studies, which did not take turns"
    ours, theirs = list_processors(studies, row), list_processors(studies, base)
    if ours != theirs:
        yield f"on {' and '.join(sorted(ours))} against {' and '.join(sorted(theirs))}"


def list_processors(studies: Studies, row: Row) -> set[str]:
    """Return the processor models of a row's runs, as far as there are records."""
    runs = set(row.run_ids)
    records = studies.find_study(row).data.records
    return {one.cpu_model or "unknown processors" for one in records if one.run_id in runs}


# --- several studies -----------------------------------------------------------------------------


def label_summaries(summaries: Sequence[Summary]) -> list[Summary]:
    """Prefix the labels of several studies with the study's name, and make their blocks
    distinct.
    """
    if len(summaries) == 1:
        return list(summaries)
    return [build_summary(label_data(one.data, index)) for index, one in enumerate(summaries)]


def label_data(data: StudyData, index: int) -> StudyData:
    """Return a study's data with its name in labels and blocks shifted, so that blocks never
    pair.
    """
    study = data.meta.study
    runs = [
        replace(
            run,
            label=f"{study}: {run.label}",
            block=None if run.block is None else run.block + BLOCKS * index,
        )
        for run in data.runs
    ]
    values = {
        (variant, f"{study}: {label}", metric): found
        for (variant, label, metric), found in data.values.items()
    }
    return replace(data, runs=runs, values=values)
