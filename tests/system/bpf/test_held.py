"""Held: the program stays in the kernel with nothing pinned, and is pinned again, not loaded again,
for the next job; the numbers of what is held are believed only while its holder lives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .conftest import Inside

# Its own words say when it holds; `held` is what it holds, by the kernel's numbers.
HOLD = """
trap 'kill $all 2>/dev/null || :' EXIT
start() {
    exec 5< <(exec $BPF hold --base $BASE 2>&1)
    holder=$! all="$all $!"
    read -r said <&5
}
held() { grep -m1 -hE '^(map|prog|link)_id:' /proc/$holder/fdinfo/* | sed 's/.*[^0-9]//' | sort -n | tr '\\n' ' '; }
told() { find $BASE/held-* -type l -printf '%l\\n' | sed 's/.* //' | sort -n | tr '\\n' ' '; }
pins() { find $BASE -type f | wc -l; }
start
"""


def said(done: Any) -> list[str]:
    assert done.returncode == 0, done.stderr
    lines: list[str] = done.stdout.splitlines()
    return lines


def test_nothing_is_pinned_and_the_next_load_makes_nothing_new(inside: Inside) -> None:
    script = "pins; held; echo; $BPF load --base $BASE; pins; held; echo; told"
    pinned, before, again, after, told = said(inside(HOLD + script, 20))
    assert (pinned, before.split()) == ("0", after.split())
    assert int(again) == len(after.split()) > 15
    assert told.split() == after.split()


def test_what_was_held_counts_to_the_byte(inside: Inside, load: Path) -> None:
    script = f"$BPF count --base $BASE -- {load} ignore 200 1000; pins; kill $holder; while kill -0 $holder 2>/dev/null; do sleep 0.01; done; ls -A $BASE | wc -l"
    truth, counted, pinned, left = said(inside(HOLD + script, 20))
    used = json.loads(counted)
    assert {name: used[name] for name in json.loads(truth)} == json.loads(truth)
    assert (pinned, left) == ("0", "0")


def test_a_holder_that_was_killed_is_not_believed(inside: Inside, load: Path) -> None:
    script = f"""kill -9 $holder; while kill -0 $holder 2>/dev/null; do sleep 0.01; done; ls $BASE
    $BPF status --base $BASE --json
    $BPF count --base $BASE -- {load} wait 10 1000; ls -A $BASE | wc -l"""
    folder, status, truth, counted, left = said(inside(HOLD + script, 20))
    assert folder.startswith("held-v")
    assert (json.loads(status)["held"], json.loads(status)["loaded"]) == (False, False)
    used = json.loads(counted)
    assert {name: used[name] for name in json.loads(truth)} == json.loads(truth)
    assert left == "0"


def test_another_holder_holds_the_same_and_goes_on(inside: Inside) -> None:
    script = """first=$holder; held; echo; start; held; echo
    kill $first; while kill -0 $first 2>/dev/null; do sleep 0.01; done
    $BPF status --base $BASE --json; $BPF load --base $BASE; held"""
    first, second, status, again = said(inside(HOLD + script, 20))
    assert json.loads(status)["held"] is True
    assert first == second == again


def test_its_memory_is_told_while_nothing_is_pinned(inside: Inside) -> None:
    script = (
        "$BPF status --base $BASE --json; $BPF load --base $BASE; $BPF status --base $BASE --json"
    )
    idle, loaded = (json.loads(line) for line in said(inside(HOLD + script, 20)))
    assert (idle["held"], idle["loaded"], loaded["loaded"]) == (True, False, True)
    assert idle["memory_bytes"] == loaded["memory_bytes"] > 1e6
