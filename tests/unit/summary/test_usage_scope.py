"""Totals that two conditions count differently are marked in comparisons."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.stats.overhead_verdict import Direction
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import summarize
from steelyard.analysis.summary.usage_scope import describe_scope_difference

BARE: dict[str, object] = {"launcher": "bare"}
START = "the container's start and end included"


@pytest.mark.parametrize(
    ("metric", "condition", "base", "words"),
    [
        ("elapsed_s", {"launcher": "podman:a,containers=4"}, BARE, ""),
        ("mops", {"launcher": "podman:a,containers=4"}, BARE, ""),
        ("cpu_s", {"launcher": "podman:a"}, BARE, START),
        ("cpu_s", BARE, {"launcher": "podman:a"}, "the baseline's container's start and end included"),
        ("energy_j", {"launcher": "lxc:a"}, {"launcher": "podman:a"}, "both containers' start and end included"),
        ("rchar_bytes", {"launcher": "podman:a,containers=4,cpus=1"}, BARE, f"a sum: 4 clients against 1, {START}"),
        ("cpu_s", {"clients": 1}, {"clients": 2}, "a sum: 1 client against 2"),
        ("cpu_s", {"clients": 2, "launcher": "unshare,containers=2"}, {"clients": 4, "launcher": "unshare"}, "both containers' start and end included"),
        ("cpu_s", {"launcher": "podman:a,ranks=across,containers=4"}, BARE, START),
        ("cpu_s", {"cache": "cold"}, {"cache": "warm"}, ""),
    ],
)  # fmt: skip
def test_what_is_said(
    metric: str, condition: dict[str, object], base: dict[str, object], words: str
) -> None:
    assert describe_scope_difference(metric, condition, base) == words


def test_it_stands_at_the_number(synthetic: ModuleType, tmp_path: Path) -> None:
    """Four programs are no overhead of one; a container's start is not in elapsed_s."""
    levels = ["bare", "podman:a", "podman:a,containers=4"]
    maker = synthetic.StudyMaker("c", {"launcher": levels}, {"launcher": "bare"})
    for number in range(1, 7):
        for level, cpu_s in zip(levels, (1.0, 1.6, 4.6), strict=True):
            run = maker.run("x", {}, {"launcher": level}, number, elapsed_s=1 + number / 1e3)
            maker.record(run, "n1", 1.0, cpu_s=cpu_s + number / 1e3)
    summary = summarize(maker.write(tmp_path))

    def found(level: str, metric: str) -> Row:
        row = summary.row("x", f"launcher={level}", metric)
        assert row is not None
        assert row.verdict is not None
        return row

    one = found(levels[1], "cpu_s").verdict
    assert one is not None and one.text.startswith("higher by 59.79 %")
    assert one.text.endswith(f" ({START})")
    four = found(levels[2], "cpu_s").verdict
    assert four is not None and four.direction is Direction.DIFFERENT
    assert four.text.endswith(f" (a sum: 4 clients against 1, {START})")
    elapsed = found(levels[2], "elapsed_s").verdict
    assert elapsed is not None and "sum" not in elapsed.text and "start" not in elapsed.text
