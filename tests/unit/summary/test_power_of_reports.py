"""The power that `check` promises is that of the report's own verdict, by simulated studies."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest

from steelyard.analysis.stats.planning import least_detectable_difference
from steelyard.analysis.summary.earlier_runs import MeasuredCost, add_row
from steelyard.analysis.summary.study_data import Meta, Metric, StudyData
from steelyard.analysis.summary.study_run import Run
from steelyard.analysis.summary.summary import Direction, build_summary

STUDIES = 300
SPREAD = 0.05


def is_told(
    chance: np.random.Generator, repeats: int, blocks: int, labels: list[str], figures: int
) -> bool:
    """Whether the first figure of the first condition is reported as worse, as expected."""
    tests = (len(labels) - 1) * figures
    difference = least_detectable_difference(repeats, 0.05 / tests, blocks)
    assert difference is not None
    runs, values = [], {}
    for repeat in range(repeats):
        luck = 1 + 0.2 * chance.standard_normal() if blocks >= repeats else 1.0
        for label in labels:
            number = len(runs)
            runs.append(
                Run(
                    f"r{number}", repeat % blocks + 1, number, "x", "x", {"f": label}, label,
                    label == "base", repeat, 1, "a", "completed", None, True, None, str(number),
                    float(number), 1.0, ("n1",),
                )
            )  # fmt: skip
            for figure in range(figures):
                slower = difference * SPREAD if (label, figure) == (labels[1], 0) else 0.0
                value = luck - 1 + 1 + slower + SPREAD * chance.standard_normal()
                values.setdefault(("x", label, f"m{figure}"), {})[f"r{number}"] = float(value)
    meta = Meta("s", 1, None, None, "0", 0.0, {"f": "base"}, {"f": labels})
    metrics = [Metric(f"m{figure}", "s", "lower", True) for figure in range(figures)]
    data = StudyData(Path("none"), meta, runs, {"x": metrics}, values, [], [])
    row = build_summary(data).row("x", labels[1], "m0")
    return row is not None and row.verdict is not None and row.verdict.direction is Direction.WORSE


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("repeats", "blocks", "conditions", "figures"),
    [(10, 10, 1, 1), (10, 5, 1, 1), (10, 2, 1, 1), (15, 15, 2, 1), (10, 5, 1, 3)],
)
def test_four_studies_of_five_tell_the_difference(
    repeats: int, blocks: int, conditions: int, figures: int
) -> None:
    """80 % and what chance leaves of 300 studies: three standard errors of 2.3 %."""
    chance = np.random.default_rng(4)
    labels = ["base", *(f"c{number}" for number in range(conditions))]
    hits = sum(is_told(chance, repeats, blocks, labels, figures) for _ in range(STUDIES))
    assert 0.73 * STUDIES <= hits <= 0.87 * STUDIES


def test_what_conditions_differ_by_is_no_spread() -> None:
    """Physical nodes 10 s, virtual ones 20 s, both with 1 %: pooled 34 % was told."""
    chance, found = np.random.default_rng(1), {}
    sides = {"physical": 10.0, "virtual": 20.0}
    values = {name: mean * (1 + 0.01 * chance.standard_normal(10)) for name, mean in sides.items()}
    for name, side in values.items():
        for value in side.tolist():
            row = ("app", "{}", f'{{"node_type": "{name}"}}', value, None, {"seconds": value})
            add_row(found, "trial", row)
    seen: MeasuredCost = found["app", "{}"]
    spread = seen.spread("seconds")
    assert spread is not None and spread.runs == 20
    shares = [side.std(ddof=1) / side.mean() for side in values.values()]
    assert spread.share == pytest.approx(statistics.fmean(s**2 for s in shares) ** 0.5)
    assert len(seen.elapsed_s) == 20
