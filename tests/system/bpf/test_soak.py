"""Jobs of many short tasks, one after another: every task is counted.

Afterwards nothing of them is in the maps, nor in the kernel's memory for them. STEELYARD_SOAK_TASKS
is the number of tasks (4,000; `tests/run.sh soak`: 100,000).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TASKS = int(os.environ.get("STEELYARD_SOAK_TASKS", "4000"))
JOBS = 20


def test_maps_and_memory_stay_what_they_are(
    inside: Callable[..., subprocess.CompletedProcess[str]], load: Path
) -> None:
    look = "$BPF status --json --base $BASE"
    job = f"$BPF count --base $BASE -- {load} ignore {TASKS // JOBS} 0"
    script = (
        "$BPF count --base $BASE -- sleep 1000 >/dev/null & stays=$!; "
        f"until {look} | grep -q '.tasks.:2,'; do sleep 0.1; done; {look}; "
        f"for i in $(seq {JOBS}); do {job}; sleep 0.05; {look}; done; "
        "kill $(cat /proc/$stays/task/$stays/children); wait $stays || true"
    )
    done = inside(script, limit_s=60 + TASKS // 100)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    states = [line for line in lines if "supported" in line]
    loads = [line for line in lines if "rchar_bytes" in line and "cpu_ns" not in line]
    counted = [line for line in lines if "cpu_ns" in line]
    assert (len(loads), len(counted), len(states)) == (JOBS, JOBS, JOBS + 1)
    for truth, found in zip(loads, counted, strict=True):
        assert {name: found[name] for name in truth} == truth
        assert (found["lost"], found["processes"]) == (0, TASKS // JOBS + 1)
    kept = [{name: state[name] for name in ("jobs", "tasks", "memory_bytes")} for state in states]
    assert kept == [kept[0]] * len(kept)
    assert (kept[0]["jobs"], kept[0]["tasks"]) == (1, 2), "it and who counts it"
    assert 1e6 < kept[0]["memory_bytes"] < 20e6
