"""Records by day on a real cluster: every reader finds the jobs, loose and, nine days later, packed."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.system import set_clock
from tests.throwaway_lab import Lab, until

from steelyard.analysis.sources import record_folders

LATER_S = 9 * 86400
WORK = "head -c 1000000 /dev/zero >/dev/null"


@pytest.fixture
def by_day(lab: Lab) -> Iterator[Path]:
    """The cluster's folder with the mark; other tests find it as it was, without what ran here."""
    records = lab.cluster.record_dir
    (records / record_folders.MARK).touch()
    yield records
    (records / record_folders.MARK).unlink()
    lab.cancel()
    until(lambda: not lab.queued(), "its jobs have ended")
    until(lambda: not lab.samplers(), "its samplers have ended")
    for month in {day.parent for day in record_folders.list_days(records)}:
        shutil.rmtree(month)


def array_that_was_cancelled(lab: Lab) -> dict[str, str]:
    """Two tasks of which AdminComment knows the tags alone: the raw id of each, which is its folder's
    name."""
    script = f"{WORK}; touch running.$SLURM_JOB_ID; exec sleep 60"
    array = lab.sbatch("--array=1-2", "--tag=k=v", script=script)
    until(lambda: len(list(lab.work.glob("running.*"))) == 2, "both tasks run")
    lab.run("scancel", array)
    tasks = (f"{array}_{task}" for task in "12")
    return {task: lab.sacct(task, "JobIDRaw")[0][0] for task in tasks}


def cpu_s(records: list[dict[str, Any]]) -> float:
    return sum(record["cpu"]["cpu_s"] for record in records)


def shown(lab: Lab, job: str, records: Path) -> tuple[list[str], float]:
    """A job's nodes and its CPU time, as `show` has them."""
    words = ("show", "--json", job, "--record-dir", str(records))
    document = json.loads(lab.steelyard(*words))
    return [node["node"] for node in document["nodes"]], document["efficiency"]["cpu"]["used"]


def in_database(lab: Lab, records: Path, name: str, jobs: list[str]) -> dict[str, float]:
    """CPU time by job, as `collect --cluster` has it."""
    folder = str(lab.work / name)
    words = ("collect", "--cluster", folder, "--since", "1d", "--record-dir", str(records))
    lab.steelyard(*words)
    with duckdb.connect(f"{folder}/cluster.duckdb", read_only=True) as base:
        sql = "SELECT task, cpu_s FROM jobs WHERE task IN (SELECT unnest(?)) AND whole_records > 0"
        return dict(base.execute(sql, [jobs]).fetchall())


def test_every_reader_finds_them_loose_and_packed(lab: Lab, by_day: Path, tmp_path: Path) -> None:
    pair = lab.sbatch("-N2", "-w", "n1,n2", script=f"srun sh -c '{WORK}'")
    folders = {pair: pair, **array_that_was_cancelled(lab)}
    records = {job: lab.records(raw, 1 + (job == pair)) for job, raw in folders.items()}
    for job, mine in ((folders[job], mine) for job, mine in records.items()):
        assert not (by_day / job).exists()
        for record in mine:
            day = record_folders.format_day(record["start_unix_s"])
            name = f"{record['node']}.{int(record['start_unix_s'])}"
            assert {p.name for p in (by_day / day / job).glob(f"{name}.*")} == {
                f"{name}.json", f"{name}.csv",
            }  # fmt: skip
    copy = tmp_path / "records"
    shutil.copytree(by_day, copy, ignore=lambda top, _: others(Path(top), by_day))
    readers_agree(lab, copy, "loose", records)
    files = sum(2 * len(mine) for mine in records.values())
    assert f"{len(records)} jobs ({files} files) packed" in swept_later(lab, copy, tmp_path)
    assert not list(copy.rglob("*.json"))
    readers_agree(lab, copy, "packed", records)
    found = lab.publish(by_day)
    assert not records.keys() & found.failed.keys(), found.failed
    for job, mine in records.items():
        comment = lab.comment(job)
        assert comment["nodes_measured"] == len(mine)
        assert comment["cpu_s"] == pytest.approx(cpu_s(mine), abs=1e-6)


def others(top: Path, records: Path) -> list[str]:
    """Jobs of other tests, which lie flat."""
    months = {day.parent.name for day in record_folders.list_days(records)}
    return [p.name for p in top.iterdir() if p.name not in months] if top == records else []


def readers_agree(
    lab: Lab, records: Path, name: str, expected: dict[str, list[dict[str, Any]]]
) -> None:
    for job, mine in expected.items():
        nodes, used = shown(lab, job, records)
        assert nodes == sorted({record["node"] for record in mine})
        assert used == pytest.approx(cpu_s(mine), abs=1e-6)
    kept = in_database(lab, records, name, list(expected))
    assert kept == {job: pytest.approx(cpu_s(mine), abs=1e-6) for job, mine in expected.items()}


def swept_later(lab: Lab, records: Path, tmp_path: Path) -> str:
    """A week and more from now, by the clock of the sweep alone."""
    clock = set_clock.make(tmp_path)
    clock.set_off(LATER_S)
    words = ("-m", "steelyard.wrappers.commands.cli", "sweep", "--record-dir", str(records))
    done = lab.run(*clock.prefix, sys.executable, *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
