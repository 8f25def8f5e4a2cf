"""Odd values all the way: from a database to the report's words and JSON."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steelyard.wrappers.commands.cli import main

NAN, INF = math.nan, math.inf
STEADY = [10.0, 10.1, 9.9, 10.05, 9.95, 10.2, 9.8, 10.1, 10.0, 9.9, 10.03, 9.97]
LIKE = [10.02, 10.0, 10.1, 9.8, 10.15, 9.93, 10.04, 9.99, 9.9, 10.2, 9.85, 10.05]
COARSE = (
    "cannot be judged: coarse: all runs print the same value ({}, of the baseline {}); "
    "the resolution is {}, and without a spread there is no test"
)
ALIKE = (
    "cannot be judged: coarse: all pairs, or jobs, of a side are alike, and without a spread "
    "there is no test"
)
Values = Sequence[float | None]
Told = Callable[..., dict[str, Any]]


def times(factor: float) -> list[float]:
    """Like STEADY, `factor` times as large."""
    return [value * factor for value in LIKE]


def refuse(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")


@pytest.fixture
def told(synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Told:
    """Return the row of the condition in `steelyard report --json`.

    With `page` it is that of `--export json`, which writes the page, too.
    """

    def report(
        base: Values,
        ours: Values,
        better: str | None = "lower",
        unit: str = "s",
        per_block: int = 1,
        page: bool = False,
    ) -> Any:
        name = f"odd{len(list(tmp_path.iterdir()))}"
        maker = synthetic.StudyMaker(name, {"clients": [1, 2]}, {"clients": 1})
        order = [
            (number, level, value)
            for level, values in ((1, base), (2, ours))
            for number, value in enumerate(values, start=1)
        ]
        for number, level, value in sorted(order, key=lambda one: one[:2]):  # in turns
            block = (number + per_block - 1) // per_block
            run = maker.run("x", {}, {"clients": level}, number, block=block)
            maker.result(run, "figure", value, unit, better)
        folder = str(maker.write(tmp_path))
        if page:
            assert main(["report", folder, "-o", f"{folder}/r.html", "--export", "json"]) == 0
            text = Path(f"{folder}/tables/report.json").read_text(encoding="utf-8")
        else:
            capsys.readouterr()
            assert main(["report", folder, "--json"]) == 0
            text = capsys.readouterr().out
        document = json.loads(text, parse_constant=refuse)
        (row,) = [
            row
            for row in document["rows"]
            if (row["metric"], row["condition"]) == ("figure", "clients=2")
        ]
        return row

    return report


@pytest.mark.parametrize(
    ("base", "ours", "words"),
    [
        (STEADY[:1], LIKE[:1], "cannot be judged: 1 run each"),
        (STEADY[:2], LIKE[:2], "cannot be judged: 2 runs each"),
        (STEADY, LIKE[:2], "cannot be judged: 2 runs"),
        ([], LIKE, "cannot be judged: no runs of the baseline"),
        ([NAN] * 4, LIKE, "cannot be judged: no values of the baseline"),
        (STEADY, [None, NAN, INF], "cannot be judged: no values"),
        ([0.0] * 5, LIKE, "cannot be judged: the baseline's mean is not above 0"),
        ([-1.0, -2.0, -3.0], LIKE, "cannot be judged: the baseline's mean is not above 0"),
        ([-1.0, 1.0, 2.0, -2.0, 0.5], LIKE, "cannot be judged: the baseline is too close to 0"),
        ([2.0] * 5, [2.0] * 5, COARSE.format(2, 2, 1)),
        ([0.01] * 5, [0.02] * 5, COARSE.format(0.02, 0.01, 0.01)),  # 14.9 and 15.1 ms
        ([250000000] * 5, [250000001] * 5, COARSE.format(250000001, 250000000, 1)),
        ([1 / 3] * 5, [0.02] * 5, COARSE.format(0.02, 0.333333333, "not known")),
        ([10.0 + n for n in range(12)], [12.5 + n for n in range(12)],
         ALIKE),
        (STEADY[:5], [0.0] * 5, "faster by 100.0 %, a mean of 0, n = 5 + 5"),
        ([0.0, 0.0, 5.0], [0.0] * 3, "cannot be judged: the baseline is too close to 0"),
        ([*STEADY[:5], NAN], [INF, *LIKE[:4]], "not shown to differ (−2.1 … 1.7 %), n = 4 + 5"),
        (STEADY[:5], [-v for v in STEADY[:5]], "faster by 200.0 % (198.9 … 201.2), n = 5 + 5"),
        (STEADY, [1e300] * 12, "cannot be judged: no values"),
        (STEADY, [1e-300] * 12, "cannot be judged: no values"),
    ],
)  # fmt: skip
def test_odd_values_are_told_as_such(told: Told, base: Values, ours: Values, words: str) -> None:
    assert told(base, ours, page=True)["verdict"] == words


SIZE, LARGER = [1_000_000.0] * 10, [1_020_000.0] * 10


@pytest.mark.parametrize(
    ("base", "ours", "unit", "verdict", "direction"),
    [
        (SIZE, LARGER, "bytes", "exactly higher by 2.00 %, the same in all n = 10 + 10 runs", "worse"),
        (LARGER, SIZE[:3], "B", "exactly lower by 1.96 %, the same in all n = 3 + 10 runs", "better"),
        (SIZE, SIZE, "count", "exactly equal, the same in all n = 10 + 10 runs", "equivalent"),
        ([0.0] * 3, [0.0] * 3, "bytes", "exactly equal, the same in all n = 3 + 3 runs", "equivalent"),
        ([1.0] * 3, [3.0] * 3, "messages",
         "exactly 3 times as high, the same in all n = 3 + 3 runs", "worse"),
    ],
)  # fmt: skip
def test_a_count_that_does_not_vary_is_compared_exactly(
    told: Told, base: Values, ours: Values, unit: str, verdict: str, direction: str
) -> None:
    row = told(base, ours, unit=unit)
    assert (row["verdict"], row["meaning"]) == (verdict, direction)
    assert (row["overhead_low"], row["overhead_high"]) == (row["overhead"], row["overhead"])
    assert row["overhead_method"] == "exact"


@pytest.mark.parametrize(
    ("base", "ours", "unit"),
    [
        (SIZE, LARGER, "s"),  # whole seconds of a clock
        (SIZE, LARGER, "MB"),  # rounded by whoever printed it
        ([1.4] * 5, [1.5] * 5, "bytes"),
        (SIZE[:2], LARGER[:2], "bytes"),
        ([0.0] * 5, LARGER, "bytes"),
    ],
)
def test_equal_values_that_may_be_rounded_are_not(
    told: Told, base: Values, ours: Values, unit: str
) -> None:
    assert told(base, ours, unit=unit)["verdict"].startswith("cannot be judged: ")


def test_whole_numbers_without_a_unit_are_not_and_why(told: Told) -> None:
    row = told(SIZE, LARGER, unit="1")
    assert row["verdict"].endswith(
        '(a count is compared exactly once its unit says so: unit = "count")'
    )


def test_a_count_that_varies_on_one_side_has_an_interval(told: Told) -> None:
    row = told(SIZE, [1_020_000.0, 1_020_001.0] * 5, unit="bytes")
    assert row["overhead_method"] == "Fieller"


def test_what_cannot_be_negative_has_no_negative_bound(told: Told) -> None:
    """elapsed -137 … 1421 % was reported, and -681 kB read."""
    row = told([40.0, 30.0, 50.0, 45.0], [1.0, 80.0, 2.0, 3.0], unit="bytes")
    assert row["low"] == 0.0 and row["overhead_low"] == -1.0
    around = told(STEADY[:4], [-3.0, 5.0, -4.0, 6.0], None, "1")  # a figure that has both signs
    assert around["low"] < 0 and around["overhead_low"] < -1


def test_runs_of_a_block_are_not_taken_for_independent(told: Told) -> None:
    """10 runs in 5 blocks, README's own design."""
    luck = [1.0, 1.0, 1.3, 1.3, 0.8, 0.8, 1.1, 1.1, 0.9, 0.9]
    row = told(times(1.0)[:10], [10 * one + n / 50 for n, one in enumerate(luck)], per_block=2)
    means = [
        statistics.fmean((10 * one + n / 50, 10 * one + (n + 1) / 50))
        for n, one in enumerate(luck)
        if n % 2 == 0
    ]
    half = 2.776445 * statistics.stdev(means) / math.sqrt(5)
    assert (row["n"], row["blocks"], row["jobs"]) == (10, 5, None)
    assert row["mean"] - row["low"] == pytest.approx(half, rel=1e-6)
    assert row["unseen_share"] == pytest.approx(0.2589, abs=1e-4)


