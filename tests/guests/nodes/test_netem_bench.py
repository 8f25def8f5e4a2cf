"""bench/netem.py runs on guests: its tables, and the keys of its last line. No time is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[3] / "bench" / "netem.py"


def test_a_quick_look_measures_all_of_it_and_ends_with_one_line_of_json() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "--quick"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["undo_tries"] >= 1
    assert figures["undo_failures"] == 0
    assert figures["loss_inside_interval"] in (True, False)
    assert 0 <= figures["tcp_loss"] < 0.1
    measured = {"delay_error_ms_max", "rate_error_max", "apply_ms", "apply_cpu_ms"}
    measured |= {"delay_error_plain_ms_max", "verify_s_max", "guest_apply_ms"}
    assert all(figures[key] > 0 for key in measured), figures
    assert all(figures[f"seen_{key}"] > 0 for key in ("copies", "spoilt", "sent_ahead"))
    assert figures["tcconfig_ms"] is None, "a quick look does not fetch the peer"
