"""Samples: many CSV files into few Parquet files by few statements, docs/formats.md part 2.

A study has ten thousand small files; opening each in DuckDB takes 1 ms. So small files of the same
columns and day are first put together into one, each line with the number of its file before it;
large ones are read where they are, many by one statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from duckdb import DuckDBPyConnection

from steelyard.analysis import records
from steelyard.analysis.background import Background
from steelyard.analysis.parts import KEY, Parts, day_of, scan
from steelyard.analysis.sample_lines import (
    COLUMNS,
    check_header,
    count_lines,
    csv_scan,
    find_refused,
    select_columns,
    times_of_ends,
)
from steelyard.analysis.spool import NO_ROOM, Spool

# Counters whose last value is a total of the job; `sources` keeps them per file.
TOTALS = tuple(name for name in records.TOTALS if name != "max_memory_bytes")

BATCH_BYTES = 256_000_000  # put together before DuckDB reads them: bounds the room on disk
BATCHES = 64  # open at once, one for each day and kind of columns
CHUNK_BYTES = 8_000_000
LARGE_BYTES = 256_000  # opening costs less than putting together
FILES_AT_ONCE = 500  # large ones in a statement
BYTES_AT_ONCE = 500_000_000  # of large ones: a part of some 60 MB

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
    """Files of the same columns and day on their way; put together into `path`, or where they are.

    `day` None: files that begin on one day and end on another.
    """

    def __init__(self, columns: tuple[str, ...], day: str | None, path: Path | None) -> None:
        self.columns = columns
        self.day = day
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

    def select(self) -> str:
        """The samples as a SELECT; lines that do not fit are left out."""
        lines = csv_scan(self.columns, self.paths, "ignore_errors", self.is_batch)
        file = 'f.file = s."sy file"' if self.is_batch else 'f.path = s."sy path"'
        return (
            f"SELECT f.run_id, f.attempt, f.node, {select_columns(self.columns)} "
            f"FROM {lines} AS s JOIN sample_files AS f ON {file}"
        )

    def close(self) -> None:
        """Nothing more comes: what was put together is written."""
        if self._file is not None:
            self._file.close()

    @property
    def is_full(self) -> bool:
        """Whether DuckDB should read it now."""
        return self.size_bytes >= BYTES_AT_ONCE or len(self.paths) >= FILES_AT_ONCE

    def remove(self) -> None:
        """DuckDB has read it."""
        if self.is_batch:
            self.paths[0].unlink()


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
LOADED_COLUMNS = {**KEY, "samples": "BIGINT", **{name: COLUMNS[name] for name in TOTALS}}

BatchKey = tuple[tuple[str, ...], str | None, bool]  # columns, day, whether put together


class Loader:
    """Writes files' samples to parts and notes them in `sources`; DuckDB works in the background.

    Lines that do not fit their columns are left out and counted in `sources.reason`. `scratch`
    is a folder for what is on its way.
    """

    def __init__(self, connection: DuckDBPyConnection, parts: Parts, scratch: Path) -> None:
        self.count = 0  # files that were added
        self.loaded = 0  # of which DuckDB has read
        self._connection = connection
        self._parts = parts
        self._scratch = scratch
        self._background = Background(connection)
        self._batches: dict[BatchKey, Batch] = {}
        self._changed: list[str] = []
        self._flushed = 0
        self._spool = self._new_spool()
        for table, columns in (("sample_files", FILE_COLUMNS), ("loaded", LOADED_COLUMNS)):
            names = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({names})")

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
        together = [batch for batch in self._batches.values() if batch.is_batch]
        if sum(batch.size_bytes for batch in together) >= BATCH_BYTES or len(together) >= BATCHES:
            self._flush(together)
        elif batch is not None and not batch.is_batch and batch.is_full:
            self._flush([batch])

    def _take(self, number: int, file: SampleFile) -> tuple[int, str | None, Batch | None]:
        """Lines of a file, what is wrong with it, and the batch that has it now."""
        with file.path.open("rb") as source:
            columns, problem = check_header(source.readline(), file.path)
            if problem is not None:
                return 0, problem, None
            days = {day_of(time) for time in times_of_ends(source, columns)}
            day = days.pop() if len(days) == 1 else None
            size = file.path.stat().st_size
            if size >= LARGE_BYTES:
                lines, is_whole = count_lines(file.path)
                if is_whole:
                    batch = self._batch((columns, day, False), number)
                    batch.paths.append(file.path)
                    batch.size_bytes += size
                    return lines - 1, None, batch
            batch = self._batch((columns, day, True), number)
            lines, is_whole = batch.append(number, source)
            return lines, None if is_whole else CUT, batch

    def _batch(self, key: BatchKey, number: int) -> Batch:
        """The batch for such files, begun when there is none."""
        if key not in self._batches:
            columns, day, is_batch = key
            path = self._scratch / f"samples-{number}.csv" if is_batch else None
            self._batches[key] = Batch(columns, day, path)
        return self._batches[key]

    def _flush(self, batches: Sequence[Batch]) -> None:
        """Have DuckDB take the names of all files so far, and read batches."""
        for batch in batches:
            del self._batches[batch.columns, batch.day, batch.is_batch]
            batch.close()
        spool, changed, count = self._spool, self._changed, self.count
        spool.close()
        self._flushed += 1
        self._spool, self._changed = self._new_spool(), []

        def work() -> None:
            self._connection.execute(f"INSERT INTO sample_files {spool.select()}")
            spool.path.unlink()
            if changed:
                forget(self._connection, self._parts, changed)
            for batch in batches:
                written = self._parts.write(batch.select(), batch.day)
                batch.remove()
                note_loaded(self._connection, [part.path for part in written])
            self.loaded = count

        self._background.submit(work)

    def finish(self) -> None:
        """What is still on its way; then nothing is at work in the background."""
        self._flush(list(self._batches.values()))
        self._background.wait()
        if self.count:
            note_sources(self._connection, self._scratch)
            self._parts.refresh()


def load(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], parts: Parts, scratch: Path
) -> Iterator[int]:
    """Load files one after the other; yields how many."""
    with Loader(connection, parts, scratch) as loader:
        for file in files:
            loader.add(file)
            yield loader.count
        loader.finish()


def note_loaded(connection: DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Rows and totals of what was just written, per file of samples; all rows of one are in it."""
    # Counters only grow: the largest value is the last one.
    totals = ", ".join(f"max({name})" for name in TOTALS)
    keys = ", ".join(KEY)
    connection.execute(
        f"INSERT INTO loaded SELECT {keys}, count(*), {totals} FROM {scan(paths)} GROUP BY {keys}"
    )


def note_sources(connection: DuckDBPyConnection, scratch: Path) -> None:
    """Rows read and lines refused, per file."""
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


def forget(connection: DuckDBPyConnection, parts: Parts, keys: Sequence[str]) -> None:
    """Take the samples of these files, names in `sources`, out again: the files have changed."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE forgotten AS SELECT DISTINCT {', '.join(KEY)} "
        "FROM sources WHERE path IN (SELECT unnest(?))",
        [list(keys)],
    )
    parts.remove("forgotten")
    connection.execute("DELETE FROM sources WHERE path IN (SELECT unnest(?))", [list(keys)])


def forget_broken(connection: DuckDBPyConnection, parts: Parts) -> None:
    """Files of which samples are lost with a part that is gone or cut short are to be read again."""
    if not parts.broken:
        return
    rows = connection.execute(
        "SELECT path FROM sources LEFT JOIN (SELECT run_id, attempt, node, count(*) AS there "
        "FROM samples GROUP BY ALL) USING (run_id, attempt, node) "
        "WHERE sources.samples <> coalesce(there, 0)"
    ).fetchall()
    forget(connection, parts, [path for (path,) in rows])
