"""The example studies: each is accepted, submits what its head states, is listed and documented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

ROOT = Path(__file__).parents[3]
# Conditions × variants × repeats, as the heads of the files state.
RUNS = {
    "bourilkov2012-network": 2 * 2 * 10,
    "bourilkov2012-root": 2 * 2 * 10,
    "bourilkov2012-storage": 4 * 3 * 10,
    "bourilkov2012-trees": 4 * 2 * 12 * 10,
    "bourilkov2012-wan": 2 * 3 * 2 * 10,
    "jungels2012-files": 8 * 3 * 3 * 35,
    "jungels2012-files-as-run": 8 * 3 * 3 * 5,
    "jungels2012-hpc": 2 * 9 * 35,
    "jungels2012-hpc-in-a-row": 2 * 9 * 35,
    "kommeri2016-blades": 3 * 5 * 2 * 10,
    "kommeri2016-cvmfs": 4 * 1 * 10,
    "kommeri2016-jobs": 2 * 2 * 2 * 10,
    "kommeri2016-local": 13 * 2 * 10,
    "kommeri2016-sites": 4 * 2 * 10,
    "ruiz2015-q1": 5 * 6 * 20,
    "ruiz2015-q1-kernels": 4 * 6 * 20,
    "ruiz2015-q2": 4 * 6 * 20,
    "ruiz2015-q2-4": 2 * 6 * 20,
    "ruiz2015-q2-8": 2 * 6 * 20,
    "ruiz2015-q2-multinode": 6 * 20,
    "ruiz2015-q2-multinode-4": 6 * 20,
    "ruiz2015-q2-multinode-8": 6 * 20,
    "ruiz2015-q3": 2 * 2 * 5 * 20,
}


def test_every_example_is_listed_and_documented(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs/papers/index.md").read_text(encoding="utf-8")
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert cli.main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["examples"]
    assert {one["name"] for one in listed} == set(RUNS)
    for one in listed:
        assert len(one["summary"]) > 20
        assert one["name"] in shown
        assert f"`{one['name']}`" in page
        assert Path(one["path"]).is_file()


@pytest.mark.parametrize(
    ("given", "advised"),
    [
        ('structure = ["flat", "unsplit"]\ncompression = ["zlib", "lz4"]', ["structure", "compression"]),
        ('structure = "flat"\niterations = [1, 2]', []),
    ],
)  # fmt: skip
def test_submit_says_what_the_report_will_not_compare(
    given: str,
    advised: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trees.toml").write_text(f'[[benchmark]]\nuse = "roottree"\n{given}\n')
    assert cli.main(["submit", "trees.toml", "--scheduler", "local", "--dry-run"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "does not compare" in line]
    assert [line.partition("roottree ")[2].split()[0] for line in notes] == advised
