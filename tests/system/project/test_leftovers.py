"""What the tests themselves rely on: nothing outlives a test, children get a terminal's signals."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import pids
from tests.waiting import wait_for

from .. import leftovers

ROOT = Path(__file__).parents[3]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "PATIENCE_S", 0.2)


@pytest.mark.usefixtures("impatient")
def test_a_child_that_is_left_is_named_and_ended(tmp_path: Path) -> None:
    before = pids()
    with subprocess.Popen(["sleep", "601"], env={}) as child:
        assert leftovers.end(before, str(tmp_path)) == ["sleep 601"]
        assert child.wait(90) == -9
    assert leftovers.end(before, str(tmp_path)) == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("environment", ["ours", "none"])
def test_one_that_has_left_our_tree_is_known(tmp_path: Path, environment: str) -> None:
    """By our mark in its environment, or by the folder of the tests on its command line."""
    before = pids()
    script = tmp_path / "script" if environment == "none" else Path("script")
    (tmp_path / "script").write_text("sleep 602; true\n")
    words = (
        ["setsid", "sh", str(script)] if environment == "ours" else ["env", "-i", "sh", str(script)]
    )
    line = f"{shlex.join(words)} >&- 2>&- &"
    subprocess.run(["sh", "-c", line], cwd=tmp_path, check=True)
    wait_for("sleep 602", lambda: is_running("sleep 602", before, tmp_path))
    found = leftovers.end(before, str(tmp_path))
    assert sorted(found) == [f"sh {script}", "sleep 602"]


def is_running(line: str, before: set[int], folder: Path) -> bool:
    """Has a process of ours that command line?"""
    ours = leftovers.running(before, str(folder))
    return any(leftovers.read(pid, "cmdline").replace("\0", " ").strip() == line for pid in ours)


def test_one_that_ends_by_itself_is_waited_for(tmp_path: Path) -> None:
    before = pids()
    subprocess.run(["sh", "-c", "sleep 0.3 >&- 2>&- &"], check=True)
    assert leftovers.end(before, str(tmp_path)) == []


def test_processes_of_others_are_not_ours(tmp_path: Path) -> None:
    assert not leftovers.is_ours(1, set(), str(tmp_path))
    assert not leftovers.is_ours(os.getppid(), {1}, str(tmp_path))


def test_children_of_ours_have_the_signals_of_a_terminal(tmp_path: Path) -> None:
    """Started by nohup and `&`, which ignore SIGHUP and SIGINT for all below."""
    (tmp_path / "test_it.py").write_text(
        "import subprocess\n"
        "def test_it():\n"
        "    status = subprocess.check_output(['cat', '/proc/self/status'], text=True)\n"
        "    ignored = int(status.split('SigIgn:')[1].split()[0], 16)\n"
        "    assert ignored & 0b11 == 0\n"
    )
    pytest_words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", str(tmp_path)]
    done = subprocess.run(
        ["sh", "-c", f"trap '' HUP INT; exec {shlex.join(pytest_words)}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
