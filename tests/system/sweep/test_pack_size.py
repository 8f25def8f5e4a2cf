"""A pack is limited by its bytes: in memory, on the disk, and for a reader of one job."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import duckdb
import pytest
from tests.unit.sweep.swept_site import DAY_S, NOW, Site

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.wrappers.sweep import packing

KIB = 1024


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "records")


def leave_large(site: Site, jobs: int, size_bytes: int) -> None:
    """Samples that nothing makes smaller."""
    for number in range(jobs):
        folder = site.leave(f"{number:03}", 20 * DAY_S)
        (path,) = folder.glob("*.csv")
        path.write_bytes(os.urandom(size_bytes))
        os.utime(path, ns=(site.truth[folder.name, path.name][1],) * 2)
        site.truth[folder.name, path.name] = (path.read_bytes(), path.stat().st_mtime_ns)


def test_packs_and_what_waits_are_bound_by_bytes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 50 * KIB
    leave_large(site, 40, size)
    monkeypatch.setattr(packing, "PACK_BYTES", 400 * KIB)
    monkeypatch.setattr(packing, "BATCH_BYTES", 120 * KIB)
    waiting: list[int] = []
    insert = packing.Pack._insert

    def told(self: packing.Pack) -> None:
        waiting.append(self._waiting_bytes)
        insert(self)

    monkeypatch.setattr(packing.Pack, "_insert", told)
    done = site.sweep()
    assert done.packs == 5 and site.found() == site.truth
    assert 120 * KIB <= max(waiting) <= 121 * KIB + size
    sizes = [path.stat().st_size for path in site.dir.rglob("records-*.parquet")]
    assert sorted(sizes)[1] >= 400 * KIB and max(sizes) <= 400 * KIB + 4 * size


def groups_of(made: Path) -> list[tuple[int, int, str, str]]:
    """Rows, bytes, first and last job of each group of rows."""
    return duckdb.sql(
        "SELECT any_value(row_group_num_rows), any_value(row_group_bytes), "
        "min(stats_min_value) FILTER (path_in_schema = 'job_id'), "
        "max(stats_max_value) FILTER (path_in_schema = 'job_id') "
        f"FROM parquet_metadata('{made}') GROUP BY row_group_id ORDER BY row_group_id"
    ).fetchall()


def test_who_reads_one_record_reads_little(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_large(site, 60, 20 * KIB)
    copy = packing.COPY_RECORDS.replace(str(packing.RECORDS_GROUP_BYTES), str(100 * KIB))
    monkeypatch.setattr(packing, "COPY_RECORDS", copy)
    assert site.sweep().packs == 1
    (made,) = site.dir.rglob("*.parquet")
    groups = groups_of(made)
    assert sum(rows for rows, _, _, _ in groups) == 60
    for job_id in ("000", "031", "059"):
        mine = [size for _, size, low, high in groups if low <= job_id <= high]
        assert 1 <= len(mine) <= 2, "no more than where two groups meet"
        assert sum(mine) <= 3 * 120 * KIB
    assert site.found() == site.truth


def test_who_reads_the_samples_of_one_job_reads_little(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = b"".join(b"%d.000000,%d\n" % (number, number) for number in range(500))
    for number in range(60):
        site.leave(f"{number:03}", 20 * DAY_S, samples=b"elapsed_s,rx_bytes\n" + lines)
    copy = packing.COPY_SAMPLES.replace(str(packing.SAMPLES_GROUP_ROWS), "2048")
    monkeypatch.setattr(packing, "COPY_SAMPLES", copy)
    assert site.sweep().packs == 1
    (made,) = site.dir.rglob("samples-*.parquet")
    groups = groups_of(made)
    assert sum(rows for rows, _, _, _ in groups) == 60 * 500
    for job_id in ("000", "031", "059"):
        assert 1 <= sum(low <= job_id <= high for _, _, low, high in groups) <= 2
    assert site.found() == site.truth


def test_what_memory_does_not_hold_goes_beside_the_packs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not into the folder that it was started in: a unit of systemd may not write to `/`."""
    site.leave("7", 20 * DAY_S)
    found: list[tuple[str, str]] = []
    write = packing.Pack.write

    def told(self: packing.Pack) -> None:
        settings = "current_setting('temp_directory'), current_setting('memory_limit')"
        found.extend(self._engine.execute(f"SELECT {settings}").fetchall())
        write(self)

    monkeypatch.setattr(packing.Pack, "write", told)
    site.sweep()
    ((place, limit),) = found
    assert Path(place).parent == record_packs.pack_folder(
        site.dir / record_folders.format_day(NOW - 20 * DAY_S)
    )
    assert limit == "476.8 MiB"
    assert not list(site.dir.rglob(".spill"))


def test_what_a_killed_sweep_has_spilt_goes(site: Site) -> None:
    site.leave("7", 20 * DAY_S)
    site.sweep()
    (packs,) = site.dir.rglob("*.packs")
    (packs / packing.SPILL).mkdir()
    (packs / packing.SPILL / "duckdb_temp_storage-0.tmp").write_bytes(b"x" * 5000)
    assert site.sweep(dry_run=True).temporary_files == 1
    assert site.sweep().temporary_files == 1
    assert not (packs / packing.SPILL).exists() and site.found() == site.truth


def test_a_job_of_many_nodes_may_lie_in_several_packs(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = site.leave("7", 20 * DAY_S)
    sources = sorted(folder.iterdir())
    for node in range(2, 30):
        for source in sources:
            copy = folder / source.name.replace("n1.", f"n{node}.")
            copy.write_bytes(source.read_bytes())
            copy.chmod(0o440)
            old = source.stat().st_mtime_ns
            os.utime(copy, ns=(old, old))
            site.truth["7", copy.name] = (copy.read_bytes(), old)
    monkeypatch.setattr(packing, "PACK_BYTES", 300)
    assert site.sweep().packs > 3 and site.loose() == set()
    assert site.found() == site.truth
    records: Any = list(record_folders.iterate_records(site.dir))
    assert len(records) == 29
