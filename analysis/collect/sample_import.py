"""Imports samples: many CSV files into few Parquet files (docs/formats.md part 2).

The reader in C reads files in the sampler's own format into memory (sample_arrays.py). DuckDB reads
all others (sample_csv.py). A file that an earlier collect has read is only read again if it
changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from duckdb import DuckDBPyConnection

from steelyard.analysis.base.parallel_work import Background, OrderedWorker
from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.collect.record_import import Gap
from steelyard.analysis.sources import sample_csv, sample_library
from steelyard.analysis.sources.sample_arrays import ROWS, Room, RowBatch, Text, TextBuffer
from steelyard.analysis.sources.sample_csv import (
    TextBatch,
    find_refused,
    read_first_and_last_time,
    read_header,
)
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.database import open_side_engine
from steelyard.analysis.store.row_files import NO_ROOM, Spool, replace_lone_surrogates
from steelyard.analysis.store.sample_store import KEY, Parts, format_day, make_scan
from steelyard.analysis.store.schema import SAMPLE_COLUMNS
from steelyard.facts.quantities import COUNTERS
from steelyard.jobscripts.regular_files import open_regular

BATCH_BYTES = 256_000_000  # combined before DuckDB reads them: limits the disk space
BATCHES = 64  # open at once, one for each day and set of columns
ROWS_AT_ONCE = 2 * ROWS  # in memory, of all days, in addition to those that DuckDB writes
FILES_AHEAD = 32  # waiting for the reader; more would be evicted from the page cache
DAYS_AT_ONCE = 16  # each reserves 75 MB of addresses; files of further days share one

CUT = "the last line was cut short and is left out"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """A file of samples and the attempt and node it belongs to."""

    path: Path
    key: str  # its name in the table `sources`: the path inside the study folder
    run_id: str
    attempt: str
    node: str

    def read_stamp(self) -> tuple[int, int]:
        """Return size in bytes and modification time in ns, which show that a file has changed.

        (0, 0): the file cannot be reached; the next collect tries again.
        """
        try:
            status = self.path.stat()
        except OSError:
            return 0, 0
        return status.st_size, status.st_mtime_ns


FILE_COLUMNS = {
    "file": "BIGINT",
    "key": "VARCHAR",
    "run_id": "VARCHAR",
    "attempt": "VARCHAR",
    "node": "VARCHAR",
    "size_bytes": "BIGINT",
    "modified_unix_ns": "BIGINT",
    "path": "VARCHAR",
    "lines": "BIGINT",  # complete lines after the header
    "reason": "VARCHAR",  # what is wrong with the file
}
LOADED_COLUMNS = {**KEY, "samples": "BIGINT", **{name: SAMPLE_COLUMNS[name] for name in COUNTERS}}

Day = str | None  # None: several days


class Loader:
    """Writes files' samples to Parquet files and records them in `sources`.

    Files are read in the background, and DuckDB works in the background. Malformed lines are left
    out and counted in `sources.reason`. `scratch` is a folder for temporary files.
    """

    def __init__(self, connection: DuckDBPyConnection, parts: Parts, scratch: Path) -> None:
        self.count = 0  # files that were added
        self.loaded = 0  # of these, files that DuckDB has read
        self._taken = 0  # of these, files that the reader has read
        self._connection = connection
        self._parts = parts
        self._scratch = scratch
        self._reader = OrderedWorker("samples", FILES_AHEAD)
        self._background = Background(connection)
        self._engine = open_side_engine(scratch / "spill")
        self._texts: dict[tuple[tuple[str, ...], Day], TextBatch] = {}
        self._rows: dict[Day, RowBatch] = {}
        # Buffers of written batches are reused: allocating memory costs more than reading the
        # files.
        self._free: list[Room] = []
        self._text = TextBuffer()
        self._changed: list[str] = []
        self._flushed = 0
        self._files, self._totals = self._open_spools()
        for table, columns in (("sample_files", FILE_COLUMNS), ("loaded", LOADED_COLUMNS)):
            names = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({names})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        with contextlib.ExitStack() as all_of:  # on a full disk each of them may fail
            for closed in self._texts.values():
                all_of.callback(closed.close)
            all_of.callback(self._files.close)
            all_of.callback(self._totals.close)
            all_of.callback(self._engine.close)
            all_of.callback(self._reader.end)
            self._reader.cancel()
            self._background.close(interrupt=error is not None)

    def _open_spools(self) -> tuple[Spool, Spool]:
        """Open spools for rows of `sample_files`, and of `loaded` computed without DuckDB."""
        name = f"samples-{self._flushed}"
        return (
            Spool(self._scratch / f"{name}.files", FILE_COLUMNS),
            Spool(self._scratch / f"{name}.totals", LOADED_COLUMNS),
        )

    def add(self, file: SampleFile, instead_of: Sequence[str] = ()) -> None:
        """Add one file. Earlier samples of files with the keys `instead_of` are removed."""
        number, self.count = self.count, self.count + 1
        self._reader.submit(lambda: self._read(number, file, instead_of))

    def _read(self, number: int, file: SampleFile, instead_of: Sequence[str]) -> None:
        """Read one file into a batch, and write batches that are large enough."""
        self._changed += instead_of
        stamp = file.read_stamp()  # before reading: later changes are left to the next collect
        try:
            lines, reason = self._add_to_batch(number, file)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            lines, reason = 0, f"{file.path} cannot be read: {error.strerror}"
        what = (file.key, file.run_id, file.attempt, file.node, *stamp)
        self._files.write((number, *what, str(file.path), lines, reason))
        self._taken = number + 1
        size_bytes = sum(batch.size_bytes for batch in self._texts.values())
        if size_bytes >= BATCH_BYTES or len(self._texts) >= BATCHES:
            self._flush(list(self._texts.values()))
        if sum(batch.count for batch in self._rows.values()) >= ROWS_AT_ONCE:
            self._flush([max(self._rows.values(), key=lambda batch: batch.count)])

    def _add_to_batch(self, number: int, file: SampleFile) -> tuple[int, str | None]:
        """Add a file to a batch; return the number of its lines, and what is wrong with it."""
        with open_regular(file.path) as source:
            columns, problem = read_header(source, file.path)
            if problem is not None:
                return 0, problem
            lines, is_complete = self._read_lines(number, file, source, columns)
        fewer = (
            sample_csv.read_thinning_note(file.path)
            if sample_csv.THINNED_COLUMN in columns
            else None
        )
        return lines, "; ".join(filter(None, (None if is_complete else CUT, fewer))) or None

    def _read_lines(
        self, number: int, file: SampleFile, source: BinaryIO, columns: tuple[str, ...]
    ) -> tuple[int, bool]:
        """Read the lines after the header; return their number, and if the last is complete."""
        days = {format_day(time) for time in read_first_and_last_time(source, columns)}
        day = days.pop() if len(days) == 1 else None
        found = self._read_with_library(file, source, columns, day)
        if found is not None:
            return found
        if (columns, day) not in self._texts:
            path = self._scratch / f"samples-{number}.csv"
            self._texts[columns, day] = TextBatch(columns, day, path)
        return self._texts[columns, day].append(number, source)

    def _read_with_library(
        self, file: SampleFile, source: BinaryIO, columns: Sequence[str], day: Day
    ) -> tuple[int, bool] | None:
        """Do the same as `_read_lines` with the reader in C; None: not in the sampler's format."""
        found = None if sample_library.read_samples() is None else self._text.read(source)
        if found is None:
            return None
        text, size_bytes, is_complete = found
        if day not in self._rows and len(self._rows) >= DAYS_AT_ONCE:
            day = None
        for one in (day, None):
            batch, rows = self._read_into_batch(text, size_bytes, columns, one)
            if rows < 0:
                return None
            if batch.is_of_day(one):
                key = (file.run_id, file.attempt, file.node)
                self._totals.write((*key, rows, *batch.add_file_rows(key, COUNTERS)))
                break
        return rows, is_complete

    def _read_into_batch(
        self, text: Text, size_bytes: int, columns: Sequence[str], day: Day
    ) -> tuple[RowBatch, int]:
        """Read rows into the batch of a day; write that batch first if it is full."""
        while True:
            if day not in self._rows:
                self._rows[day] = RowBatch(day, self._free.pop() if self._free else None)
            batch = self._rows[day]
            rows = batch.read(text, size_bytes, columns)
            if rows != sample_library.FULL or batch.count == 0:
                return batch, rows
            self._flush([batch])

    def _flush(self, batches: Sequence[TextBatch | RowBatch]) -> None:
        """Have DuckDB import the names of all files so far, and write these batches' samples."""
        for batch in batches:
            if isinstance(batch, TextBatch):
                del self._texts[batch.columns, batch.day]
                batch.close()
            else:
                del self._rows[batch.day]
        files, totals, changed, count = self._files, self._totals, self._changed, self._taken
        files.close()
        totals.close()
        self._flushed += 1
        self._files, self._totals = self._open_spools()
        self._changed = []

        def work() -> None:
            for table, spool in (("sample_files", files), ("loaded", totals)):
                self._connection.execute(f"INSERT INTO {table} {spool.select()}")
                spool.path.unlink()
            if changed:
                remove_samples(self._connection, self._parts, changed)
            for batch in batches:
                if isinstance(batch, RowBatch):
                    batch.write(self._engine, self._parts)
                    self._free.append(batch.room)
                else:
                    written = batch.write(self._connection, self._parts)
                    record_loaded(self._connection, [part.path for part in written])
            self.loaded = count

        self._background.submit(work)

    def finish(self) -> None:
        """Write all remaining samples. Nothing runs in the background afterwards."""
        self._reader.wait()
        self._flush([*self._texts.values(), *self._rows.values()])
        self._background.wait()
        if self.count:
            record_sources(self._connection, self._scratch)
            self._parts.refresh()


