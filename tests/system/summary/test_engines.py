"""`steelyard summary` where something is missing; the engines themselves: tests/spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.base import spark
from steelyard.analysis.base.errors import MissingError


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
        spark.check_java()
        return
    with pytest.raises(MissingError, match="Spark needs Java 17: apt-get install") as error:
        spark.check_java()
    assert said in str(error.value)
