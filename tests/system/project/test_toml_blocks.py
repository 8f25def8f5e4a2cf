"""Every TOML block of the pages is a study, or completes one, and is handed in for trial."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
NO_STUDIES = {"add-a-benchmark.md"}  # a benchmark's description: test_registry.py reads it
# What a block that shows a part leaves out, where it has no such table.
HEADS = {"[study]": "repeat = 5", "[job]": "nodes = 12"}
OWN = '[[benchmark]]\nuse = "app"\ncommand = "/bin/true"\n'


def blocks() -> Iterator[tuple[str, str]]:
    """Page and number, and the block."""
    for page in PAGES:
        if page.name not in NO_STUDIES:
            for number, text in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
                yield f"{page.name} {number}", text


BLOCKS = dict(blocks())


def whole(text: str) -> str:
    """With what it leaves out."""
    heads = {table: keys for table, keys in HEADS.items() if table not in text}
    if "xrootd" not in text:
        heads.pop("[job]", None)
    if "[place." in text and "[factors]" not in text:
        levels = re.findall(r"^\[place\.\"?([^\]\"]+)", text, re.MULTILINE)
        heads["[factors]"] = f"node_type = {levels}"
    above = "".join(f"{table}\n{keys}\n" for table, keys in heads.items())
    return above + text + ("" if "[[benchmark]]" in text else OWN)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for number in range(5):  # which a study takes a sample of
        (tmp_path / f"data/{number}.root").touch()
    (tmp_path / "study.toml").write_text(whole(BLOCKS[name]), encoding="utf-8")
    scheduler = "slurm" if re.search(r"^nodes *= \[", BLOCKS[name], re.MULTILINE) else "local"
    code = cli.main(["submit", "study.toml", "--scheduler", scheduler, "--dry-run"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out.count("--record-dir=" if scheduler == "local" else "#SBATCH --nodes=") > 1


def test_there_are_blocks_and_a_wrong_one_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(BLOCKS) >= 20
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(whole('[factors]\nnetwork = ["delay=50 ms"]\n'))
    assert cli.main(["submit", "study.toml", "--scheduler", "local", "--dry-run"]) == 2
