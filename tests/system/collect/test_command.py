"""steelyard collect: the command around the merge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.wrappers.commands import cli


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent")  # no Slurm: the folders and records speak
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(study.record_dir))
    return study


def test_the_only_study_here_is_collected(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect"]) == 0
    text = capsys.readouterr().out
    total = sum(tasks for _, tasks in HELP.SUBMITTED.values()) + 1
    assert f"{total} runs: 4 completed, " in text
    assert (
        "1 × the accounting did not answer, or could not be read completely: collect again" in text
    )
    assert "slurm-client" in text
    assert "next: steelyard report" in text
    assert (study.dir / "study.duckdb").is_file()


def test_json_has_every_gap(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", "x", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"]["completed"] == 4 and document["records"] == 7
    assert [gap["kind"] for gap in document["gaps"]].count("accounting") == 1
    assert all(gap["reason"] for gap in document["gaps"])


def test_record_folders_by_option(
    study: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["collect", "x", "--json", "--record-dir", str(tmp_path / "none")]
    assert cli.main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 0
    assert cli.main([*arguments, "--record-dir", str(study.record_dir)]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 7


def test_gaps_of_a_kind_are_told_once(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for path in study.record_dir.rglob("*.json"):
        path.unlink()
    assert cli.main(["collect"]) == 0
    text = capsys.readouterr().out
    assert "7 × nodes without a record of the job" in text
    assert "    2 × no record of job " in text
    assert "… and 3 more (--json has them all)" in text


def test_no_such_study(study: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", "y"]) == 2
    assert "no such study" in capsys.readouterr().err