def test_without_a_test_there_is_no_verdict(told: Told) -> None:
    row = told([0.01] * 5, [0.02] * 5)
    names = ("overhead", "overhead_low", "overhead_high", "p_holm", "effect_size")
    assert [row[name] for name in names] == [None] * 5
    assert (row["meaning"], row["mean"]) == ("cannot be judged", 0.02)


@pytest.mark.parametrize("n", [5, 12])
@pytest.mark.parametrize("size", [1e-95, 1e-9, 1e12, 1e95])
def test_the_size_of_the_unit_changes_nothing(told: Told, size: float, n: int) -> None:
    row = told([v * size for v in STEADY[:n]], times(1.3 * size)[:n])
    assert row["verdict"].startswith("slower by 3") and row["meaning"] == "worse"
    assert row["overhead_low"] < 0.3 < row["overhead_high"]
    assert row["sd"] == pytest.approx(statistics.stdev(times(1.3 * size)[:n]))
    assert 10 < row["effect_low"] < row["effect_size"] < row["effect_high"]


@pytest.mark.parametrize(
    ("better", "factor", "word", "meaning"),
    [
        ("lower", 1.2, "slower", "worse"),
        ("lower", 0.8, "faster", "better"),
        ("higher", 1.2, "higher", "better"),
        ("higher", 0.8, "lower", "worse"),
        (None, 0.8, "lower", "different"),
    ],
)
def test_directions(told: Told, better: str | None, factor: float, word: str, meaning: str) -> None:
    row = told(STEADY, times(factor), better, "s" if better == "lower" else "Gflop/s")
    assert row["verdict"].startswith(f"{word} by 2") and row["meaning"] == meaning


@pytest.mark.slow
def test_whatever_is_measured_there_is_a_report(told: Told) -> None:
    """Any mixture of values: no crash, no nan, an interval around its value, a difference in order."""
    chance = random.Random(20121129)
    for _ in range(8):
        base, ours = (
            [
                chance.choice([0.0, NAN, INF, None, 1.0, -1.0, chance.gauss(10, 1)])
                if chance.random() < 0.3
                else chance.choice([1, -1, 1, 1]) * 10 ** chance.uniform(-110, 110)
                for _ in range(chance.choice([0, 1, 2, 3, 5, 12, 21]))
            ]
            for _ in range(2)
        )
        row = told(base, [*ours, 1.0])
        assert row["verdict"] and "same" not in row["verdict"] and len(row["verdict"]) < 160
        if row["overhead_low"] is not None:
            assert row["overhead_low"] <= row["overhead_high"]
        if row["meaning"] in ("worse", "better"):
            assert not row["overhead_low"] <= 0 <= row["overhead_high"]
            assert (row["overhead"] > 0) == (row["meaning"] == "worse")