def load_files(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], parts: Parts, scratch: Path
) -> Iterator[int]:
    """Load files one after another; yield their number so far."""
    with Loader(connection, parts, scratch) as loader:
        for file in files:
            loader.add(file)
            yield loader.count
        loader.finish()


def record_loaded(connection: DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Record rows and totals, per file of samples, of the Parquet files just written.

    All rows of a file of samples must be in them.
    """
    # Counters only grow: the largest value is the last one.
    totals = ", ".join(f"max({name})" for name in COUNTERS)
    keys = ", ".join(KEY)
    connection.execute(
        f"INSERT INTO loaded SELECT {keys}, count(*), {totals} FROM {make_scan(paths)} GROUP BY {keys}"
    )


def record_sources(connection: DuckDBPyConnection, scratch: Path) -> None:
    """Write `sources`: the rows read and the lines refused, per file."""
    with Spool(scratch / "refused.jsonl", {"file": "BIGINT", "words": "VARCHAR"}) as refusals:
        for file, path, lines, samples in connection.execute(
            "SELECT f.file, f.path, f.lines, coalesce(n.samples, 0) FROM sample_files AS f "
            "LEFT JOIN loaded AS n USING (run_id, attempt, node) "
            "WHERE f.lines > coalesce(n.samples, 0) ORDER BY f.file"
        ).fetchall():
            refused = find_refused(connection, Path(path), lines, samples, scratch)
            if refused is not None:
                refusals.write((file, refused.format_reason()))
    connection.execute(
        "INSERT INTO sources BY NAME SELECT f.key AS path, f.run_id, f.attempt, f.node, "
        "f.size_bytes, f.modified_unix_ns, coalesce(n.samples, 0) AS samples, "
        f"{', '.join(f'n.{name}' for name in COUNTERS)}, "
        "nullif(concat_ws('; ', f.reason, r.words), '') AS reason FROM sample_files AS f "
        "LEFT JOIN loaded AS n USING (run_id, attempt, node) "
        f"LEFT JOIN ({refusals.select()}) AS r USING (file)"
    )


def remove_samples(connection: DuckDBPyConnection, parts: Parts, keys: Sequence[str]) -> None:
    """Remove the samples of these changed files; `keys` are their names in `sources`."""
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE forgotten AS SELECT DISTINCT {', '.join(KEY)} "
        "FROM sources WHERE path IN (SELECT unnest(?))",
        [list(keys)],
    )
    parts.remove("forgotten")
    connection.execute("DELETE FROM sources WHERE path IN (SELECT unnest(?))", [list(keys)])


def find_broken_files(connection: DuckDBPyConnection, parts: Parts) -> set[str]:
    """Return the files, by name in `sources`, of samples in a lost or truncated Parquet file."""
    if not parts.broken:
        return set()
    rows = connection.execute(
        "SELECT path FROM sources LEFT JOIN (SELECT run_id, attempt, node, count(*) AS there "
        "FROM samples GROUP BY ALL) USING (run_id, attempt, node) "
        "WHERE sources.samples <> coalesce(there, 0)"
    ).fetchall()
    return {path for (path,) in rows}


def record_lost_samples(connection: DuckDBPyConnection, keys: Collection[str]) -> None:
    """Record in `sources` that samples of these files are lost and could not be read again."""
    if not keys:
        return
    connection.execute(
        "UPDATE sources SET samples = there, reason = concat_ws('; ', reason, "
        "concat(samples - there, if(samples - there = 1, ' sample is', ' samples are'), "
        "' lost with a Parquet file, and cannot be read again'))"
        " FROM (SELECT path AS key, count(samples.node) AS there FROM sources LEFT JOIN samples "
        "USING (run_id, attempt, node) GROUP BY path) WHERE path = key AND path IN (SELECT unnest(?))",
        [list(keys)],
    )


class ImportedFiles:
    """The files of samples that earlier collects read.

    The samples of a file that no longer exists stay: they may be all that remains of the job.
    """

    def __init__(self, connection: DuckDBPyConnection, parts: sample_store.Parts) -> None:
        rows = connection.execute(
            "SELECT path, size_bytes, modified_unix_ns, run_id, attempt, node FROM sources"
        ).fetchall()
        self._stored = {row[0]: row[1:] for row in rows}
        self._owners: dict[tuple[str, str, str], set[str]] = {}
        for path, _, _, *owner in rows:
            self._owners.setdefault(tuple(owner), set()).add(path)
        self.broken = find_broken_files(connection, parts)  # not yet read again

    def has_samples(self, file: SampleFile) -> bool:
        """Whether the database has the file's current samples, and none of another file."""
        stored = (*file.read_stamp(), file.run_id, file.attempt, file.node)
        others = self._owners.get(stored[2:], set()) - {file.key}
        return self._stored.get(file.key) == stored and not others and file.key not in self.broken

    def find_replaced_files(self, file: SampleFile) -> list[str]:
        """Return the keys of the files that the new file replaces: each node has one file."""
        keys = {file.key} | self._owners.get((file.run_id, file.attempt, file.node), set())
        self.broken -= keys
        return sorted(keys & self._stored.keys())


def find_sample_files(
    study_dir: Path, attempts: Iterable[Attempt], gaps: list[Gap]
) -> Iterator[SampleFile]:
    """Yield the files of samples that records name. A missing file becomes a gap."""
    for attempt in attempts:
        for node, record in attempt.records.items():
            path = record.samples_path
            if path is None:
                continue
            if not path.is_file():
                reason = f"the record names {path.name}, which is not beside it"
                gaps.append(Gap(attempt.run_id, attempt.attempt, node, "samples", reason))
                continue
            key = str(path.relative_to(study_dir))
            yield SampleFile(
                path, key, attempt.run_id, attempt.attempt, replace_lone_surrogates(node)
            )


def find_sample_gaps(connection: DuckDBPyConnection) -> Iterator[Gap]:
    """Yield gaps for lines that were left out, in this or an earlier collect."""
    rows = connection.execute(
        "SELECT run_id, attempt, node, path, reason FROM sources WHERE reason IS NOT NULL "
        "ORDER BY path"
    ).fetchall()
    for run_id, attempt, node, path, reason in rows:
        kind = "cut_samples" if reason.startswith(CUT) else "samples"
        yield Gap(run_id, attempt, node, kind, f"{path}: {reason}")
