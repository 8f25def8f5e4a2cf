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
from tests.waiting import wait_for


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
    assert "the wall clock jumped by" in done.stderr + study.errors()
    result = study.result()
    assert 1.0 <= result["elapsed_s"] <= took_s
    assert now <= result["start_unix_s"] <= now + took_s
    assert result["end_unix_s"] - result["start_unix_s"] == pytest.approx(result["elapsed_s"])


# The first three readings take 0.3 s, as on a node that is busy.
HELD_UP = """
eval "$(declare -f sy_read_uptime | sed '1s/sy_read_uptime/sy_read_uptime_at_once/')"
sy_read_uptime() {
    echo >>"$SY_STUDY_DIR/readings"
    (($(wc -l <"$SY_STUDY_DIR/readings") > 3)) || sleep 0.3
    sy_read_uptime_at_once "$1"
}
sy_run_client_timed() { rm -f "$SY_STUDY_DIR/readings"; sy_run_client_itself "$@"; }
"""


def test_held_up_between_two_clocks(study: Any) -> None:
    """No clock was set: no jump is reported, and no time is added."""
    library = study.folder / "lib/steelyard.sh"
    text = library.read_text(encoding="utf-8").replace(
        "sy_run_client_timed()", "sy_run_client_itself()"
    )
    library.write_text(text + HELD_UP, encoding="utf-8")
    study.body("sleep 0.5")
    done = study.run()
    assert done.returncode == 0, done.stderr
    assert "jumped" not in done.stderr + study.errors()
    (wall_start, wall_end), (start, end) = study.clock()
    assert (study.folder / "readings").stat().st_size >= 4
    assert study.result()["elapsed_s"] == (wall_end - wall_start) / 1e6
    assert abs((end - start) - (wall_end - wall_start)) <= 40_000


def test_set_back_over_a_client_that_does_not_stop(study: Any, clock: set_clock.WallClock) -> None:
    """It is given its time, and not an hour more."""
    move = f"echo -3600 >{clock.file}.new && mv {clock.file}.new {clock.file}"
    study.body(f"trap '{move}' TERM; touch \"$SY_ATTEMPT_DIR/deaf\"; while :; do sleep 0.1; done")
    process = study.start(SY_GRACE_S="10", **clock.variables)
    wait_for("it is deaf", (study.attempt() / "deaf").exists)
    process.terminate()
    try:
        process.communicate(timeout=300)  # an hour more is 3600 s
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert clock.file.read_text() == "-3600\n"
