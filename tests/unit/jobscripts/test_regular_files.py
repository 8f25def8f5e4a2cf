"""Files of others are read whole, of any size, and never more of them than is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steelyard.jobscripts import regular_files
from steelyard.jobscripts.regular_files import OddFileError, read_regular

LIMIT = 3 * regular_files.PIECE_BYTES


@pytest.mark.parametrize("size", [0, 1, regular_files.PIECE_BYTES, LIMIT])
def test_what_may_be_read_is_read_whole(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "left").write_bytes(data)
    assert read_regular(tmp_path / "left", LIMIT) == data


def test_one_byte_too_many_is_refused(tmp_path: Path) -> None:
    (tmp_path / "left").write_bytes(b"x" * (LIMIT + 1))
    with pytest.raises(OddFileError, match=f"{LIMIT + 1} bytes are more than the {LIMIT}"):
        read_regular(tmp_path / "left", LIMIT)


@pytest.mark.parametrize(("grown", "fits"), [(LIMIT, True), (LIMIT + 1, False)])
def test_a_file_that_grows_while_it_is_read_is_read_to_its_new_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grown: int, fits: bool
) -> None:
    path = tmp_path / "left"
    path.write_bytes(b"first")
    whole = b"first".ljust(grown, b"x")

    def looked_at(path: Path, fd: int, most_bytes: int) -> int:
        size = os.fstat(fd).st_size
        path.write_bytes(whole)
        return size

    monkeypatch.setattr(regular_files, "check", looked_at)
    if fits:
        assert read_regular(path, LIMIT) == whole
    else:
        with pytest.raises(OddFileError, match="more than"):
            read_regular(path, LIMIT)


def test_nobody_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "left")
    with pytest.raises(OddFileError, match="no regular file"):
        read_regular(tmp_path / "left", LIMIT)
