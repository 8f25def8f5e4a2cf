"""`steelyard run --benchmark`: one benchmark alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.wrappers.base import programs
from steelyard.wrappers.commands import cli

pytestmark = pytest.mark.skipif(
    programs.find_program("steelyard-fstest") is None,
    reason="steelyard-fstest is missing: make all",
)
Capture = pytest.CaptureFixture[str]


def test_its_own_figures_come_first_and_are_means_over_the_runs(
    capsys: Capture, tmp_path: Path
) -> None:
    words = ["run", "--benchmark", "filesystem", "--repeat", "2", "--json", "-o", str(tmp_path)]
    words += ["-p", "test=small_file_write", "-p", "write_files=3", "-p", "iterations=2"]
    assert cli.main([*words, "-p", "file_size=4KiB", "-p", "direct=true"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["benchmark"] == "filesystem"
    first = said["commands"][0]["metrics"][0]
    assert (first["metric"], first["unit"], first["n"]) == ("seconds", "s", 2)
    assert {"throughput", "files_per_s", "elapsed"} <= {
        m["metric"] for m in said["commands"][0]["metrics"]
    }
    assert "nfs_read_bytes" not in {m["metric"] for m in said["commands"][0]["metrics"]}
    lines = [
        json.loads(line)
        for attempt in ("local.1", "local.2")
        for line in (tmp_path / "benchmark/runs/run" / attempt / "out.0").read_text().splitlines()
    ]
    seconds = [line["seconds"] for line in lines if "seconds" in line]
    assert len(seconds) == 4
    assert first["mean"] == pytest.approx(sum(seconds) / 4)
    assert lines[0]["direct"] is True


@pytest.mark.parametrize("launcher", ["bare", "unshare"])
def test_elapsed_is_the_runs_as_in_a_study(capfd: Capture, tmp_path: Path, launcher: str) -> None:
    """It is that of the clients; the container's start is separate, and in the totals."""
    words = ["run", "--benchmark", "app", "-p", "command=sleep 0.1", "--json", "-o", str(tmp_path)]
    assert cli.main([*words, "--in", launcher]) == 0
    said = json.loads(capfd.readouterr().out)
    (one,) = said["commands"][0]["runs"]
    result = json.loads((tmp_path / "benchmark/runs/run/local.1/result.json").read_bytes())
    (record,) = (tmp_path / "run-001").rglob("*.json")
    assert one["values"]["elapsed"] == result["elapsed_s"]
    assert 0.1 <= result["elapsed_s"] < json.loads(record.read_bytes())["exit"]["elapsed_s"]
    assert ("start" in one["values"]) == (launcher != "bare")
    whole = {
        entry["metric"] for entry in said["commands"][0]["metrics"] if entry["scope"] == "whole run"
    }
    assert ("cpu" in whole) == (launcher != "bare")


def test_figures_that_are_not_found_are_said(capsys: Capture) -> None:
    figures = '{"rate": {"pattern": "rate (\\\\d+)", "unit": "1"}}'
    words = ["run", "--benchmark", "app", "-p", f"figures={figures}", "-p"]
    assert cli.main([*words, "command=echo rate 7"]) == 0
    assert " rate " in capsys.readouterr().out
    assert cli.main([*words, "command=echo no figure"]) == 0
    said = capsys.readouterr()
    assert "run 1: out.0: rate: nothing matches" in said.err
    assert " rate " not in said.out and " seconds " in said.out
