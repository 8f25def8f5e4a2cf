"""DuckDB's memory is bounded by us; what does not fit goes to the study's own disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.store import database

MORE_THAN_FITS = "CREATE TEMP TABLE t AS SELECT random() AS r FROM range(8000000)"  # 64 MB


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MEMORY_LIMIT", "40MB")


def test_what_does_not_fit_goes_into_the_scratch_folder(tmp_path: Path) -> None:
    with database.open_for_writing(tmp_path) as connection:
        connection.execute(MORE_THAN_FITS)
        assert list((tmp_path / database.SPILL_FOLDER).iterdir())
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(8000000,)]
    assert not (tmp_path / database.SPILL_FOLDER).exists()


def test_a_disk_without_room_for_it_is_told(tmp_path: Path) -> None:
    words = f"could not be written and is as it was before: .* Is the disk of {tmp_path} full"
    with (
        pytest.raises(MissingError, match=words),
        database.open_for_writing(tmp_path) as connection,
    ):
        connection.execute("SET max_temp_directory_size = '1MB'")
        connection.execute(MORE_THAN_FITS)
