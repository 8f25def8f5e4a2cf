"""Our scripts in a mom_priv, together with a site's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.system.torque.conftest import SOURCES, render

NAMES = {"prologue", "epilogue", "prologue.parallel", "epilogue.parallel", "epilogue.precancel"}


@pytest.fixture
def mom_priv(tmp_path: Path) -> Path:
    render("pelog.sh", tmp_path / "pelog", tmp_path, tmp_path / "pbs.conf")
    (tmp_path / "mom_priv").mkdir()
    return tmp_path / "mom_priv"


def install(verb: str, mom_priv: Path) -> subprocess.CompletedProcess[str]:
    words = [str(mom_priv.parent / "pelog")] if verb == "put" else []
    return subprocess.run(
        [SOURCES / "install.sh", verb, *words, mom_priv],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def names(mom_priv: Path) -> set[str]:
    return {path.name for path in mom_priv.iterdir()}


def test_five_names_that_pbs_mom_runs_as_root(mom_priv: Path) -> None:
    for _ in range(2):
        assert install("put", mom_priv).returncode == 0
        assert names(mom_priv) == NAMES
    for path in mom_priv.iterdir():
        status = path.lstat()
        assert (status.st_mode, status.st_uid) == (0o100755, os.geteuid())
    assert install("remove", mom_priv).returncode == 0
    assert names(mom_priv) == set()


def test_a_site_gets_its_own_back(mom_priv: Path) -> None:
    own = mom_priv / "prologue"
    own.write_text("#!/bin/sh\nexit 0\n")
    own.chmod(0o500)
    for _ in range(2):
        assert install("put", mom_priv).returncode == 0
        assert names(mom_priv) == NAMES | {"prologue.site"}
    assert (mom_priv / "prologue.site").read_text() == "#!/bin/sh\nexit 0\n"
    assert install("remove", mom_priv).returncode == 0
    assert names(mom_priv) == {"prologue"}
    assert (own.read_text(), own.stat().st_mode) == ("#!/bin/sh\nexit 0\n", 0o100500)


def test_two_of_the_sites_are_not_joined_by_us(mom_priv: Path) -> None:
    for name in ("prologue", "prologue.site"):
        (mom_priv / name).write_text("#!/bin/sh\n")
        (mom_priv / name).chmod(0o500)
    done = install("put", mom_priv)
    assert done.returncode == 3
    assert "join the two" in done.stderr
    assert names(mom_priv) == {"prologue", "prologue.site"}


def test_what_others_may_write_is_not_run_as_root(mom_priv: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root would run it: needs root")
    (mom_priv / "epilogue").write_text("#!/bin/sh\n")
    (mom_priv / "epilogue").chmod(0o775)
    done = install("put", mom_priv)
    assert done.returncode == 3
    assert "nobody else can write" in done.stderr
    assert names(mom_priv) == {"epilogue"}


def test_a_host_without_pbs_mom(tmp_path: Path) -> None:
    done = install("put", tmp_path / "none")
    assert done.returncode == 3
    assert "PBS_HOME=DIR" in done.stderr
