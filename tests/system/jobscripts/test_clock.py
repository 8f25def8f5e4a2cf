"""The wall clock is set while a run goes on: its time is what has passed, and nobody waits longer."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.system import set_clock


@pytest.fixture
def clock(tmp_path: Path) -> set_clock.WallClock:
    return set_clock.make(tmp_path)


@pytest.mark.parametrize("off", [-3600, 3600])
def test_set_while_it_runs(study: Any, clock: set_clock.WallClock, off: int) -> None:
    move = f"echo {off} >{clock.file}.new && mv {clock.file}.new {clock.file}"
    study.body(f"sleep 0.5; {move}; sleep 0.5")
    began, now = time.monotonic(), time.time()
    done = study.run(**clock.variables)
    took_s = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    assert "the wall clock jumped by" in done.stderr + (study.attempt() / "err.0").read_text()
    result = study.result()
    assert 1.0 <= result["elapsed_s"] <= took_s
    assert now <= result["start_unix_s"] <= now + took_s
    assert result["end_unix_s"] - result["start_unix_s"] == pytest.approx(result["elapsed_s"])


def test_set_back_over_a_client_that_does_not_stop(study: Any, clock: set_clock.WallClock) -> None:
    """It is given its time, and not an hour more."""
    move = f"echo -3600 >{clock.file}.new && mv {clock.file}.new {clock.file}"
    study.body(f"trap '{move}' TERM; touch \"$SY_ATTEMPT_DIR/deaf\"; while :; do sleep 0.1; done")
    process = study.start(SY_GRACE_S="1", **clock.variables)
    deadline = time.monotonic() + 60
    while not (study.attempt() / "deaf").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.terminate()
    asked = time.monotonic()
    try:
        process.communicate(timeout=40)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert clock.file.read_text() == "-3600\n"
    assert time.monotonic() - asked < 30
