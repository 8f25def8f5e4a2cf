"""The findings of `steelyard doctor` in a mom_priv."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.system.torque.conftest import SOURCES, render

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.doctor import torque


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(torque, "OWNER", os.geteuid())
    (tmp_path / "mom_priv").mkdir()
    script = render("pelog.sh", tmp_path / "pelog", tmp_path, tmp_path / "pbs.conf")
    subprocess.run([SOURCES / "install.sh", "put", script, tmp_path / "mom_priv"], check=True)
    (tmp_path / "cron").write_text("")
    monkeypatch.setattr(torque, "CRON", ("sh",))
    return tmp_path


def look(home: Path) -> list[Check]:
    return list(torque.run_checks(home, home / "cron", home / "timer"))


def test_as_installed_all_is_well(home: Path) -> None:
    (check,) = look(home)
    assert (check.state, check.found) == ("ok", f"{home}/mom_priv: all 5")


def test_a_host_without_pbs_mom_says_nothing(tmp_path: Path) -> None:
    """A host where users submit has Torque's empty mom_priv."""
    assert look(tmp_path) == []
    (tmp_path / "mom_priv").mkdir()
    (tmp_path / "mom_priv/config").write_text("$pbsserver srv\n")
    assert look(tmp_path) == []
    (tmp_path / "mom_priv/mom.lock").write_text("4711\n")
    (prologues, sweep) = look(tmp_path)
    assert (prologues.state, sweep.state) == ("warning", "warning")


@pytest.mark.parametrize(
    ("name", "mode", "said"),
    [
        ("prologue", 0o775, "prologue has mode 0775, expected 0755"),
        ("epilogue.parallel", 0o600, "epilogue.parallel has mode 0600, expected 0755"),
        ("epilogue.precancel", 0o700, "epilogue.precancel has mode 0700, expected 0755"),
    ],
)
def test_what_pbs_mom_would_not_run(home: Path, name: str, mode: int, said: str) -> None:
    (home / "mom_priv" / name).chmod(mode)
    (check,) = look(home)
    assert check.state == "missing"
    assert said in check.found


def test_modes_that_pbs_mom_takes(home: Path) -> None:
    (home / "mom_priv/prologue").chmod(0o500)
    assert look(home)[0].state == "ok"


def test_another_owner(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torque, "OWNER", os.geteuid() + 1)
    (check,) = look(home)
    assert check.state == "missing"
    assert f"prologue belongs to user {os.geteuid()}, expected root" in check.found


def test_a_sites_own_is_named_and_looked_at(home: Path) -> None:
    own = home / "mom_priv/prologue.site"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o500)
    assert look(home)[0].found.endswith("the site's own: prologue")
    own.chmod(0o777)
    assert look(home)[0].state == "missing"


def test_not_ours_or_not_there(home: Path) -> None:
    (home / "mom_priv/prologue").write_text("#!/bin/sh\n")
    (home / "mom_priv/epilogue").unlink()
    (check,) = look(home)
    assert (check.state, check.found.rpartition(": ")[2]) == ("warning", "prologue, epilogue")
    assert f"PBS_HOME={home}" in check.advice


def test_nobody_sweeps(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torque, "CRON", ("no-such-cron",))
    assert look(home)[1].found.startswith(f"{home}/cron is there, but no cron: ")
    (home / "cron").unlink()
    assert [check.state for check in look(home)] == ["ok", "warning"]
    (home / "timer").write_text("")
    assert [check.state for check in look(home)] == ["ok"]
