"""steelyard sweep: packed, found again, removed; killed anywhere, nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from tests.unit.sweep.swept_site import DAY_S, NOW, Site, several

from steelyard.analysis.sources import record_folders, record_packs, sample_packs
from steelyard.analysis.sources.records import FORMAT, VERSION
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.sweep import packing, record_files, sweep

RECORD = {"format": FORMAT, "version": VERSION, "node": "n1", "complete": True, "end_unix_s": 1.5}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "records")


def test_all_of_old_jobs_is_packed_and_found(site: Site) -> None:
    several(site)
    site.leave("young", DAY_S)
    site.leave("running", 20 * DAY_S, end=None)
    site.leave("private", 20 * DAY_S, mode=0o400)
    done = site.sweep()
    assert site.loose() == {"young", "running", "private"}
    assert (done.packed_jobs, done.packed_files, done.failed) == (8, 16, [])
    assert site.found() == site.truth
    records = list(record_folders.iterate_records(site.dir))
    assert len(records) == len(site.truth) // 2
    assert all(site.truth[r.job_id, r.path.name][0] == r.read() for r in records)
    assert site.sweep().packed_files == 0
    assert site.found() == site.truth


def test_a_record_that_never_ended_is_packed_in_the_end(site: Site) -> None:
    site.leave("lost", 70 * DAY_S, end=None)
    site.sweep()
    assert site.loose() == set()
    assert site.found() == site.truth


def test_whatever_a_user_leaves_comes_back(site: Site) -> None:
    """Records and samples are their user's files: no content of theirs stops a sweep."""
    texts = [
        json.dumps(RECORD | {"job": {"cluster": "c\ud800\0"}, "probe": {"kernel": {"release": "\udfff\0"}}}),
        json.dumps(RECORD | {"sampler": {"samples": 1 << 70}}), "", "\0\0", "[" * 100_000, '"\u0000"',
    ]  # fmt: skip
    contents = [text.encode() for text in texts] + [b"\xff\xfe", b"{}\0\xff"]
    for number, content in enumerate(contents):
        folder = site.leave(f"7{number}", 20 * DAY_S, samples=b"\0" * number)
        (path,) = folder.glob("*.json")
        path.write_bytes(content)
        os.utime(path, ns=(site.truth[folder.name, path.name][1],) * 2)
        site.truth[folder.name, path.name] = (content, path.stat().st_mtime_ns)
    before = dict(site.truth)
    odd = site.leave("8", 20 * DAY_S)
    for path in list(odd.iterdir()):
        path.rename(odd / os.fsdecode(b"n\xff." + os.fsencode(path.name.partition(".")[2])))
    done = site.sweep()
    assert (done.failed, done.packed_files) == ([], len(before))
    assert done.stay_files == {record_files.OTHER: 2} and len(list(odd.iterdir())) == 2
    site.truth = before
    shutil.rmtree(odd)
    assert site.found() == site.truth
    (made,) = site.dir.rglob("records-*.parquet")
    found = duckdb.sql(f"SELECT cluster, kernel FROM '{made}' WHERE job_id = '70'").fetchall()
    assert found == [("c?\0", "?\0")]


def test_a_dry_run_changes_nothing(site: Site) -> None:
    several(site)
    before = sorted(site.dir.rglob("*"))
    done = site.sweep(dry_run=True, older_than_s=15 * DAY_S)
    assert (done.packed_jobs, done.packed_files) == (8, 16)
    assert sorted(set(site.dir.rglob("*")) - {site.dir / sweep.LOCK}) == before


def test_what_comes_late_gets_a_pack_of_its_own(site: Site) -> None:
    site.leave("7", 20 * DAY_S)
    site.sweep()
    site.leave("8", 20 * DAY_S)
    site.leave("7", 20 * DAY_S + 1 if NOW % DAY_S > 1 else 20 * DAY_S - 1)
    assert site.found() == site.truth
    site.sweep()
    assert site.found() == site.truth
    assert len(list(site.dir.rglob("records-*.parquet"))) == 2


def test_a_file_that_was_changed_since_counts_once(site: Site) -> None:
    folder = site.leave("7", 20 * DAY_S)
    site.sweep()
    folder.mkdir(parents=True)
    (name,) = (name for _, name in site.truth if name.endswith(".csv"))
    (folder / name).write_bytes(b"changed")
    os.utime(folder / name, (1, 1))
    site.truth["7", name] = (b"changed", 10**9)
    (folder / name).chmod(0o440)
    assert site.found() == site.truth
    site.sweep()
    assert site.loose() == set()
    assert site.found() == site.truth


