"""Samples: many CSV files into the table `samples` by few statements, docs/formats.md part 2.

A study has ten thousand small files; opening each in DuckDB takes 1 ms. So small files of the same
columns are first put together into one, each line with the number of its file before it; large ones
are read where they are, many by one statement.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from duckdb import DuckDBPyConnection

from steelyard.analysis import records
from steelyard.analysis.spool import NO_ROOM, Spool, quote

# The fixed columns; a file may have more (zones, devices), or fewer in a version to come.
COLUMNS = {
    "unix_s": "DOUBLE",
    "elapsed_s": "DOUBLE",
    "cpu_s": "DOUBLE",
    "memory_bytes": "BIGINT",
    "processes": "BIGINT",
    "rchar_bytes": "BIGINT",
    "wchar_bytes": "BIGINT",
    "read_bytes": "BIGINT",
    "write_bytes": "BIGINT",
    "rx_bytes": "BIGINT",
    "tx_bytes": "BIGINT",
    "sent_segments": "BIGINT",
    "retransmitted_segments": "BIGINT",
    "pressure_cpu_s": "DOUBLE",
    "pressure_io_s": "DOUBLE",
    "pressure_memory_s": "DOUBLE",
    "energy_j": "DOUBLE",
    "rtt_s": "DOUBLE",
}
NEEDED = ("unix_s", "elapsed_s")

# Counters whose last value is a total of the job; `sources` keeps them per file.
TOTALS = tuple(name for name in records.TOTALS if name != "max_memory_bytes")

BATCH_BYTES = 256_000_000  # put together before DuckDB reads them: bounds the room on disk
CHUNK_BYTES = 8_000_000
LARGE_BYTES = 256_000  # opening costs less than putting together
FILES_AT_ONCE = 200  # large ones in a statement

CUT = "the last line was cut short and is left out"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of samples and what it belongs to."""

    path: Path
    key: str  # its name in the table `sources`: the path inside the study folder
    run_id: str
    attempt: str
    node: str

    def stamp(self) -> tuple[int, int]:
        """Size in bytes and time of the last change in ns: what tells a changed file."""
        status = self.path.stat()
        return status.st_size, status.st_mtime_ns


def check_header(line: bytes, path: Path) -> tuple[tuple[str, ...], str | None]:
    """Column names from a file's first line, and what is wrong with them."""
    columns = tuple(line.decode("utf-8", "replace").rstrip("\r\n").split(","))
    if not line.endswith(b"\n"):
        return columns, f"{path} has no whole line"
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        return columns, f"{path} has no column '{lacking[0]}'"
    if len(set(columns)) < len(columns):
        return columns, f"{path} has a column name twice"
    return columns, None


class Batch:
    """Files of the same columns put together into one."""

    def __init__(self, columns: tuple[str, ...], path: Path) -> None:
        self.columns = columns
        self.path = path
        self.size_bytes = 0
        self.lines = 0
        self._file = path.open("wb")

    def append(self, number: int, source: BinaryIO) -> bool:
        """The rest of a file behind its header; False when its last line was cut short."""
        prefix = b"%d," % number
        rest = b""
        while chunk := source.read(CHUNK_BYTES):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                text = prefix + whole.replace(b"\n", b"\n" + prefix) + b"\n"
                self._file.write(text)
                self.size_bytes += len(text)
                self.lines += whole.count(b"\n") + 1
        return not rest

    def load(self, connection: DuckDBPyConnection) -> None:
        """Into `samples`; lines that do not fit are left out and noted in reject_errors."""
        self._file.close()
        read_files(connection, self.columns, [self.path], is_batch=True)
        self.path.unlink()


FILE_COLUMNS = {
    "file": "BIGINT",
    "key": "VARCHAR",
    "run_id": "VARCHAR",
    "attempt": "VARCHAR",
    "node": "VARCHAR",
    "size_bytes": "BIGINT",
    "modified_unix_ns": "BIGINT",
    "path": "VARCHAR",
}
# Where a file begins in its batch (lines count from 1), and what is wrong with it.
PLACE_COLUMNS = {
    "file": "BIGINT",
    "batch": "VARCHAR",
    "first_line": "BIGINT",
    "reason": "VARCHAR",
}


def load(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], scratch: Path
) -> Iterator[int]:
    """Append the files' samples and note them in `sources`; yields how many files were read.

    Lines that do not fit their columns are left out and counted in `sources.reason`. `scratch`
    is a folder for what is on its way.
    """
    if not files:
        return
    with Spool(scratch / "sample_files.jsonl", FILE_COLUMNS) as spool:
        for number, file in enumerate(files):
            what = (file.key, file.run_id, file.attempt, file.node, *file.stamp())
            spool.write((number, *what, str(file.path)))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample_files AS {spool.select()}")
    batches: dict[tuple[str, ...], Batch] = {}
    large: dict[tuple[str, ...], list[Path]] = {}
    with Spool(scratch / "sample_places.jsonl", PLACE_COLUMNS) as places:
        for number, file in enumerate(files):
            columns = large_file(places, number, file)
            if columns is not None:
                large.setdefault(columns, []).append(file.path)
                if len(large[columns]) == FILES_AT_ONCE:
                    read_files(connection, columns, large.pop(columns))
            else:
                batch = put_together(batches, places, number, file, scratch)
                if batch is not None and batch.size_bytes >= BATCH_BYTES:
                    batches.pop(batch.columns).load(connection)
            if number % 100 == 99:
                yield number + 1
    for columns, paths in large.items():
        read_files(connection, columns, paths)
    for batch in batches.values():
        batch.load(connection)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample_places AS {places.select()}")
    note_sources(connection)
    yield len(files)


