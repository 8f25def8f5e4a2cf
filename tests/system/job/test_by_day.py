"""A folder of records with the mark: by day, from the prologue to what a person reads."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.system import set_clock
from tests.system.job.test_clock import call, works

from steelyard.analysis.sources import record_folders

DAY_S = 86400
NOON_S = 12 * 3600


def test_a_job_begins_ends_and_begins_again(node: Any) -> None:
    (node.records / record_folders.MARK).write_text("")
    for start in (1, 2):
        assert node.begin("7.srv").returncode == 0
        node.run_seen("7.srv", "true")
        totals = node.end("7.srv", "--exit-status=0")
        assert totals["nodes_measured"] == 1
        folders = record_folders.find_job_folders(node.records, "7.srv")
        paths = sorted(p for folder in folders for p in folder.glob("*.json"))
        assert len(paths) == start
        assert not (node.records / "7.srv").exists()
        for path in paths:
            record = json.loads(path.read_bytes())
            assert record["incomplete_of"] == "processes", record["incomplete_reason"]
            day = record_folders.format_day(int(path.name.split(".")[1]))
            assert path.parent == node.records / day / "7.srv"
            assert path.with_suffix(".csv").is_file()
    assert node.left() == []


@pytest.mark.parametrize("days", [1, 3])
def test_over_midnight(node: Any, tmp_path: Path, days: int) -> None:
    """Begun at noon, ended at the noon after; no second of either day is near."""
    clock = set_clock.make(tmp_path)
    (node.records / record_folders.MARK).touch()
    off_s = NOON_S - int(time.time()) % DAY_S
    clock.set_off(off_s)
    begun_on = record_folders.format_day(time.time() + off_s)
    program = node.other_program("moved", f'exec {" ".join(clock.prefix)} $program "$@"')
    call(clock, *node.begin_arguments("7.srv", "--rate=20", f"--node-program={program}"))
    works(node, "7.srv", 5_000_000)
    clock.set_off(off_s + days * DAY_S)
    told = call(clock, "end", "--job-id=7.srv", *node.where())
    assert told["nodes_measured"] == 1
    (path,) = node.records.rglob("n1.*.json")
    assert 5_000_000 <= json.loads(path.read_bytes())["io"]["wchar_bytes"] < 5_100_000
    assert path.parent == node.records / begun_on / "7.srv"
    start = int(path.name.split(".")[1])
    assert record_folders.format_day(start) == begun_on
    window = (float(start), float(start + days * DAY_S))
    for asked in (window, None):
        assert record_folders.find_job_folders(node.records, "7.srv", asked) == [path.parent]
    assert node.left() == []
