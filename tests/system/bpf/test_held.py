"""steelyard-bpf hold: the program stays pinned without jobs, until the last process that holds it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import PROGRAM, Inside

HOLD = """
trap 'kill $all 2>/dev/null || :' EXIT
start() {
    exec 5< <(exec $BPF hold --base $BASE 2>&1)
    holder=$! all="$all $!"
    read -r said <&5
}
end() { kill $1 $2; while kill -0 $2 2>/dev/null; do sleep 0.01; done; }
pins() { find $BASE -type f -printf '%i\\n' | sort -n | tr '\\n' ' '; echo; }
start
"""


def said(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    lines: list[str] = done.stdout.splitlines()
    return lines


def test_no_sweep_unloads_it_and_no_load_makes_it_anew(inside: Inside) -> None:
    script = "pins; $BPF sweep --base $BASE; pins; $BPF load --base $BASE; pins"
    before, swept, loaded = said(inside(HOLD + script, 20))
    assert len(before.split()) > 15
    assert before == swept == loaded


def test_jobs_are_counted_to_the_byte_and_at_its_end_nothing_stays(
    inside: Inside, load: Path
) -> None:
    script = f"$BPF count --base $BASE -- {load} ignore 200 1000; pins; end -TERM $holder; ls -A $BASE | wc -l"
    truth, counted, pinned, left = said(inside(HOLD + script, 20))
    used = json.loads(counted)
    assert {name: used[name] for name in json.loads(truth)} == json.loads(truth)
    assert (len(pinned.split()) > 15, left) == (True, "0")


def test_after_a_kill_the_next_job_uses_it_and_unloads_it(inside: Inside, load: Path) -> None:
    script = f"""pins; end -KILL $holder; pins
    $BPF count --base $BASE -- {load} wait 10 1000; ls -A $BASE | wc -l"""
    before, killed, truth, counted, left = said(inside(HOLD + script, 20))
    assert before == killed
    used = json.loads(counted)
    assert {name: used[name] for name in json.loads(truth)} == json.loads(truth)
    assert left == "0"


def test_two_that_hold_it_hold_the_same(inside: Inside) -> None:
    script = """first=$holder; pins; start; pins; end -TERM $first; pins
    end -TERM $holder; ls -A $BASE | wc -l"""
    first, second, after, left = said(inside(HOLD + script, 20))
    assert first == second == after
    assert left == "0"


@pytest.mark.skipif(not PROGRAM.exists(), reason="no steelyard-bpf was built")
@pytest.mark.parametrize("option", ["--after=abc", "--after=5x", "--after=-1", "--tasks=1e3"])
def test_a_number_that_is_none_is_refused(option: str, tmp_path: Path) -> None:
    argv = [PROGRAM, "sweep", f"--base={tmp_path}/none", option]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    value = option.partition("=")[2]
    assert f" {value}: expected a whole number up to 1000000" in done.stderr
