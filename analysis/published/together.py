"""Several studies of one paper, told apart: labels begin with the study, and no block is in two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.summary.load import StudyData
from steelyard.analysis.summary.summary import Summary, summary_of

BLOCKS = 1_000_000  # more than a study has


def told_apart(summaries: Sequence[Summary]) -> list[Summary]:
    """As they are, where there is one only; their names are known to differ."""
    if len(summaries) == 1:
        return list(summaries)
    return [summary_of(named(one.data, place)) for place, one in enumerate(summaries)]


def named(data: StudyData, place: int) -> StudyData:
    """A study with its name before each condition, and blocks that no other study has: what runs of
    two studies have in a block's number alone pairs nothing."""
    name = data.meta.study
    runs = [
        replace(
            run,
            label=with_study(name, run.label),
            block=None if run.block is None else run.block + BLOCKS * place,
        )
        for run in data.runs
    ]
    values = {
        (variant, with_study(name, label), metric): found
        for (variant, label, metric), found in data.values.items()
    }
    return replace(data, runs=runs, values=values)


def with_study(name: str, label: str) -> str:
    """`ruiz2015-q2: launcher=bare`."""
    return f"{name}: {label}"
