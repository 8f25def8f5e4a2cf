"""`report --beside` prints for all four papers what it printed when the files were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.papers.report import PAPERS

from . import recorded


@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_and_intervals(paper: str, tmp_path: Path) -> None:
    kept = (recorded.FOLDER / f"{paper}.txt").read_text(encoding="utf-8")
    assert recorded.made_cases(paper, tmp_path) == kept


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_of_the_example_studies(paper: str, tmp_path: Path) -> None:
    kept = (recorded.FOLDER / f"{paper}-studies.txt").read_text(encoding="utf-8")
    assert recorded.example_studies(paper, tmp_path) == kept


def test_nothing_else_is_recorded() -> None:
    kept = {f"{paper}{part}.txt" for paper in PAPERS for part in recorded.PARTS}
    assert {path.name for path in recorded.FOLDER.glob("*.txt")} == kept
