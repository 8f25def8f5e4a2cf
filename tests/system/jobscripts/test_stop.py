"""run.sh killed, stopped, timed out: what is left, and that nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_for

from .launcher_lab import told

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study


# --- runs that are stopped ---


def in_session(pid: int) -> list[str]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "sid=,stat=,args="], check=True, capture_output=True, text=True
    )
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    return [row[2] for row in rows if int(row[0]) == pid and not row[1].startswith("Z")]


@pytest.mark.parametrize("clients", [1, 2])
def test_a_killed_run_is_still_started(study: Study, clients: int) -> None:
    study.body("echo here; sleep 60", clients)
    with study.start() as child:
        last = study.attempt() / f"out.{clients - 1}"
        wait_for("the clients run", lambda: last.exists() and last.stat().st_size > 0)
        os.killpg(child.pid, signal.SIGKILL)
        assert child.wait(timeout=90) == -signal.SIGKILL
    result = study.result()
    assert (result["state"], result["exit_codes"]) == ("started", [])
    assert result["missing"]["end_unix_s"] == "the run had not ended when this was written"
    assert not list(study.attempt().glob(".result*"))


@pytest.mark.parametrize(
    ("limit", "state", "reason"),
    [
        ("", "failed", "stopped by SIGTERM before its end"),
        ("3600", "failed", "stopped by SIGTERM before its end"),
        ("1", "timeout", "stopped at its time limit"),
    ],
)
def test_a_stopped_run_says_so_and_leaves_nothing_behind(
    study: Study, limit: str, state: str, reason: str
) -> None:
    study.body("echo here; bash -c 'sleep 61; true' & sleep 60; echo never", 2)
    with study.start(SY_TIME_LIMIT_S=limit) as child:
        wait_for(
            "clients run", lambda: sum("sleep 61" in args for args in in_session(child.pid)) >= 2
        )
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 143
        assert in_session(child.pid) == []
    result = study.result()
    assert (result["state"], result["reason"]) == (state, reason)
    assert result["exit_codes"] == [143, 143]
    assert result["elapsed_s"] > 0
    assert (study.attempt() / "out.0").read_text(encoding="utf-8") == "here\n"
    assert not list(study.scratch.iterdir())


def test_a_client_that_does_not_listen_is_killed_after_the_grace(study: Study) -> None:
    study.body("trap '' TERM; echo here; sleep 60")
    with study.start(SY_GRACE_S="1") as child:
        out = study.attempt() / "out.0"
        wait_for("the client runs", lambda: out.exists() and out.stat().st_size > 0)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 143
        assert in_session(child.pid) == []
    assert study.result()["exit_codes"] == [None]


def test_ctrl_c_stops_a_run(study: Study) -> None:
    study.body("echo here; sleep 60")
    with study.start() as child:
        out = study.attempt() / "out.0"
        wait_for("the client runs", lambda: out.exists() and out.stat().st_size > 0)
        os.killpg(child.pid, signal.SIGINT)
        assert child.wait(timeout=90) == 130
    assert study.result()["reason"] == "stopped by SIGINT before its end"
    assert not list(study.scratch.iterdir())


@pytest.mark.parametrize("inside", [False, True])
def test_a_stopped_benchmarks_own_exit_code_is_kept(study: Study, inside: bool) -> None:
    """Its code is returned however many signals come while it ends: bash's wait would return -1."""
    study.body("trap : TERM; echo here; sleep 60; return 3", 8)
    level = told("unshare,containers=8") if inside else {}
    with study.start(**level) as child:
        outs = [study.attempt() / f"out.{client}" for client in range(8)]
        wait_for("all run", lambda: all(out.exists() and out.stat().st_size for out in outs))
        for _ in range(3):
            os.killpg(child.pid, signal.SIGTERM)
            time.sleep(0.002)
        assert child.wait(timeout=60) == 143
    assert study.result()["exit_codes"] == [3] * 8


def test_sigterm_after_sigterm_to_every_process_spoils_nothing(study: Study) -> None:
    """Slurm signals all processes of a job, and more than once."""
    study.body("echo here; sleep 60", 2)
    with study.start(SY_TIME_LIMIT_S="1") as child:
        outs = [study.attempt() / f"out.{client}" for client in range(2)]
        wait_for("both run", lambda: all(out.exists() and out.stat().st_size for out in outs))
        while child.poll() is None:
            os.killpg(child.pid, signal.SIGTERM)
            time.sleep(0.002)
        assert child.returncode == 143
    result = study.result()
    assert (result["state"], result["exit_codes"]) == ("timeout", [143, 143])
    assert not list(study.scratch.iterdir())
