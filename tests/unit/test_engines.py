"""`steelyard summary` where something is missing; the engines themselves: tests/spark."""

from __future__ import annotations

import builtins
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis import engines
from steelyard.analysis.errors import MissingError
from steelyard.wrappers import cli

HELP = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("merging") / "study.py")))


@pytest.fixture
def without_ibis(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name == "ibis":
            raise ImportError("No module named 'ibis'", name="ibis")
        return original(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.mark.usefixtures("without_ibis")
def test_without_the_extra_it_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = HELP.Study(tmp_path)
    study.everything()
    study.collect()
    assert cli.main(["summary", str(study.dir)]) == 3
    assert "pip install 'steelyard[spark]'" in capsys.readouterr().err


def test_before_a_collect(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"runs\.parquet is missing: run `steelyard collect`"):
        engines.summarize(tmp_path, "duckdb")


def test_one_run_has_no_interval() -> None:
    row = {"variant": "v", "condition_label": "c", "metric": "m", "n": 1, "mean": 2.0}
    for sd in (None, float("nan"), 0.0):
        found = engines.line(row | {"sd": sd, "median": 2.0})
        assert (found.sd, found.low, found.high) == (None, None, None)
