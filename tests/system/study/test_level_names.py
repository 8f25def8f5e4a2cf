"""A study with named levels, run here: status, report, tables, figures and compare have the names."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from steelyard.wrappers.commands.cli import main

TEXT = """\
[study]
name = "named"
repeat = 3
[factors]
load = { light = "work=1,rest=2", heavy = "work=3,rest=2" }
threads = [1, 2]
[baseline]
load = "light"
[[benchmark]]
use = "app"
command = "echo {load} {threads}; echo rate $(shuf -i 1000-1003 -n 1) Mop/s"
[benchmark.figures.rate]
pattern = 'rate ([0-9]+) Mop/s'
unit = "Mop/s"
better = "higher"
"""  # a rate that no other load on the machine changes


def test_a_levels_name_is_in_everything_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "named.toml"
    path.write_text(TEXT, encoding="utf-8")
    assert main(["submit", str(path), "--scheduler", "local"]) == 0
    folder = tmp_path / "named.study"
    plan = json.loads((folder / "plan.json").read_bytes())
    assert plan["study"]["baseline"] == {"load": "work=1,rest=2", "threads": 1}
    assert {run["condition_label"] for run in plan["runs"]} == {
        f"load={name} threads={n}" for name in ("light", "heavy") for n in (1, 2)
    }
    assert {run["condition"]["load"] for run in plan["runs"]} == {"work=1,rest=2", "work=3,rest=2"}
    outputs = [path.read_text("utf-8") for path in folder.glob("runs/*/*/out.0")]
    assert any("work=3,rest=2 2" in text for text in outputs), "the run itself has the level"
    assert main(["status", str(path), "--json"]) == 0
    assert "load=heavy threads=2" in capsys.readouterr().out
    assert main(["collect", str(path)]) == 0
    capsys.readouterr()
    page = tmp_path / "r.html"
    options = ["--export", "csv,latex", "--figures", "--format", "csv", "-o", str(page)]
    assert main(["report", str(path), *options]) == 0
    terminal = capsys.readouterr().out
    assert "baseline: load=light, threads=1" in terminal
    assert "With load=heavy instead of light (with threads=1), app" in " ".join(terminal.split())
    for file in [*(tmp_path / "tables").iterdir(), *(tmp_path / "figures").iterdir()]:
        assert "work=3" not in file.read_text("utf-8"), file
    for name in ("tables/means.csv", "figures/overheads.csv"):
        with (tmp_path / name).open(encoding="utf-8") as lines:
            assert "load=heavy threads=1" in {row["condition"] for row in csv.DictReader(lines)}
    for name in ("means-app", "overheads-app"):
        latex = (tmp_path / f"tables/{name}.tex").read_text("utf-8")
        assert "load=heavy threads=1" in latex.replace("\\allowbreak{}", "")
    text = page.read_text("utf-8")
    assert "light (work=1,rest=2), heavy (work=3,rest=2)" in text
    for condition in ("load=heavy", "load=work=3,rest=2"):
        assert main(["compare", str(path), "load=light", condition]) == 0
        assert "B: load=heavy threads=1" in " ".join(capsys.readouterr().out.split())
