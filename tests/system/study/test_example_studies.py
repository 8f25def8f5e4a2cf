"""The example studies: each is accepted, submits what its head states, is listed and documented."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit.study.test_example_studies import RUNS

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.jobscripts.example_studies import Example, examples
from steelyard.wrappers.commands import cli
from steelyard.wrappers.study import study


@pytest.mark.parametrize("example", examples(), ids=lambda one: one.name)
def test_a_dry_run_submits_every_run_and_leaves_nothing(
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(example.path, file := tmp_path / example.path.name)
    read = study.parse_study(file.read_bytes(), file)
    assert read.name == example.name
    code = cli.main(["submit", file.name, "--scheduler", "local", "--dry-run"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert "which the report does not compare" not in said.err
    assert said.out.count("--record-dir=") == RUNS[example.name]
    for variant in read.variants:
        assert f"--job-id={variant.benchmark.name}-" in said.out
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
@pytest.mark.parametrize("example", examples(), ids=lambda one: one.name)
def test_every_example_is_planned_for_pbs_unchanged(
    example: Example,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where no server answers; each script is good shell, and all runs are in an array or alone."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(pbs_commands, "is_installed", lambda: False)
    shutil.copyfile(example.path, file := tmp_path / example.path.name)
    code = cli.main(["submit", str(file), "--scheduler", "pbs", "--dry-run", "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    scripts = json.loads(said.out)["scripts"].values()
    arrays = [re.search(r"^#PBS -J 0-(\d+)", text, re.MULTILINE) for text in scripts]
    assert sum(1 if one is None else int(one[1]) + 1 for one in arrays) == RUNS[example.name]
    for text in scripts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert re.search(r"^#PBS -l '?(select|nodes)=", text, re.MULTILINE)
    assert list(tmp_path.iterdir()) == [file]
