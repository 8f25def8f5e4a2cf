"""Samples into the database: columns by name, missing stays missing, nothing is made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.base.parallel_work import Background
from steelyard.analysis.collect import sample_import
from steelyard.analysis.sources import sample_arrays, sample_csv, sample_library
from steelyard.analysis.store import sample_store, schema

COLUMNS = "unix_s,elapsed_s,cpu_s,memory_bytes"


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(schema.build_schema())
    return connection


@pytest.fixture(params=["ours", "DuckDB"], autouse=True)
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test with our reader, which must be there, and without it."""
    if request.param == "DuckDB":
        monkeypatch.setattr(sample_library, "read_samples", lambda: None)
    else:
        assert sample_library.read_samples() is not None, (
            "build/lib/libsteelyard-samples.so: make all"
        )


def load(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, **texts: str
) -> list[tuple[Any, ...]]:
    """Load files of these texts; the rows of `sources`."""
    files = []
    for name, text in texts.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(text, encoding="utf-8")
        files.append(sample_import.SampleFile(path, f"records/{name}.csv", "run", "1.0", name))
    scratch = tmp_path / "scratch"
    scratch.mkdir(exist_ok=True)
    found = sample_store.Parts(connection, tmp_path, scratch)
    for _ in sample_import.load_files(connection, files, found, scratch):
        pass
    found.publish()
    sample_store.attach_view(connection, tmp_path)
    return connection.execute("SELECT node, samples, reason FROM sources ORDER BY path").fetchall()


def rows(connection: duckdb.DuckDBPyConnection, columns: str = COLUMNS) -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT {columns} FROM samples ORDER BY ALL").fetchall()


