"""Days of the server's accounting that logrotate has packed."""

from __future__ import annotations

import bz2
import calendar
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.analysis.sources.pbs import accounting_logs, field_values

RECORDS = (
    "11/20/2026 06:00:10;Q;73.srv;queue=batch\n"
    "11/20/2026 06:10:20;E;73.srv;user=u1 queue=batch start=1795150020 end=1795150620 Exit_status=0\n"
)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("20261120", bytes),
        ("20261120.gz", gzip.compress),
        ("20261120.bz2", bz2.compress),
        ("20261120.xz", lzma.compress),
    ],
)
def test_they_are_read(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    (tmp_path / name).write_bytes(pack(RECORDS.encode()))
    (tmp_path / "20261121").write_text("")
    job = field_values.split_job_id("73.srv")
    assert job is not None
    found = accounting_logs.scan_logs(tmp_path, [job])
    assert [len(lines) for lines in found.found.values()] == [2]
    assert list(accounting_logs.list_user_jobs(tmp_path, "u1", 1795150020)) == ["73.srv"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("20261120.zst", b"x", "unpack it"),
        ("20261120.gz", gzip.compress(RECORDS.encode(), mtime=0)[:30], "damaged"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    job = field_values.split_job_id("73.srv")
    assert job is not None
    with pytest.raises(OSError, match=words):
        accounting_logs.scan_logs(tmp_path, [job])


def test_days_before_the_oldest_submission_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first line of a job is missing: no earlier day can have it."""
    for day in range(1, 29):
        (tmp_path / f"202611{day:02}").write_text("")
    read: list[str] = []
    real = accounting_logs.Scan.read_file
    monkeypatch.setattr(
        accounting_logs.Scan,
        "read_file",
        lambda self, path: read.append(path.name) or real(self, path),
    )
    job = field_values.split_job_id("7.srv")
    assert job is not None
    since_unix_s = calendar.timegm((2026, 11, 20, 12, 0, 0))
    accounting_logs.scan_logs(tmp_path, [job], since_unix_s)
    assert read == [f"202611{day:02}" for day in range(28, 17, -1)]
    read.clear()
    accounting_logs.scan_logs(tmp_path, [job])
    assert len(read) == 28
