"""Databases of other versions: brought up to date with nothing lost, or left alone."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from steelyard.analysis.errors import UsageError

HELP = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("merging") / "study.py")))
query = HELP.query


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def test_a_database_of_another_version_is_left_alone(study: Any) -> None:
    study.collect()
    with duckdb.connect(str(study.dir / "study.duckdb")) as connection:
        connection.execute("UPDATE meta SET schema_version = 99")
    with pytest.raises(UsageError, match="schema version 99"):
        study.collect()


def test_a_database_of_version_2_is_brought_up_to_date(study: Any) -> None:
    study.collect()
    samples = query(study, "SELECT * FROM samples ORDER BY ALL")
    with duckdb.connect(str(study.dir / "study.duckdb")) as connection:
        files = f"{study.dir}/parquet/samples/*/*.parquet"
        connection.execute(f"CREATE TABLE samples AS SELECT * EXCLUDE day FROM '{files}'")
        connection.execute("DROP TABLE sample_parts")
        connection.execute("ALTER TABLE records DROP rtt_floor_s")
        connection.execute("UPDATE meta SET schema_version = 2")
    shutil.rmtree(study.dir / "parquet")
    shutil.rmtree(study.dir / "records")  # and the files of samples are gone
    shutil.rmtree(study.record_dir)
    study.accounting.is_away = True
    study.now_unix_s += 1
    study.collect()
    assert query(study, "SELECT * FROM samples ORDER BY ALL") == samples
    assert query(study, "SELECT schema_version FROM meta") == [(3,)]
    states = f"SELECT state FROM runs WHERE run_id = '{HELP.run_id('twonodes')}'"
    assert query(study, states) == [("completed",)]


def test_what_is_no_database_is_left_alone(study: Any) -> None:
    (study.dir / "study.duckdb").write_bytes(b"x" * 8192)
    with pytest.raises(UsageError, match="cannot be opened"):
        study.collect()