def large_file(places: Spool, number: int, file: SampleFile) -> tuple[str, ...] | None:
    """The columns of a file that can be read where it is: large, and whole to its last line."""
    try:
        # DuckDB would take these letters in a name for a pattern.
        if file.path.stat().st_size < LARGE_BYTES or set(str(file.path)) & set("*?[]"):
            return None
        with file.path.open("rb") as source:
            columns, problem = check_header(source.readline(), file.path)
            source.seek(-1, os.SEEK_END)
            if problem is not None or source.read(1) != b"\n":
                return None
    except OSError:  # put_together says why
        return None
    places.write((number, str(file.path), 2, None))
    return columns


def put_together(
    batches: dict[tuple[str, ...], Batch],
    places: Spool,
    number: int,
    file: SampleFile,
    scratch: Path,
) -> Batch | None:
    """Append a file to the batch of its columns; None when it cannot be read at all."""
    try:
        with file.path.open("rb") as source:
            columns, problem = check_header(source.readline(), file.path)
            if problem is not None:
                places.write((number, None, None, problem))
                return None
            if columns not in batches:
                batches[columns] = Batch(columns, scratch / f"samples-{number}.csv")
            batch = batches[columns]
            first_line = batch.lines + 1
            is_whole = batch.append(number, source)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        places.write((number, None, None, f"{file.path} cannot be read: {error.strerror}"))
        return None
    places.write((number, str(batch.path), first_line, None if is_whole else CUT))
    return batch


def read_files(
    connection: DuckDBPyConnection,
    columns: Sequence[str],
    paths: Sequence[Path],
    is_batch: bool = False,
) -> None:
    """Files of these columns into `samples`, what is refused into DuckDB's temporary reject_errors.

    A batch has no header, and the number of its file before each line.
    """
    types = [f"{quote(name)}: '{COLUMNS.get(name, 'VARCHAR')}'" for name in columns]
    if is_batch:
        types.insert(0, "'sy file': 'BIGINT'")
    values = ", ".join(f's."{name}"' if name in columns else "NULL" for name in COLUMNS)
    names = ", ".join(COLUMNS)
    file = 'f.file = s."sy file"' if is_batch else 'f.path = s."sy path"'
    connection.execute(
        f"INSERT INTO samples (run_id, attempt, node, {names}) "
        f"SELECT f.run_id, f.attempt, f.node, {values} FROM read_csv([{', '.join(map(quote, map(str, paths)))}], "
        f"auto_detect = false, header = {not is_batch}, delim = ',', quote = '', escape = '', "
        f"new_line = '\\n', columns = {{{', '.join(types)}}}, store_rejects = true, "
        f"filename = 'sy path') AS s JOIN sample_files AS f ON {file}"
    )


def note_sources(connection: DuckDBPyConnection) -> None:
    """Rows read and lines refused, per file."""
    # The tables of refused lines appear with the first read_csv that keeps them.
    has_refused = connection.execute(
        "SELECT count(*) = 2 FROM duckdb_tables() WHERE temporary "
        "AND table_name IN ('reject_errors', 'reject_scans')"
    ).fetchall()[0][0]
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE refused AS "
        + (
            # Its own first line is the header.
            "SELECT p.file, count(DISTINCT e.line) AS lines, min(e.line - p.first_line + 2) AS first "
            "FROM (SELECT file_path, line FROM reject_errors JOIN reject_scans "
            "  USING (scan_id, file_id)) AS e "
            "ASOF JOIN sample_places AS p ON p.batch = e.file_path AND p.first_line <= e.line "
            "GROUP BY ALL"
            if has_refused
            else "SELECT NULL::BIGINT AS file, 0 AS lines, 0 AS first WHERE false"
        )
    )
    # Counters only grow: the largest value is the last one.
    totals = ", ".join(f"max({name}) AS {name}" for name in TOTALS)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE loaded AS "
        f"SELECT run_id, attempt, node, count(*) AS samples, {totals} FROM samples "
        "SEMI JOIN sample_files USING (run_id, attempt, node) GROUP BY ALL"
    )
    connection.execute(
        "INSERT INTO sources BY NAME SELECT f.key AS path, f.run_id, f.attempt, f.node, "
        "f.size_bytes, f.modified_unix_ns, coalesce(n.samples, 0) AS samples, "
        f"{', '.join(f'n.{name}' for name in TOTALS)}, "
        "nullif(concat_ws('; ', p.reason, CASE WHEN r.lines > 0 THEN r.lines || ' lines do not fit "
        "their columns and are left out, the first is line ' || r.first END), '') AS reason "
        "FROM sample_files AS f JOIN sample_places AS p USING (file) "
        "LEFT JOIN loaded AS n USING (run_id, attempt, node) LEFT JOIN refused AS r USING (file)"
    )


def forget(connection: DuckDBPyConnection, keys: Sequence[str]) -> None:
    """Take the samples of these files out again: the files have changed."""
    if not keys:
        return
    connection.execute(
        "DELETE FROM samples USING sources AS s WHERE s.path IN (SELECT unnest(?)) AND "
        "samples.run_id = s.run_id AND samples.attempt = s.attempt AND samples.node = s.node",
        [list(keys)],
    )
    connection.execute("DELETE FROM sources WHERE path IN (SELECT unnest(?))", [list(keys)])