@pytest.mark.parametrize("content", [b"elapsed_s,rx_bytes\n0.000000,8888888888\n", b"shorter"])
def test_a_file_that_changes_while_its_pack_is_made_stays(
    site: Site, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    (path,) = site.leave("7", 20 * DAY_S).glob("*.csv")
    write = packing.Pack.write

    def changed(self: packing.Pack) -> None:
        write(self)
        path.chmod(0o640)
        path.write_bytes(content)

    monkeypatch.setattr(packing.Pack, "write", changed)
    assert site.sweep().packed_files == 1
    assert path.read_bytes() == content
    site.truth["7", path.name] = (content, path.stat().st_mtime_ns)
    assert site.found() == site.truth


def test_a_folder_that_a_sweep_takes_away_while_it_is_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site.leave("7", 20 * DAY_S)
    site.sweep()
    assert not folder.exists()
    sources = record_folders.find_job_sources
    monkeypatch.setattr(
        record_folders, "find_job_sources", lambda *asked: [folder, *sources(*asked)]
    )
    (gone, packed) = record_folders.find_job_folders(site.dir, "7")
    assert gone == folder
    assert {path.name for path in packed.iterdir()} == {name for _, name in site.truth}


def test_samples_are_parsed_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not again to see whether they are what is in the pack: that is the most of a sweep."""
    several(site)
    made: list[sample_packs.Key] = []

    def noted(
        self: sample_packs.SampleTable, files: Sequence[sample_packs.File], every_s: int | None
    ) -> list[sample_packs.Frame]:
        made.extend(file.key for file in files)
        return insert(self, files, every_s)

    insert = sample_packs.SampleTable.insert
    monkeypatch.setattr(sample_packs.SampleTable, "insert", noted)
    monkeypatch.delattr(sample_packs, "read_texts")
    assert site.sweep().packed_files == len(site.truth)
    assert len(made) == len(set(made)) == len(site.truth) // 2
    monkeypatch.undo()
    assert site.found() == site.truth


def test_old_days_go_and_nothing_else(site: Site) -> None:
    site.leave("old", 100 * DAY_S)
    site.leave("younger", 50 * DAY_S)
    done = site.sweep(older_than_s=90 * DAY_S)
    assert done.left_jobs == 1, "not packed yet"
    assert site.found().keys() >= site.truth.keys()
    done = site.sweep(older_than_s=90 * DAY_S)
    assert (len(done.removed_days), done.left_jobs) == (1, 0)
    assert record_folders.list_job_ids(site.dir) == {"younger"}


def test_what_is_not_packed_yet_goes_when_it_is_said(site: Site) -> None:
    site.leave("old", 100 * DAY_S)
    site.leave("younger", 50 * DAY_S)
    assert site.sweep(older_than_s=90 * DAY_S, unpacked=True).removed_jobs == 1
    assert record_folders.list_job_ids(site.dir) == {"younger"}


def test_a_quota_takes_the_oldest_first(site: Site) -> None:
    for age in (30, 20, 10):
        site.leave(f"{age}", age * DAY_S)
    used = site.sweep().used_bytes
    done = site.sweep(quota_bytes=used - 1)
    assert record_folders.list_job_ids(site.dir) == {"20", "10"}
    assert len(done.removed_days) == 1
    site.leave("1", DAY_S)
    done = site.sweep(quota_bytes=1)
    assert record_folders.list_job_ids(site.dir) == {"1"}, "what is not packed stays"
    assert "the quota is 1" in done.failed[0]


def test_temporary_files_of_killed_writers(site: Site) -> None:
    killed, living = site.leave("killed", 20 * DAY_S), site.leave("living", 20 * DAY_S)
    for folder in (killed, living):
        (path,) = folder.glob("*.json")
        temporary = folder / f".{path.name}.tmp"
        temporary.write_bytes(bytes(16384))
        os.utime(temporary, (1, 1))
    os.utime(next(living.glob("*.csv")))
    assert site.sweep().temporary_files == 1
    assert next(site.dir.rglob(".*.json.tmp")).parent == living


def test_one_at_a_time_and_its_owner_alone(site: Site) -> None:
    site.sweep()
    with (site.dir / sweep.LOCK).open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        with pytest.raises(MissingError, match="another sweep"):
            site.sweep()
    site.dir.chmod(0o777)
    with pytest.raises(MissingError, match="chmod go-w"):
        site.sweep()


def test_a_pack_that_cannot_be_read_is_named(site: Site) -> None:
    site.leave("7", 20 * DAY_S)
    site.sweep()
    (made,) = site.dir.rglob("records-*.parquet")
    for damaged in (record_packs.samples_path(made), made):
        damaged.chmod(0o640)
        damaged.write_bytes(b"broken")
        assert record_folders.find_job_folders(site.dir, "7") == [made]
    record_packs.samples_path(made).unlink()
    assert record_folders.find_job_folders(site.dir, "7") == [made]


def test_readers_of_a_pack_are_those_of_its_files(site: Site) -> None:
    site.leave("7", 20 * DAY_S)
    site.leave("8", 20 * DAY_S, mode=0o444)
    site.sweep()
    modes = {p.name.split("-")[2]: p.stat().st_mode & 0o777 for p in site.dir.rglob("*.parquet")}
    assert modes == {"440": 0o440, "444": 0o444}


def test_the_command(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    several(site)
    assert cli.main(["sweep", "--record-dir", str(site.dir), "--older-than", "90d"]) == 0
    assert "8 jobs (16 files) packed, 0 days removed" in capsys.readouterr().out
    assert cli.main(["sweep", "--record-dir", str(site.dir), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["packed_jobs"] == 0
    for words in (["--quota", "5"], ["--older-than", "x"], ["--unpacked"]):
        with contextlib.suppress(SystemExit):
            assert cli.main(["sweep", "--record-dir", str(site.dir), *words]) == 2
        assert "expected" in capsys.readouterr().err or words == ["--unpacked"]


def test_many_files_make_several_packs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_FILES", 4)
    monkeypatch.setattr(packing, "BATCH_STARTS", 3)
    for number in range(7):
        site.leave(str(number), 20 * DAY_S)
    assert site.sweep().packs == 4
    assert site.found() == site.truth
    assert record_files.list_files(site.dir / "absent") == []
    assert record_packs.list_job_ids(site.dir / "absent.parquet") == []
