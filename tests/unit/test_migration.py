"""Databases of other versions: brought up to date with nothing lost, or left alone."""

from __future__ import annotations

import runpy
import shutil
import signal
import subprocess
import sys
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


def make_version_2(study: Any) -> None:
    """Of a collected study, as the Steelyard before left it."""
    with duckdb.connect(str(study.dir / "study.duckdb")) as connection:
        files = f"{study.dir}/parquet/samples/*/*.parquet"
        connection.execute(f"CREATE TABLE samples AS SELECT * EXCLUDE day FROM '{files}'")
        connection.execute("DROP TABLE sample_parts")
        connection.execute("ALTER TABLE records DROP rtt_floor_s")
        connection.execute("UPDATE meta SET schema_version = 2")
    shutil.rmtree(study.dir / "parquet")
    study.now_unix_s += 1


def test_a_database_of_version_2_is_brought_up_to_date(study: Any) -> None:
    study.collect()
    samples = query(study, "SELECT * FROM samples ORDER BY ALL")
    make_version_2(study)
    shutil.rmtree(study.dir / "records")  # and the files of samples are gone
    shutil.rmtree(study.record_dir)
    study.accounting.is_away = True
    study.collect()
    assert query(study, "SELECT * FROM samples ORDER BY ALL") == samples
    assert query(study, "SELECT schema_version FROM meta") == [(3,)]
    states = f"SELECT state FROM runs WHERE run_id = '{HELP.run_id('twonodes')}'"
    assert query(study, states) == [("completed",)]


def test_a_migrated_database_is_as_one_that_was_made_anew(study: Any) -> None:
    """With its records still there; columns in their order, with their comments."""
    schema = (
        "SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns() "
        "WHERE schema_name = 'main' AND NOT internal AND table_name <> 'samples' "
        "ORDER BY table_name, column_index"
    )
    study.collect()
    wanted = query(study, schema)
    tables = sorted({row[0] for row in wanted} - {"meta", "sample_parts"})
    rows = {table: query(study, f"SELECT * FROM {table} ORDER BY ALL") for table in tables}
    make_version_2(study)
    study.collect()
    assert query(study, schema) == wanted
    for table in tables:
        assert query(study, f"SELECT * FROM {table} ORDER BY ALL") == rows[table], table
    comments = "SELECT comment FROM duckdb_tables() WHERE table_name IN ('records', 'sample_parts')"
    assert all(comment for (comment,) in query(study, comments))


def test_what_a_killed_migration_left_is_taken_away(study: Any) -> None:
    study.collect()
    make_version_2(study)
    kill = "import os, signal, sys; from steelyard.analysis import merge, parts\n"
    kill += "def publish(self): os.kill(os.getpid(), signal.SIGKILL)\n"
    kill += (
        "parts.Parts.publish = publish\nfrom pathlib import Path; merge.collect(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", kill, str(study.dir)], check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL
    left = {path.name for path in study.dir.iterdir()}
    study.collect()
    hidden = {path.name for path in study.dir.iterdir() if path.name.startswith(".")}
    assert left and not hidden
    assert query(study, "SELECT count(*) FROM samples") == [(21,)]


def test_what_is_no_database_is_left_alone(study: Any) -> None:
    (study.dir / "study.duckdb").write_bytes(b"x" * 8192)
    with pytest.raises(UsageError, match="cannot be opened"):
        study.collect()
