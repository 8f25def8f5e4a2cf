"""The samples' Parquet files: by day, whole or not at all, never doubled."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from steelyard.analysis.store import sample_store, schema
from steelyard.analysis.store.schema import SAMPLE_COLUMNS

DAY_S = 86400.0


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(schema.build_schema())
    return connection


def rows_of(run: str, *times: str) -> str:
    """Return the SQL of a SELECT of samples of a run at these times."""
    cells = {"run_id": f"'{run}'", "attempt": "'1.0'", "node": "'n1'", "unix_s": "t"}
    names = ", ".join(
        f"{cells.get(name, 'NULL')}::{kind} AS {name}"
        for name, kind in sample_store.ALL_COLUMNS.items()
    )
    return f"SELECT {names} FROM (SELECT unnest([{', '.join(times)}]) AS t)"


def begin(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> sample_store.Parts:
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    return sample_store.Parts(connection, tmp_path, scratch)


def files(tmp_path: Path) -> dict[str, int]:
    """Return the files of each day."""
    return Counter(path.parent.name for path in (tmp_path / sample_store.FOLDER).glob("*/*"))


def found(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> list[tuple[str, float]]:
    sample_store.attach_view(connection, tmp_path)
    return connection.execute("SELECT run_id, unix_s FROM samples ORDER BY ALL").fetchall()


def test_rows_go_to_their_days(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    mine = begin(connection, tmp_path)
    times = ("1", f"{DAY_S - 1e-6}", f"{DAY_S}", "NULL", "-1", "1e300", "'nan'::DOUBLE")
    written = mine.write(rows_of("a", *times), None)
    assert {part.day: part.samples for part in written} == {
        "1970-01-01": 2, "1970-01-02": 1, "unknown": 4,
    }  # fmt: skip
    mine.publish()
    assert files(tmp_path) == {"day=1970-01-01": 1, "day=1970-01-02": 1, "day=unknown": 1}
    assert len(found(connection, tmp_path)) == 7


@pytest.mark.parametrize("other", [f"{DAY_S}", "NULL", "'nan'::DOUBLE", "'inf'::DOUBLE"])
def test_a_day_that_is_not_what_was_said_is_divided(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, other: str
) -> None:
    written = begin(connection, tmp_path).write(rows_of("a", "1", other, "2"), "1970-01-01")
    assert sorted((p.day == "1970-01-01", p.samples) for p in written) == [(False, 1), (True, 2)]
    assert len(list((tmp_path / "scratch").rglob("*.parquet"))) == 2


def test_no_rows_are_no_file(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    mine = begin(connection, tmp_path)
    for day in ("1970-01-01", None):
        assert mine.write(rows_of("a", "1") + " WHERE false", day) == []
    mine.publish()
    assert files(tmp_path) == {} and found(connection, tmp_path) == []


def test_small_ones_of_a_day_become_one(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    for number in range(sample_store.SMALL_PARTS + 1):
        mine = begin(connection, tmp_path)
        mine.write(rows_of(f"r{number}", "1", f"{DAY_S}" if number == 3 else "2"), None)
        mine.publish()
        sample_store.remove_uncounted_files(connection, tmp_path)
        before = files(tmp_path)
        assert before["day=1970-01-01"] == (1 if number == sample_store.SMALL_PARTS else number + 1)
    assert before["day=1970-01-02"] == 1
    assert len(found(connection, tmp_path)) == 2 * (sample_store.SMALL_PARTS + 1)


def test_large_ones_stay(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_store, "SMALL_BYTES", 1)
    mine = begin(connection, tmp_path)
    for number in range(sample_store.SMALL_PARTS + 1):
        mine.write(rows_of(f"r{number}", "1"), "1970-01-01")
    mine.publish()
    assert files(tmp_path) == {"day=1970-01-01": sample_store.SMALL_PARTS + 1}


def test_rows_that_are_removed(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    mine = begin(connection, tmp_path)
    mine.write(rows_of("a", "1", f"{DAY_S}"), None)
    mine.write(rows_of("b", "2"), "1970-01-01")
    mine.write(f"{rows_of('a', '3')} UNION ALL {rows_of('b', '4')}", "1970-01-01")
    mine.publish()
    mine = begin(connection, tmp_path)
    connection.execute(
        "CREATE TEMP TABLE gone AS SELECT 'a' AS run_id, '1.0' AS attempt, 'n1' AS node"
    )
    mine.remove("gone")
    assert len(found(connection, tmp_path)) == 5  # as long as it is not published
    mine.publish()
    sample_store.remove_uncounted_files(connection, tmp_path)
    assert found(connection, tmp_path) == [("b", 2.0), ("b", 4.0)]
    assert files(tmp_path) == {"day=1970-01-01": 2}


def test_what_is_lost_is_not_read(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    mine = begin(connection, tmp_path)
    for run in "abc":
        mine.write(rows_of(run, "1"), "1970-01-01")
    mine.publish()
    first, second, _ = sorted((tmp_path / sample_store.FOLDER).glob("*/*"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    assert found(connection, tmp_path) == [("c", 1.0)]
    assert [part.path for part in sample_store.find_lost_parts(connection, tmp_path)] == [
        first,
        second,
    ]
    assert begin(connection, tmp_path).broken


def test_files_that_do_not_count_are_swept(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    sample_store.store_samples(connection, tmp_path, rows_of("a", "1"))
    stray = tmp_path / sample_store.FOLDER / "day=1970-01-05" / "000009.parquet"
    stray.parent.mkdir()
    stray.write_bytes(b"PAR1")
    sample_store.remove_uncounted_files(connection, tmp_path)
    assert files(tmp_path) == {"day=1970-01-01": 1} and not stray.parent.exists()


def test_what_others_put_there_is_left_alone(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    sample_store.store_samples(connection, tmp_path, rows_of("a", "1"))
    folder = tmp_path / sample_store.FOLDER
    (folder / "day=notes").write_text("x", encoding="utf-8")
    (folder / "day=1970-01-05" / "out.parquet").mkdir(parents=True)  # as Spark writes
    half = folder / "day=1970-01-01" / ".000009.parquet.part"
    half.write_bytes(b"PAR1")
    sample_store.remove_uncounted_files(connection, tmp_path)
    assert not half.exists()
    assert (folder / "day=notes").exists() and (folder / "day=1970-01-05/out.parquet").exists()


@pytest.mark.skipif(
    Path("/dev/shm").stat().st_dev == Path("/tmp").stat().st_dev, reason="no second file system"
)
def test_samples_on_another_file_system(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        (tmp_path / "parquet").symlink_to(other)
        for run in "ab":
            sample_store.store_samples(connection, tmp_path, rows_of(run, "1"))
        assert found(connection, tmp_path) == [("a", 1.0), ("b", 1.0)]
        assert len(list(Path(other).rglob("day=*/*"))) == 2


def test_folders_with_odd_names(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    folder = tmp_path / "it's [1] *?"
    folder.mkdir()
    (tmp_path / "it's 1 xx").mkdir()  # what a pattern would find
    sample_store.store_samples(connection, folder, rows_of("a", "1"))
    assert found(connection, folder) == [("a", 1.0)]


def test_a_part_has_the_columns_of_samples(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    sample_store.store_samples(connection, tmp_path, rows_of("a", "1"))
    (path,) = (tmp_path / sample_store.FOLDER).glob("*/*")
    rows = connection.execute(
        f"DESCRIBE FROM read_parquet('{path}', hive_partitioning = false)"
    ).fetchall()
    assert {row[0]: row[1] for row in rows} == sample_store.KEY | SAMPLE_COLUMNS
