"""`steelyard summary` where something is missing; the engines themselves: tests/spark."""

from __future__ import annotations

import builtins
import runpy
import socket
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


def test_without_java_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingError, match=r"bin/java is missing.* openjdk-17-jre-headless"):
        engines.check_java()


@pytest.mark.parametrize(
    ("said", "too_old"),
    [
        ('openjdk version "1.8.0_412"', True),
        ('openjdk version "11.0.2" 2019-01-15', True),
        ("Segmentation fault", True),
        ('openjdk version "17.0.15" 2025-04-15', False),
        ('java version "21" 2023-09-19 LTS', False),
    ],
)
def test_java_must_be_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, too_old: bool
) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if not too_old:
        engines.check_java()
        return
    with pytest.raises(MissingError, match="Spark needs Java 17: apt-get install") as error:
        engines.check_java()
    assert said in str(error.value)


def test_a_master_that_is_not_there_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        engines.check_master(f"spark://127.0.0.1:{port}")
    for wrong in (f"spark://127.0.0.1:{port}", "spark://127.0.0.1", "spark://"):
        with pytest.raises(MissingError, match=f"no Spark master listens at {wrong} "):
            engines.check_master(wrong)
    engines.check_master("local[1]")


def test_before_a_collect(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"runs\.parquet is missing: run `steelyard collect`"):
        engines.summarize(tmp_path, "duckdb")


def test_one_run_has_no_interval() -> None:
    row = {"variant": "v", "condition_label": "c", "metric": "m", "n": 1, "mean": 2.0}
    for sd in (None, float("nan"), 0.0):
        found = engines.line(row | {"sd": sd, "median": 2.0})
        assert (found.sd, found.low, found.high) == (None, None, None)
