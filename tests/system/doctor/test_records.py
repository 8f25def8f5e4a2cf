"""`steelyard-node doctor` on a folder of records: by day or flat, swept or not; and on the spool."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.doctor import local_node, remote_nodes
from steelyard.wrappers.doctor.remote_nodes import Answer
from steelyard.wrappers.sweep import sweep
from steelyard.wrappers.sweep.sweep import SweepRequest

MANY = 100_000
DAY_S = 86400


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    folder.mkdir()
    return folder


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def look(name: str, records: Path, *options: str) -> Check:
    """The one check of that name."""
    (check,) = local_node.query_program(
        find_node_program(), f"--only={name}", f"--record-dir={records}", *options
    )
    return check


def sweeps(records: Path, quota_bytes: int | None = None) -> None:
    sweep.sweep(SweepRequest(records, 7 * DAY_S, quota_bytes=quota_bytes))


def day(age_days: float) -> str:
    return record_folders.format_day(time.time() - age_days * DAY_S)


def test_by_day_by_its_mark_alone(records: Path) -> None:
    (records / "4711").mkdir()
    (records / day(0)).mkdir(parents=True)
    words = "flat, for it bears no mark .steelyard-records; 1 entries lie beside one another"
    assert look("records", records) == Check("records", "ok", f"{records}: {words}")
    mark = records / record_folders.MARK
    mark.touch()
    assert "by day; 1 entries" in look("records", records).found
    mark.unlink()
    mark.symlink_to("/dev/null")
    check = look("records", records)
    assert (check.state, check.found.endswith("counts for nobody")) == ("warning", True)


def test_a_folder_with_many_entries_is_told_with_what_to_do(records: Path) -> None:
    """By hard links, which are made faster than folders, of as many files as a file system lets."""
    (records / day(0)).mkdir(parents=True)
    for number in range(MANY - 1):
        if number % 30_000 == 0:
            source = records / str(number)
            source.touch()
        else:
            os.link(source, records / str(number))
    assert look("records", records).state == "ok"
    assert f"; {MANY - 1} entries" in look("records", records).found
    (records / "x").touch()
    check = look("records", records)
    assert (check.state, f"{MANY} entries or more" in check.found) == ("warning", True)
    assert "touch RECORD_DIR/.steelyard-records" in check.advice
    assert look("sweep", records).found.endswith("or more lie loose, and no sweep has gone through")
    (records / record_folders.MARK).touch()
    check = look("records", records)
    assert (check.state, check.advice[:13]) == ("warning", "they are from")


def test_when_a_sweep_last_did_all(records: Path) -> None:
    assert "no sweep has gone through" in look("sweep", records).found
    (records / day(40) / "1").mkdir(parents=True)
    (records / f"{day(50)}.packs").mkdir(parents=True)
    check = look("sweep", records)
    assert check.state == "warning"
    assert check.found == f"{records}: jobs of {day(40)} lie loose, and no sweep has gone through"
    (records / day(40) / "1" / "link").symlink_to("nothing")
    sweeps(records, quota_bytes=1)  # which cannot be met
    assert "no sweep has gone through" in look("sweep", records).found
    sweeps(records)
    check = look("sweep", records)
    assert (check.state, "went through 0 days ago; jobs of" in check.found) == ("ok", True)
    os.utime(records / sweep.LOCK, (time.time() - 4 * DAY_S - 60,) * 2)
    check = look("sweep", records)
    assert (check.state, "went through 4 days ago" in check.found) == ("warning", True)
    assert "install-sweep" in check.advice


def test_what_a_dry_run_looks_at_is_not_swept(records: Path) -> None:
    sweep.sweep(SweepRequest(records, 7 * DAY_S, dry_run=True))
    assert "no sweep has gone through" in look("sweep", records).found


def leave(spool: Path, name: str, text: str, age_s: float) -> None:
    path = spool / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - age_s,) * 2)


def test_the_spool(records: Path, spool: Path) -> None:
    assert (
        local_node.query_program(find_node_program(), "--only=spool", "--spool-dir=/no/spool") == []
    )
    there = f"--spool-dir={spool}"
    check = look("spool", records, there)
    assert (check.state, "bears no mark" in check.found) == ("warning", True)
    (records / record_folders.MARK).touch()
    leave(spool, "1/n1.1.json", '{"end_unix_s": 5.0}', 60)
    leave(spool, "2/n1.1.json", '{"end_unix_s": null}', 20 * DAY_S)
    leave(spool, "2/n1.1.csv", "", 20 * DAY_S)
    check = look("spool", records, there)
    words = f"{spool}: 1 records to be sent on, 1 of jobs that run"
    assert (check.state, check.found) == ("ok", words)
    leave(spool, "1/n1.2.json", '{"end_unix_s": 6.0}', 5 * 3600 + 60)
    check = look("spool", records, there)
    assert check.state == "warning"
    assert check.found.startswith(f"2 records that are over lie in {spool}, the oldest for 5 hours")
    assert "steelyard-forward" in check.advice


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away: needs root")
def test_a_share_where_root_is_nobody_is_in_order_with_a_spool(records: Path, spool: Path) -> None:
    """Its owner's, and so is its mark (root_squash): no advice that nobody could follow."""
    mark = records / record_folders.MARK
    mark.touch()
    for path in (records, mark):
        os.chown(path, 65533, 65533)
    assert look("records", records, "--spool-dir=/no/spool").state == "warning"
    there = f"--spool-dir={spool}"
    assert [look(n, records, there).state for n in ("records", "record folder", "spool")] == [
        "ok"
    ] * 3
    assert "records go there by the spool" in look("record folder", records, there).found
    os.chown(mark, 65534, 65534)  # neither root's nor its owner's
    assert look("spool", records, there).state == "warning"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts")
def test_a_mount_point_is_guarded_by_its_mark_and_a_spool(records: Path, spool: Path) -> None:
    """It runs in a private mount namespace, which removes the mount."""
    words = f"mount -t tmpfs -o mode=755 none {records} && touch {records / record_folders.MARK}"
    asked = f"{find_node_program()} doctor --json '--only=record folder' --record-dir={records}"
    for where, state in ((spool, "ok"), ("/no/spool", "warning")):
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", f"{words} && {asked} --spool-dir={where}"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        (check,) = json.loads(done.stdout)
        assert check["state"] == state, check
        assert ("a folder below it" in check["advice"]) == (state == "warning")


def test_nodes_are_alike_though_one_counts_an_entry_more() -> None:
    answers = [Answer(n, (Check("records", "ok", f"{n} entries"),)) for n in ("n1", "n2")]
    assert [group.nodes for group in remote_nodes.group_nodes(answers)] == [("n1", "n2")]
