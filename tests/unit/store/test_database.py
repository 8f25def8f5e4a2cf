"""A study's database: DuckDB's memory is bounded by us, and a foreign file is not touched.

What does not fit into memory goes to the study's own disk.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.cluster.database import VERSION as CLUSTER_VERSION
from steelyard.analysis.store import database
from steelyard.analysis.store.database import SCHEMA_VERSION

from ..collect import study as HELP

MORE_THAN_FITS = "CREATE TEMP TABLE t AS SELECT random() AS r FROM range(8000000)"  # 64 MB


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MEMORY_LIMIT", "40MB")


@pytest.mark.usefixtures("small")
def test_what_does_not_fit_goes_into_the_scratch_folder(tmp_path: Path) -> None:
    with database.open_for_writing(tmp_path) as connection:
        connection.execute(MORE_THAN_FITS)
        assert list((tmp_path / database.SPILL_FOLDER).iterdir())
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(8000000,)]
    assert not (tmp_path / database.SPILL_FOLDER).exists()


@pytest.mark.usefixtures("small")
def test_a_disk_without_room_for_it_is_told(tmp_path: Path) -> None:
    words = f"could not be written and is as it was before: .* Is the disk of {tmp_path} full"
    with (
        pytest.raises(MissingError, match=words),
        database.open_for_writing(tmp_path) as connection,
    ):
        connection.execute("SET max_temp_directory_size = '1MB'")
        connection.execute(MORE_THAN_FITS)


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


@pytest.mark.parametrize("version", [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1])
def test_a_database_of_another_version_is_left_alone(study: Any, version: int) -> None:
    study.collect()
    database = study.dir / "study.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE meta SET schema_version = ?", [version])
    before = database.read_bytes()
    with pytest.raises(UsageError, match=f"schema version {version}.*move it away") as caught:
        study.collect()
    assert "\n" not in str(caught.value) and database.read_bytes() == before


def test_what_is_no_database_is_left_alone(study: Any) -> None:
    (study.dir / "study.duckdb").write_bytes(b"x" * 8192)
    with pytest.raises(UsageError, match="cannot be opened"):
        study.collect()


def test_the_page_of_formats_has_the_version() -> None:
    """It was 4 when the version was 5."""
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    assert f"`meta.schema_version` is {SCHEMA_VERSION};" in page
    assert f"`meta.schema_version` is {CLUSTER_VERSION};" in page
