"""Files that no pack takes: reported with the reason, removed by age and quota, counted exactly."""

from __future__ import annotations

import os

import pytest
from tests.unit.sweep.swept_site import DAY_S, Site
from tests.unit.sweep.test_stay import leave_all_kinds
from tests.unit.sweep.test_stay import site as site  # noqa: PLC0414 - a fixture

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.sweep import record_files


def used(site: Site) -> int:
    """By du; the lock alone is no record."""
    os.sync()
    return site.du()


@pytest.mark.parametrize("limit", ["age", "quota"])
def test_all_kinds_go_by_age_and_by_quota_and_are_counted_to_the_byte(
    site: Site, limit: str
) -> None:
    for day in (30, 20, 10):
        leave_all_kinds(site, day)
    packed = site.sweep()
    before = used(site)
    assert packed.used_bytes + record_files.disk_bytes(site.dir) == before
    if limit == "age":
        done = site.sweep(older_than_s=15 * DAY_S)
    else:
        done = site.sweep(quota_bytes=packed.used_bytes // 2)
    assert done.failed == []
    assert before - used(site) == done.removed_bytes > 400_000
    assert done.used_bytes + record_files.disk_bytes(site.dir) == used(site)
    assert record_folders.list_job_ids(site.dir) == {
        f"{kind}-10" for kind in ("plain", "private", "large")
    }
    assert (len(done.removed_days), done.removed_files) == (2, 8)
    assert done.stay_files == {record_files.LARGE: 2, record_files.PRIVATE: 2}
