"""Files that no pack takes: reported with the reason, removed by age and quota, counted exactly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.sweep.swept_site import DAY_S, NOW, Site

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.commands import cli
from steelyard.wrappers.sweep import record_files


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "records")


def beside(folder: Path, name: str, size_bytes: int, age_s: float) -> None:
    """Write another file of a job; a large one takes no more of the disk than a small one."""
    path = folder / name
    path.write_bytes(os.urandom(min(size_bytes, 300_000)))
    os.truncate(path, size_bytes)
    path.chmod(0o440)
    os.utime(path, (NOW - age_s,) * 2)


def leave_all_kinds(site: Site, day: int) -> None:
    """Three jobs of a day: a plain one, and one for each thing that is in no pack."""
    age_s = day * DAY_S
    site.leave(f"plain-{day}", age_s)
    site.leave(f"private-{day}", age_s, mode=0o400)
    large = site.leave(f"large-{day}", age_s, flat=True)
    beside(large, f"n1.{NOW - age_s}.csv", record_files.MOST_BYTES + 1, age_s)


def test_the_last_line_says_what_stays_and_why(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_all_kinds(site, 20)
    site.leave("running", 20 * DAY_S, end=None)
    assert cli.main(["sweep", "--record-dir", str(site.dir)]) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert "1 job (2 files) packed" in told
    assert "1 job waits, without an end or touched since" in told
    assert "4 files are never packed (2 not for their group, 2 over 64 MB; " in told
    assert site.loose() == {"running", "private-20", "large-20"}


def test_a_file_of_exactly_the_limit_is_packed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site.leave("7", 20 * DAY_S)
    largest = max(path.stat().st_size for path in folder.iterdir())
    monkeypatch.setattr(record_files, "MOST_BYTES", largest)
    site.leave("8", 20 * DAY_S, end=1.25)  # three bytes more
    assert (site.sweep().stay_files, site.loose()) == ({record_files.LARGE: 2}, {"8"})


def test_a_quota_removes_no_more_than_it_must(site: Site) -> None:
    for day in (30, 20, 10):
        leave_all_kinds(site, day)
    total = site.sweep().used_bytes
    assert site.sweep(quota_bytes=total).removed_bytes == 0
    assert len(site.sweep(quota_bytes=total - 1).removed_days) == 1
    assert "plain-20" in record_folders.list_job_ids(site.dir)


def test_what_runs_is_never_removed_by_age(site: Site) -> None:
    """It has no end."""
    folder = site.leave("running", 40 * DAY_S, end=None)
    assert site.sweep(older_than_s=30 * DAY_S).left_jobs == 1
    (why,) = site.sweep(quota_bytes=1).failed
    assert why.endswith("(--pack-after)")
    assert len(list(folder.iterdir())) == 2


def test_empty_folders_go_after_a_week(site: Site) -> None:
    for name, age_s in (("4711", 8 * DAY_S), ("4712", 6 * DAY_S)):
        folder = site.dir / name
        folder.mkdir()
        os.utime(folder, (NOW - age_s,) * 2)
    assert site.sweep(dry_run=True).empty_folders == 1
    assert site.sweep().empty_folders == 1
    assert record_folders.list_job_ids(site.dir) == {"4712"}


def test_what_is_an_administrators_stays(site: Site) -> None:
    leave_all_kinds(site, 30)
    beside(
        site.dir / record_folders.format_day(NOW - 30 * DAY_S) / "plain-30", "note", 10, 30 * DAY_S
    )
    for name in ("lost+found", "backup"):
        (site.dir / name).mkdir()
    beside(site.dir / "backup", "copy.tar", 10, 400 * DAY_S)
    os.utime(site.dir / "lost+found", (1, 1))
    site.sweep()
    done = site.sweep(older_than_s=10 * DAY_S, quota_bytes=1)
    assert (done.stay_files, done.empty_folders) == ({record_files.OTHER: 1}, 0)
    assert sorted(p.name for p in site.dir.rglob("*") if not p.name.startswith(".")) == sorted(
        ["lost+found", "backup", "copy.tar", *record_folders.format_day(NOW - 30 * DAY_S).split("/"),
         "plain-30", "note"]
    )  # fmt: skip
