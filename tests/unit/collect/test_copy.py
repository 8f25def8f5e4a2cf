"""A file that is brought into the study is its source, whoever copies it: the kernel or we."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from steelyard.analysis.collect import records_in

SIZES = (0, 1, records_in.COPY_BYTES, 2 * records_in.COPY_BYTES + 17)


def copied(folder: Path, size: int) -> None:
    source, target = folder / "n1.1.csv", folder / "into" / "n1.1.csv"
    source.write_bytes(os.urandom(size))
    records_in.copy_file(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert records_in.same_file(source, target)


@pytest.mark.parametrize("size", SIZES)
def test_by_the_kernel(tmp_path: Path, size: int) -> None:
    copied(tmp_path, size)


@pytest.mark.parametrize("size", SIZES)
def test_where_the_kernel_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    def refuse(*_: int) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "sendfile", refuse)
    copied(tmp_path, size)


def test_a_full_disk_is_told_and_no_part_is_taken_for_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "sendfile", fill)
    with pytest.raises(OSError, match="No space left"):
        copied(tmp_path, 5)
    assert not (tmp_path / "into" / "n1.1.csv").exists()
