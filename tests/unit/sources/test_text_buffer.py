"""One file's text after another in the same memory: nothing of the one before is taken for the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.sources import sample_arrays
from steelyard.analysis.sources.sample_arrays import TextBuffer

LONG = b"7,8,9\n" * 1000


def read(buffer: TextBuffer, path: Path, begin: int) -> tuple[bytes, bool]:
    with path.open("rb") as file:
        file.readline(begin)
        stood = file.tell()
        found = buffer.read(file)
        assert found is not None
        assert file.tell() == stood
        text, size, is_whole = found
        return bytes(text[:size]), is_whole


@pytest.mark.parametrize("next_text", [b"1,2\n", b"", b"1,2\n3,", b"3,4"])
def test_a_short_file_behind_a_long_one(tmp_path: Path, next_text: bytes) -> None:
    buffer, path = TextBuffer(), tmp_path / "n1.csv"
    for text in (b"5,6\n", LONG, next_text, LONG, next_text):
        path.write_bytes(b"a,b\n" + text)
        whole = text[: text.rfind(b"\n") + 1]
        assert read(buffer, path, 10) == (whole, whole == text)


def test_what_is_too_large_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_arrays, "TEXT_BYTES", len(LONG))
    path = tmp_path / "n1.csv"
    path.write_bytes(LONG)
    assert read(TextBuffer(), path, 0) == (LONG, True)
    path.write_bytes(LONG + b"\n")
    with path.open("rb") as file:
        assert TextBuffer().read(file) is None
