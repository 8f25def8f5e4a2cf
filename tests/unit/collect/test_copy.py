"""A file that is brought into the study is its source: linked, copied by the kernel, or by us."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from steelyard.analysis.collect import record_import

SIZES = (0, 1, record_import.COPY_BYTES, 2 * record_import.COPY_BYTES + 17)


def copied(folder: Path, size: int) -> None:
    source, target = folder / "n1.1.csv", folder / "into" / "n1.1.csv"
    source.write_bytes(os.urandom(size))
    record_import.copy_into_study(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert record_import.is_same_file(source, target)
    assert not target.samefile(source)


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


def left(folder: Path, text: str) -> Path:
    """Write files as the node program does."""
    source = folder / "n1.1.csv"
    source.unlink(missing_ok=True)
    source.write_text(text, encoding="ascii")
    source.chmod(0o440)
    return source


def test_what_nobody_may_write_is_linked_and_stays_when_its_source_goes(tmp_path: Path) -> None:
    source, target = left(tmp_path, "all of it"), tmp_path / "into" / "n1.1.csv"
    record_import.copy_into_study(source, target)
    assert target.samefile(source)
    source.unlink()
    assert target.read_text() == "all of it"
    record_import.copy_into_study(left(tmp_path, "another"), target)
    assert target.read_text() == "another"
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_where_there_can_be_no_link_it_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    source, target = left(tmp_path, "all of it"), tmp_path / "into" / "n1.1.csv"
    record_import.copy_into_study(source, target)
    assert target.read_text() == "all of it"
    assert record_import.is_same_file(source, target) and not target.samefile(source)


def test_a_link_that_the_user_left_is_not_linked_but_read(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.write_text("all of it", encoding="ascii")
    real.chmod(0o440)
    source, target = tmp_path / "n1.1.csv", tmp_path / "into" / "n1.1.csv"
    source.symlink_to(real)
    record_import.copy_into_study(source, target)
    assert not target.is_symlink() and target.read_text() == "all of it"


def test_a_record_is_not_linked_for_a_cluster_would_take_it_for_touched(tmp_path: Path) -> None:
    source, target = tmp_path / "n1.1.json", tmp_path / "into" / "n1.1.json"
    source.write_text("{}", encoding="ascii")
    source.chmod(0o440)
    before = source.stat()
    record_import.copy_into_study(source, target)
    assert target.read_text() == "{}"
    assert (source.stat().st_nlink, source.stat().st_ctime_ns) == (1, before.st_ctime_ns)
