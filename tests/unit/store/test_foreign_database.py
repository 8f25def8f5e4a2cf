"""A foreign file in place of a study's database: reported in one line, and not touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.cluster.database import VERSION as CLUSTER_VERSION
from steelyard.analysis.store.database import SCHEMA_VERSION

from ..collect import study as HELP


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
