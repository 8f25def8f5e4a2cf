"""The pairs of conditions that a claim compares: they differ in nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from steelyard.analysis.papers.claims import Claim, Facts
from steelyard.analysis.papers.conditions import Studies, has_facts, is_equal_except
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import StudyData
from steelyard.analysis.summary.summary import Summary, build_summary

Pair = tuple[Row, Row]  # the condition, and what it is compared with
BLOCKS = 1_000_000  # more than a study has


def find_pairs(studies: Studies, claim: Claim, more: Facts) -> list[Pair]:
    """Of the first metric with any pair, or of each; of the paper's own sizes alone, where there are any.

    `more`: further facts of the condition."""
    found: list[Pair] = []
    for metric in claim.metrics:
        if not found or claim.every_metric:
            found += find_metric_pairs(studies, claim, metric, more)
    exact = [pair for pair in found if has_facts(studies.find_facts(pair[0]), claim.size)]
    return exact or found


def find_metric_pairs(studies: Studies, claim: Claim, metric: str, more: Facts) -> Iterator[Pair]:
    """Within a row's own study; with another study's where its own does not have the other side."""
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
    """The rows that are of the same study as `row`."""
    return [other for other in others if studies.find_study(other) is studies.find_study(row)]


def find_twins(studies: Studies, pair: Pair, others: Sequence[Pair], names: set[str]) -> list[Pair]:
    """Of other pairs those that differ from this one in these facts alone; of its own study, if any."""
    found = [other for other in others if all(
        is_equal_except(studies.find_facts(a), studies.find_facts(b), names)
        for a, b in zip(pair, other, strict=True)
    )]  # fmt: skip
    return [other for other in found if select_same_study(studies, pair[0], other[:1])] or found


def describe_study_differences(studies: Studies, row: Row, base: Row) -> Iterator[str]:
    """What a pair of two studies does not have in common."""
    if studies.find_study(row) is studies.find_study(base):
        return
    yield "of two studies, which did not take turns"
    ours, theirs = list_processors(studies, row), list_processors(studies, base)
    if ours != theirs:
        yield f"on {' and '.join(sorted(ours))} against {' and '.join(sorted(theirs))}"


def list_processors(studies: Studies, row: Row) -> set[str]:
    """Models of the processors that a row's runs had, where records have them."""
    runs = set(row.run_ids)
    records = studies.find_study(row).data.records
    return {one.cpu_model or "unknown processors" for one in records if one.run_id in runs}


# --- several studies -----------------------------------------------------------------------------


def label_summaries(summaries: Sequence[Summary]) -> list[Summary]:
    """Several studies with labels that begin with the study's name, and blocks that no two share."""
    if len(summaries) == 1:
        return list(summaries)
    return [build_summary(label_data(one.data, place)) for place, one in enumerate(summaries)]


def label_data(data: StudyData, place: int) -> StudyData:
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
