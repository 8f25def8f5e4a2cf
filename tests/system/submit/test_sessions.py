"""A study run repeatedly on this machine, as its page describes: by hand, by cron, by a timer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.analysis.sources.study_sessions import list_sessions
from steelyard.wrappers.commands import cli

Capture = pytest.CaptureFixture[str]
PAGE = (Path(__file__).parents[3] / "docs" / "study.md").read_text(encoding="utf-8")
STUDY = """\
[study]
repeat = 2
blocks = 2
[factors]
level = [1, 9]
[[benchmark]]
use = "app"
command = "gzip -{level} -c /etc/passwd"
"""
FIGURE = """\
[benchmark.figures.rate]
pattern = 'rate: ([0-9]+)'
unit = "1/s"
"""


@pytest.fixture
def nightly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """nightly.toml in the current folder; its folder of sessions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nightly.toml").write_text(STUDY)
    return tmp_path / "nightly.sessions"


def block(language: str, first_line: str) -> str:
    """Return a block of the page."""
    found = re.search(rf"```{language}\n({re.escape(first_line)}\n.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def steelyard(capsys: Capture, *words: str, code: int = 0) -> str:
    capsys.readouterr()
    assert cli.main(list(words)) == code
    return capsys.readouterr().out


def submit(capsys: Capture, *names: str) -> None:
    for name in names:
        steelyard(capsys, *f"submit nightly.toml --scheduler local --session {name}".split())


def test_sessions_from_submit_to_comparison(nightly: Path, capsys: Capture) -> None:
    submit(capsys, "a", "b")
    assert "4 completed" in (out := steelyard(capsys, "collect", "nightly"))
    assert "2 of 2 sessions collected, 0 are settled" in out
    submit(capsys, "c")
    out = steelyard(capsys, "collect", "nightly")
    assert "nightly@c: 4 runs: 4 completed" in out
    assert "1 of 3 sessions collected, 2 are settled" in out
    assert out.endswith("next: steelyard report nightly@c, steelyard history nightly\n")
    assert "4 runs: 4 completed" in steelyard(capsys, "collect", "nightly@a")
    assert steelyard(capsys, "report", "nightly@b").startswith("nightly@b: 4 of 4 runs completed")
    assert (nightly / "b.html").is_file()
    document = json.loads(steelyard(capsys, "compare", "nightly@a", "nightly@c", "--json"))
    assert [(r["condition"], r["a"]["n"], r["b"]["n"]) for r in document["rows"]] == [
        ("level=1", 2, 2), ("level=9", 2, 2),
    ]  # fmt: skip


def test_a_damaged_session_does_not_keep_others_from_being_collected(
    nightly: Path, capsys: Capture
) -> None:
    submit(capsys, "a", "b")
    (nightly / "a.study/plan.json").write_text("{")
    assert cli.main(["collect", "nightly"]) == 3
    found = capsys.readouterr()
    assert "nightly@a: " in found.err
    assert "1 of 2 sessions collected" in found.out


def test_a_figure_added_later_reaches_all_sessions(nightly: Path, capsys: Capture) -> None:
    text = STUDY.replace("gzip -{level} -c /etc/passwd", "echo rate: {level}")
    file = nightly.with_name("nightly.toml")
    file.write_text(text)
    submit(capsys, "a", "b")
    steelyard(capsys, "collect", "nightly")
    before = [json.loads((one.folder / "plan.json").read_text()) for one in list_sessions(nightly)]
    file.write_text(text + FIGURE)
    assert "2 of 2 sessions collected" in steelyard(capsys, "collect", "nightly")
    assert "2 are settled" in steelyard(capsys, "collect", "nightly")
    document = json.loads(steelyard(capsys, "compare", "nightly@a", "nightly@b", "--json"))
    found = {(r["metric"], r["condition"], r["a"]["mean"]) for r in document["rows"]}
    assert {("rate", "level=1", 1.0), ("rate", "level=9", 9.0)} <= found
    after = [json.loads((one.folder / "plan.json").read_text()) for one in list_sessions(nightly)]
    assert [one["study"]["session"] for one in after] == [one["study"]["session"] for one in before]


def test_the_cron_lines_of_the_page_work(nightly: Path) -> None:
    """Each twice in a night: the second adds nothing, and finds nothing to collect."""
    lines = [line.split(maxsplit=5) for line in block("sh", "# crontab -e").splitlines()]
    commands = [words[5] for words in lines if words[0].isdigit()]
    assert len(commands) == 2
    home = nightly.parent / "home"
    (home / "nightly").mkdir(parents=True)
    shutil.copy(nightly.with_name("nightly.toml"), home / "nightly")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for command in sorted(commands * 2, key=commands.index):
        local = command.replace("--session", "--session --scheduler local")
        done = subprocess.run(
            ["/bin/sh", "-c", local], env={"HOME": str(home), "PATH": path}, check=False
        )
        assert done.returncode == 0
    log = (home / "nightly/nightly.log").read_text()
    assert log.count("4 of 4 runs executed here (0 failed") == 1
    assert log.count("nothing to add") == 1
    assert log.count("1 of 1 session collected") == 1
    assert log.count("0 of 1 session collected, 1 is settled") == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
def test_the_units_of_the_page_are_good(tmp_path: Path) -> None:
    name = "# ~/.config/systemd/user/nightly.service"
    pieces = re.split(r"^# \S+/(\S+)\n", block("ini", name), flags=re.MULTILINE)
    program = f"{Path(sys.executable).parent}/steelyard"
    for unit, text in zip(pieces[1::2], pieces[2::2], strict=True):
        (tmp_path / unit).write_text(text.replace("/usr/local/bin/steelyard", program))
    done = subprocess.run(
        ["systemd-analyze", "verify", "nightly.timer", "nightly.service"],
        cwd=tmp_path, env=os.environ | {"SYSTEMD_PAGER": ""}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
