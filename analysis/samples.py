"""Samples: many CSV files into the table `samples` by few statements, docs/formats.md part 2.

A study has ten thousand small files; opening each in DuckDB takes 1 ms. So small files of the same
columns are first put together into one, each line with the number of its file before it; large ones
are read where they are, many by one statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from duckdb import DuckDBPyConnection

from steelyard.analysis import export, records
from steelyard.analysis.background import Background
from steelyard.analysis.sample_lines import (
    COLUMNS,
    check_header,
    count_lines,
    csv_scan,
    find_refused,
    select_columns,
)
from steelyard.analysis.spool import NO_ROOM, Spool

# Counters whose last value is a total of the job; `sources` keeps them per file.
TOTALS = tuple(name for name in records.TOTALS if name != "max_memory_bytes")

BATCH_BYTES = 256_000_000  # put together before DuckDB reads them: bounds the room on disk
CHUNK_BYTES = 8_000_000
LARGE_BYTES = 256_000  # opening costs less than putting together
FILES_AT_ONCE = 500  # large ones in a statement

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


class Batch:
    """Files of the same columns on their way; put together into `path`, or where they are."""

    def __init__(self, columns: tuple[str, ...], path: Path | None) -> None:
        self.columns = columns
        self.paths = [] if path is None else [path]
        self.is_batch = path is not None
        self.size_bytes = 0
        self._file = None if path is None else path.open("wb")

    def append(self, number: int, source: BinaryIO) -> tuple[int, bool]:
        """The rest of a file behind its header; its whole lines, and whether that was all."""
        assert self._file is not None
        prefix = b"%d," % number
        rest, lines = b"", 0
        while chunk := source.read(CHUNK_BYTES):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                text = prefix + whole.replace(b"\n", b"\n" + prefix) + b"\n"
                self._file.write(text)
                self.size_bytes += len(text)
                lines += whole.count(b"\n") + 1
        return lines, not rest

    def load(self, connection: DuckDBPyConnection) -> None:
        """Into `samples`; lines that do not fit are left out."""
        scan = csv_scan(self.columns, self.paths, "ignore_errors", self.is_batch)
        file = 'f.file = s."sy file"' if self.is_batch else 'f.path = s."sy path"'
        connection.execute(
            f"INSERT INTO samples (run_id, attempt, node, {', '.join(COLUMNS)}) "
            f"SELECT f.run_id, f.attempt, f.node, {select_columns(self.columns)} "
            f"FROM {scan} AS s JOIN sample_files AS f ON {file}"
        )
        if self.is_batch:
            self.paths[0].unlink()

    def close(self) -> None:
        """Nothing more comes: what was put together is written."""
        if self._file is not None:
            self._file.close()


FILE_COLUMNS = {
    "file": "BIGINT",
    "key": "VARCHAR",
    "run_id": "VARCHAR",
    "attempt": "VARCHAR",
    "node": "VARCHAR",
    "size_bytes": "BIGINT",
    "modified_unix_ns": "BIGINT",
    "path": "VARCHAR",
    "lines": "BIGINT",  # whole ones behind the header
    "reason": "VARCHAR",  # what is wrong with it
}


class Loader:
    """Appends files' samples and notes them in `sources`; DuckDB reads them in the background.

    Lines that do not fit their columns are left out and counted in `sources.reason`. `scratch`
    is a folder for what is on its way.
    """

    def __init__(self, connection: DuckDBPyConnection, scratch: Path) -> None:
        self.count = 0  # files that were added
        self.loaded = 0  # of which DuckDB has read
        self.days: set[str] = set()  # UTC days that lost samples, after finish() also got some
        self._connection = connection
        self._scratch = scratch
        self._background = Background(connection)
        self._batches: dict[tuple[tuple[str, ...], bool], Batch] = {}
        self._changed: list[str] = []
        self._flushed = 0
        self._spool = self._new_spool()
        names = ", ".join(f"{name} {kind}" for name, kind in FILE_COLUMNS.items())
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sample_files ({names})")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.ExitStack() as all_of:  # on a full disk each of them may fail
            for batch in self._batches.values():
                all_of.callback(batch.close)
            all_of.callback(self._spool.close)
            self._background.close(interrupt=error is not None)

    def _new_spool(self) -> Spool:
        return Spool(self._scratch / f"sample_files-{self._flushed}.jsonl", FILE_COLUMNS)

    def add(self, file: SampleFile, *, changed: bool = False) -> None:
        """One file; `changed`: what was read from it before is taken out."""
        number, self.count = self.count, self.count + 1
        if changed:
            self._changed.append(file.key)
        batch = None
        try:
            lines, reason, batch = self._take(number, file)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            lines, reason = 0, f"{file.path} cannot be read: {error.strerror}"
        what = (file.key, file.run_id, file.attempt, file.node, *file.stamp())
        self._spool.write((number, *what, str(file.path), lines, reason))
        if batch is not None and (
            batch.size_bytes >= BATCH_BYTES or len(batch.paths) >= FILES_AT_ONCE
        ):
            self._flush(batch)

    def _take(self, number: int, file: SampleFile) -> tuple[int, str | None, Batch | None]:
        """Lines of a file, what is wrong with it, and the batch that has it now."""
        with file.path.open("rb") as source:
            columns, problem = check_header(source.readline(), file.path)
            if problem is not None:
                return 0, problem, None
            size = file.path.stat().st_size
            # DuckDB would take these letters in a name for a pattern.
            if size >= LARGE_BYTES and not set(str(file.path)) & set("*?[]"):
                lines, is_whole = count_lines(file.path)
                if is_whole:
                    batch = self._batch(columns, number, is_batch=False)
                    batch.paths.append(file.path)
                    batch.size_bytes += size
                    return lines - 1, None, batch
            batch = self._batch(columns, number, is_batch=True)
            lines, is_whole = batch.append(number, source)
            return lines, None if is_whole else CUT, batch

    def _batch(self, columns: tuple[str, ...], number: int, *, is_batch: bool) -> Batch:
        """The batch for files of these columns, begun when there is none."""
        key = (columns, is_batch)
        if key not in self._batches:
            path = self._scratch / f"samples-{number}.csv" if is_batch else None
            self._batches[key] = Batch(columns, path)
        return self._batches[key]

    def _flush(self, batch: Batch | None) -> None:
        """Have DuckDB take the names of all files so far, and read a batch."""
        if batch is not None:
            del self._batches[batch.columns, batch.is_batch]
            batch.close()
        spool, changed, count = self._spool, self._changed, self.count
        spool.close()
        self._flushed += 1
        self._spool, self._changed = self._new_spool(), []

        def work() -> None:
            self._connection.execute(f"INSERT INTO sample_files {spool.select()}")
            spool.path.unlink()
            if changed:
                self.days |= days_of(self._connection, changed)
                forget(self._connection, changed)
            if batch is not None:
                batch.load(self._connection)
            self.loaded = count

        self._background.submit(work)

    def finish(self) -> None:
        """What is still on its way; then nothing is at work in the background."""
        for batch in [*self._batches.values(), None]:
            self._flush(batch)
        self._background.wait()
        if self.count:
            note_sources(self._connection, self._scratch)
            self.days |= days_loaded(self._connection)


def load(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], scratch: Path
) -> Iterator[int]:
    """Load files one after the other; yields how many."""
    with Loader(connection, scratch) as loader:
        for file in files:
            loader.add(file)
            yield loader.count
        loader.finish()


def note_sources(connection: DuckDBPyConnection, scratch: Path) -> None:
    """Rows read and lines refused, per file."""
    # Counters only grow: the largest value is the last one.
    totals = ", ".join(f"max({name}) AS {name}" for name in TOTALS)
    day = export.number_of_day()
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE loaded AS "
        f"SELECT run_id, attempt, node, count(*) AS samples, min({day}) AS first_day, "
        f"max({day}) AS last_day, count({day}) < count(*) AS unknown_day, {totals} FROM samples "
        "SEMI JOIN sample_files USING (run_id, attempt, node) GROUP BY ALL"
    )
    with Spool(scratch / "refused.jsonl", {"file": "BIGINT", "words": "VARCHAR"}) as words:
        for file, path, samples in connection.execute(
            "SELECT f.file, f.path, coalesce(n.samples, 0) FROM sample_files AS f "
            "LEFT JOIN loaded AS n USING (run_id, attempt, node) "
            "WHERE f.lines > coalesce(n.samples, 0) ORDER BY f.file"
        ).fetchall():
            refused = find_refused(connection, Path(path), samples, scratch)
            if refused is not None:
                words.write((file, refused.words()))
    connection.execute(
        "INSERT INTO sources BY NAME SELECT f.key AS path, f.run_id, f.attempt, f.node, "
        "f.size_bytes, f.modified_unix_ns, coalesce(n.samples, 0) AS samples, "
        f"{', '.join(f'n.{name}' for name in TOTALS)}, "
        "nullif(concat_ws('; ', f.reason, r.words), '') AS reason FROM sample_files AS f "
        "LEFT JOIN loaded AS n USING (run_id, attempt, node) "
        f"LEFT JOIN ({words.select()}) AS r USING (file)"
    )


def days_loaded(connection: DuckDBPyConnection) -> set[str]:
    """The UTC days of what note_sources saw; a day between those of a file counts as one of it."""
    spans = connection.execute(
        "SELECT DISTINCT first_day, last_day, unknown_day FROM loaded"
    ).fetchall()
    days = {export.UNKNOWN} if any(unknown for _, _, unknown in spans) else set()
    for (number,) in connection.execute(
        f"SELECT DISTINCT {export.number_of_day()} AS day FROM samples WHERE day IS NOT NULL"
    ).fetchall():
        if any(first is not None and first <= number <= last for first, last, _ in spans):
            days.add(export.name_of_day(number))
    return days


def days_of(connection: DuckDBPyConnection, keys: Sequence[str]) -> set[str]:
    """The UTC days in which these files have samples."""
    connection.execute("CREATE OR REPLACE TEMP TABLE keys AS SELECT unnest(?) AS path", [keys])
    return export.days_of(
        connection,
        "(SELECT s.unix_s FROM samples AS s SEMI JOIN "
        "(SELECT * FROM sources SEMI JOIN keys USING (path)) USING (run_id, attempt, node))",
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
