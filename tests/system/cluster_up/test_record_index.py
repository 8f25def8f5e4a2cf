"""Records out of packs are what they were as files: the same tables, whichever way they were
read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.cluster.sacct_lab import DAY_S, NOW, Lab, lab

from steelyard.analysis.cluster import collect as collecting
from steelyard.analysis.cluster import database, job_records
from steelyard.analysis.cluster.collect import Collected, collect
from steelyard.analysis.cluster.job_records import RecordIndex
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.analysis.sources.record_folders import format_day

__all__ = ["lab"]

PLACES = {"records": "file"}  # where a record was read: the one column that may differ


def several(lab: Lab) -> None:
    """Jobs of one node and of three, over midnight, requeued, cut short, of nobody, and damaged."""
    for number in range(1, 8):
        lab.record(str(number), lab.job(str(number), number * 0.4 * DAY_S, elapsed_s=9000))
    wide = lab.job("20", 5000, NodeList="n[1-3]")
    for node, joules in (("n1", 1.5), ("n2", 2.25), ("n3", 4.125)):
        lab.record("20", wide, node, energy={"energy_j": joules})
    lab.record("21", lab.job("21", 1.2 * DAY_S, State="REQUEUED"), energy={"energy_j": 7.0})
    lab.record("21", lab.job("21", 2000, Restarts="1"), energy={"energy_j": 9.0})
    lab.record("22", lab.job("22", 900), complete=False)
    lab.job("23", 800)
    lab.record("24", lab.job("24", 700), cpu={"cpu_s": "many"})
    lab.record(
        "25", lab.job("25", 600), tags={"application": "md"}, missing={"io": "no right"}, io={}
    )
    lab.record("26", lab.job("26", 500, TotalCPU="00:30.000"))


def run(lab: Lab, into: Path) -> Collected:
    since = NOW - 4 * DAY_S
    return collect(into, ClusterSacct(tries=1), [lab.records], since_unix_s=since, now=lambda: NOW)


def tables(folder: Path, but: dict[str, str] = PLACES) -> dict[str, list[tuple[Any, ...]]]:
    with duckdb.connect(str(folder / database.FILE_NAME), read_only=True) as connection:
        return {
            table: connection.execute(
                f"SELECT {f'* EXCLUDE ({but[table]})' if table in but else '*'} FROM {table} ORDER BY ALL"
            ).fetchall()
            for table in ("jobs", "records", "gaps")
        }


@pytest.mark.parametrize(
    "at_once",
    [pytest.param(1, marks=pytest.mark.slow), 3, pytest.param(1000, marks=pytest.mark.slow)],
)
def test_packed_and_loose_are_the_same_tables(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(collecting, "AT_ONCE", at_once)
    several(lab)
    loose = run(lab, lab.base / "loose")
    assert lab.pack() >= 3 and not list(lab.records.glob("2?"))
    out_of_packs = run(lab, lab.dir)
    found, expected = tables(lab.dir), tables(lab.base / "loose")
    for of in (found, expected):  # a reason may name the file: by its name alone
        of["gaps"] = [(*row[:-1], Path(row[-1].split(":")[0]).name) for row in of["gaps"]]
    assert found == expected
    assert (out_of_packs.records, loose.records, len(found["gaps"])) == (16, 16, 3)


def test_half_packed_is_the_same_too(lab: Lab) -> None:
    """A job of three nodes, one of them loose; a file that lies in both: the loose one counts."""
    several(lab)
    run(lab, lab.base / "loose")
    late = lab.base / "late"
    shutil.copytree(lab.records, late)
    assert lab.pack()
    for name in ("20/n2.*.json", "3/*.json"):
        (file,) = late.glob(name)
        (lab.records / file.parent.name).mkdir()
        shutil.copy2(file, lab.records / file.parent.name / file.name)
    run(lab, lab.dir)
    assert tables(lab.dir)["jobs"] == tables(lab.base / "loose")["jobs"]


def test_a_pack_of_which_a_part_cannot_be_read_is_told_of_its_jobs_alone(lab: Lab) -> None:
    several(lab)
    assert lab.pack() >= 3
    (broken,) = (lab.records / f"{format_day(NOW - 1.2 * DAY_S)}.packs").glob("records-*.parquet")
    mine = set(broken.with_suffix(".jobs").read_text("utf-8").split())
    data = bytearray(broken.read_bytes())
    data[4:400] = b"\0" * 396  # its footer says where everything is, and that is not there
    broken.chmod(0o644)
    broken.write_bytes(data)
    done = run(lab, lab.dir)
    told = {gap[0] for gap in done.gaps if "cannot be read" in gap[3]}
    assert told == mine and "2" in mine and "20" not in mine
    with duckdb.connect(str(lab.dir / database.FILE_NAME), read_only=True) as connection:
        rows = connection.execute("SELECT energy_j FROM jobs WHERE job_id = '20'").fetchall()
    assert rows == [(7.875,)]


@pytest.mark.parametrize("layout", ["by day", "flat"])
@pytest.mark.parametrize("left", ["nothing", "samples", "another node's record"])
def test_what_is_packed_after_the_folders_were_listed_is_read_from_its_pack(
    lab: Lab, layout: str, left: str
) -> None:
    """A sweep beside a collect: it has taken all, or has got as far as some of a job's files."""
    start = lab.job("1", NodeList="n[1-2]")
    paths = [lab.record("1", start, node) for node in ("n1", "n2")]
    folder = paths[0].parent
    if layout == "by day":
        folder = lab.records / format_day(start) / "1"
        folder.parent.mkdir(parents=True)
        paths[0].parent.rename(folder)
    row = next(iter(ClusterSacct(tries=1).read_window(NOW - DAY_S, NOW))).row  # type: ignore[union-attr]
    near = RecordIndex([lab.records])
    near.load([row])
    stay = folder / paths[1].name
    content = stay.read_bytes()
    assert lab.pack() == 1 and not folder.exists()
    if left != "nothing":
        folder.mkdir(parents=True)
        name = stay if left.startswith("another") else stay.with_suffix(".csv")
        name.write_bytes(content)
    found = job_records.read_job_records(JobView("1", row), near, {})
    assert (sorted(found.by_node), found.gaps) == (["n1", "n2"], [])


@pytest.mark.skipif(os.getuid() != 0, reason="as a user the mode of a pack would refuse, not root")
def test_a_pack_that_is_gone_is_told(lab: Lab) -> None:
    lab.record("1", lab.job("1"))
    assert lab.pack() == 1
    (pack,) = lab.records.rglob("records-*.parquet")
    pack.unlink()
    pack.mkdir()
    done = run(lab, lab.dir)
    assert [gap[2] for gap in done.gaps] == ["record"] and "cannot be read" in done.gaps[0][3]