def test_columns_are_found_by_name(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    text = "memory_bytes,a new one,elapsed_s,unix_s,energy_j:package-0\n7,x,0,1.5,9\n"
    assert load(connection, tmp_path, n1=text) == [("n1", 1, None)]
    assert rows(connection) == [(1.5, 0.0, None, 7)]


def test_empty_cells_are_null_and_zero_is_zero(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    load(connection, tmp_path, n1=f"{COLUMNS}\n1,0,,0\n2,1,0,\n")
    assert rows(connection) == [(1.0, 0.0, None, 0), (2.0, 1.0, 0.0, None)]


def test_a_cut_last_line_is_dropped_even_when_it_looks_whole(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    text = f"{COLUMNS}\n1,0,0,100\n2,1,0,10"  # of 1000
    assert load(connection, tmp_path, n1=text) == [("n1", 1, sample_import.CUT)]
    assert rows(connection) == [(1.0, 0.0, 0.0, 100)]
    assert (tmp_path / "n1.csv").read_text(encoding="utf-8") == text


def test_lines_that_do_not_fit_are_counted(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    text = f"{COLUMNS}\n1,0,0,1\n\0\0\0\n2,x,0,1\n3,2,0\n4,3,0,1,9\n5,4,0,1\n"
    ((node, count, reason),) = load(connection, tmp_path, n1=text)
    assert (node, count) == ("n1", 2)
    assert reason == "4 lines do not fit their columns and are left out, the first is line 3"
    assert [row[0] for row in rows(connection)] == [1.0, 5.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no whole line"),
        ("unix_s,elap", "has no whole line"),
        ("unix_s,cpu_s\n1,2\n", "has no column 'elapsed_s'"),
        (f"{COLUMNS},cpu_s\n1,2,3,4,5\n", "has a column name twice"),
    ],
)
def test_files_that_cannot_be_used(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, text: str, words: str
) -> None:
    ((_, count, reason),) = load(connection, tmp_path, n1=text)
    assert count == 0 and words in reason and rows(connection) == []


def test_only_a_header_is_a_file_without_samples(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    assert load(connection, tmp_path, n1=f"{COLUMNS}\n") == [("n1", 0, None)]


def test_one_bad_file_does_not_spoil_the_others(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    good = f"{COLUMNS}\n1,0,0,1\n"
    found = load(connection, tmp_path, n1=good, n2="", n3=good + "x,y\n", n4=good)
    assert [(node, count) for node, count, _ in found] == [
        ("n1", 1),
        ("n2", 0),
        ("n3", 1),
        ("n4", 1),
    ]
    assert [reason is None for _, _, reason in found] == [True, False, False, True]


def test_odd_names_of_files_and_columns(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    folder = tmp_path / 'it\'s "odd" [*] {x}'
    folder.mkdir()
    text = COLUMNS + ',rx_bytes:it\'s "odd"\n1,0,0,1,5\n'
    assert load(connection, folder, n1=text) == [("n1", 1, None)]


def test_more_files_than_one_batch_holds(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_import, "BATCH_BYTES", 30)
    monkeypatch.setattr(sample_csv, "CHUNK_BYTES", 7)
    monkeypatch.setattr(sample_import, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(sample_arrays, "ROWS", 3)
    texts = {f"n{number}": f"{COLUMNS}\n{number},0,0,1\n" for number in range(5)}
    assert [count for _, count, _ in load(connection, tmp_path, **texts)] == [1] * 5
    assert len(rows(connection)) == 5


def test_carriage_returns(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    """One of them stops DuckDB's reader altogether."""
    text = f"{COLUMNS}\n1,0,0,1\r\n2,1,0,\r\n\r\n3,2\r,0,1\n4,3,0,\r1\n5,4,0,1\n"
    found = load(connection, tmp_path, n1=text, n2=f"{COLUMNS}\r\n6,0,0,1\r\n")
    words = "2 lines do not fit their columns and are left out, the first is line 5"
    assert found == [("n1", 3, words), ("n2", 1, None)]
    assert [row[0] for row in rows(connection)] == [1.0, 2.0, 5.0, 6.0]


def test_an_empty_cell_too_many_is_not_overlooked(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    """A digit that became a comma moves all that follows into the next column."""
    ((_, count, reason),) = load(connection, tmp_path, n1=f"{COLUMNS}\n1,0,0,1\n2,1,5,0,\n")
    assert count == 1 and reason is not None and reason.startswith("1 line ")


@pytest.mark.parametrize("odd", ["CPU_S", "file", "c1", "", "a\0b", "sy file", "filename"])
def test_names_of_columns_that_only_differ_in_capitals_or_are_ours(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, odd: str
) -> None:
    text = f"{odd},{COLUMNS}\n9,1,0,0.5,1\n9,2,1,0.5,x\n"  # the last is no number: DuckDB reads it
    words = "1 line does not fit its columns and is left out, the first is line 3"
    assert load(connection, tmp_path, n1=text) == [("n1", 1, words)]
    assert rows(connection) == [(1.0, 0.0, 0.5, 1)]


def test_what_comes_while_a_file_is_read_is_left_to_the_next_collect(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = sample_import.Loader._add_to_batch

    def take_and_append(
        self: sample_import.Loader, number: int, file: sample_import.SampleFile
    ) -> Any:
        taken = take(self, number, file)
        with file.path.open("a", encoding="utf-8") as more:
            more.write("3,2,0,1\n" * 2)
        return taken

    monkeypatch.setattr(sample_import.Loader, "_add_to_batch", take_and_append)
    text = f"{COLUMNS}\n1,0,0,1\nx,1,0,1\n"
    words = "1 line does not fit its columns and is left out, the first is line 3"
    assert load(connection, tmp_path, n1=text) == [("n1", 1, words)]
    assert connection.execute("SELECT size_bytes FROM sources").fetchall() == [(len(text),)]


def test_a_file_that_is_gone_is_told(connection: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    mine = sample_store.Parts(connection, tmp_path, tmp_path / "scratch")
    file = sample_import.SampleFile(tmp_path / "n1.csv", "n1", "run", "1.0", "n1")
    assert list(sample_import.load_files(connection, [file], mine, tmp_path / "scratch")) == [1]
    ((size_bytes, reason),) = connection.execute(
        "SELECT size_bytes, reason FROM sources"
    ).fetchall()
    assert size_bytes == 0 and reason.endswith("cannot be read: No such file or directory")


def test_a_file_that_changed_is_read_anew(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    load(connection, tmp_path, n1=f"{COLUMNS}\n1,0,0,1\n", n2=f"{COLUMNS}\n1,0,0,2\n")
    path = tmp_path / "n1.csv"
    path.write_text(f"{COLUMNS}\n172801,0,0,3\n172802,0,0,3\n", encoding="utf-8")
    file = sample_import.SampleFile(path, "records/n1.csv", "run", "1.0", "n1")
    scratch = tmp_path / "scratch"
    found = sample_store.Parts(connection, tmp_path, scratch)
    with sample_import.Loader(connection, found, scratch) as loader:
        loader.add(file, ["records/n1.csv"])
        loader.finish()
    found.publish()
    sample_store.remove_uncounted_files(connection, tmp_path)
    sample_store.attach_view(connection, tmp_path)
    assert [row[3] for row in rows(connection)] == [2, 3, 3]
    files = sorted(str(path.parent.name) for path in (tmp_path / sample_store.FOLDER).glob("*/*"))
    assert files == ["day=1970-01-01", "day=1970-01-03"]
    kept = connection.execute("SELECT node, samples FROM sources ORDER BY node").fetchall()
    assert kept == [("n1", 2), ("n2", 1)]


def test_the_first_bad_line_is_found_far_behind_and_empty_lines_are_none(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_csv, "LINES_AT_ONCE", 2)
    good = "".join(f"{n},0,0,1\n" for n in range(7))
    text = f"{COLUMNS}\n{good}\nx,0,0,1\n9,9\n\n10,0,0,1\n"
    ((_, count, reason),) = load(connection, tmp_path, n1=text)
    assert count == 8
    assert reason == "2 lines do not fit their columns and are left out, the first is line 10"


def test_empty_lines_alone_are_nothing_to_tell(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    assert load(connection, tmp_path, n1=f"{COLUMNS}\n\n1,0,0,1\n\n") == [("n1", 1, None)]


def test_a_line_longer_than_any(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of a line is not held in memory, and is not taken for a line."""
    monkeypatch.setattr(sample_csv, "CHUNK_BYTES", 64)
    text = f"{COLUMNS}\n1,0,0,1\n{'x' * 1000}2,0,0,1\n3,0,0,1\n{'x' * 1000}"
    ((_, count, reason),) = load(connection, tmp_path, n1=text)
    words = "1 line does not fit its columns and is left out, the first is line 3"
    assert (count, reason) == (2, f"{sample_import.CUT}; {words}")


def test_files_of_more_days_than_may_be_open(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each open day has its own arrays."""
    monkeypatch.setattr(sample_import, "DAYS_AT_ONCE", 2)
    opened = []
    made = sample_arrays.RowBatch.__init__

    def make(
        self: sample_arrays.RowBatch, day: str | None, room: sample_arrays.Room | None
    ) -> None:
        opened.append(day)
        made(self, day, room)

    monkeypatch.setattr(sample_arrays.RowBatch, "__init__", make)
    texts = {f"n{n}": f"{COLUMNS}\n{86400 * (n % 5)},0,0,1\n" for n in range(10)}
    assert [count for _, count, _ in load(connection, tmp_path, **texts)] == [1] * 10
    assert len(rows(connection)) == 10
    if sample_library.read_samples() is not None:
        assert opened == ["1970-01-01", "1970-01-02", None]
    days = sorted(path.parent.name for path in (tmp_path / sample_store.FOLDER).glob("*/*"))
    assert days == [f"day=1970-01-0{n}" for n in range(1, 6)]


def test_the_memory_of_a_written_batch_is_used_again_and_nothing_of_it_is_left(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file lacks a column that the first one has, and has other lines."""
    made: list[int] = []
    new_room = sample_arrays.allocate_buffer

    def make() -> sample_arrays.Room:
        made.append(1)
        return new_room()

    monkeypatch.setattr(sample_arrays, "allocate_buffer", make)
    monkeypatch.setattr(sample_import, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(Background, "submit", lambda _, work: work())
    first = f"{COLUMNS}\n1,0.5,0.25,1\n2,0.5,0.25,1\n3,0.5,0.25,1\n"
    second = f"{COLUMNS.rpartition(',')[0]}\n4,0.75,0.5\n5,0.75,0.5\n"
    load(connection, tmp_path, n1=first, n2=second)
    if sample_library.read_samples() is not None:
        assert made == [1]
    assert [row[-1] for row in rows(connection)] == [1, 1, 1, None, None]
