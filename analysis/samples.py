"""Samples: many CSV files into the table `samples` by few statements, docs/formats.md part 2."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.spool import Spool, quote

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
}
NEEDED = ("unix_s", "elapsed_s")

# Files per statement: bounds the length of the statement and of the list of open files.
FILES_PER_STATEMENT = 2000

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


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a file before its lines are read."""

    columns: tuple[str, ...]
    is_cut: bool
    problem: str | None


def read_header(path: Path) -> Header:
    """Column names, and whether the last line has its line break."""
    try:
        with path.open("rb") as file:
            first = file.readline()
            is_cut = file.seek(0, os.SEEK_END) > 0 and not ends_with_newline(path)
    except OSError as error:
        return Header((), False, f"{path} cannot be read: {error.strerror}")
    columns = tuple(first.decode("utf-8", "replace").rstrip("\r\n").split(","))
    if not first.endswith(b"\n"):
        return Header((), is_cut, f"{path} has no whole line")
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        return Header((), is_cut, f"{path} has no column '{lacking[0]}'")
    if len(set(columns)) < len(columns):
        return Header((), is_cut, f"{path} has a column name twice")
    return Header(columns, is_cut, None)


def ends_with_newline(path: Path) -> bool:
    """The last byte of a file that is not empty."""
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def without_cut_line(path: Path, scratch: Path) -> Path:
    """A copy that ends with the last whole line; the file itself is never changed."""
    copy = scratch / f"cut-{len(list(scratch.iterdir()))}.csv"
    with path.open("rb") as source, copy.open("wb") as target:
        target.writelines(line for line in source if line.endswith(b"\n"))
    return copy


def load(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], scratch: Path
) -> Iterator[int]:
    """Append the files' samples and note them in `sources`; yields how many files were read.

    Lines that do not fit their columns are left out and counted in `sources.reason`. `scratch`
    is an empty folder for copies of files whose last line was cut short.
    """
    if not files:
        return
    groups = list_files(connection, files, scratch)
    done = 0
    # Files with the same columns are read by one statement.
    for columns, paths in groups.items():
        for start in range(0, len(paths), FILES_PER_STATEMENT):
            batch = paths[start : start + FILES_PER_STATEMENT]
            read_group(connection, columns, batch)
            done += len(batch)
            yield done
    note_sources(connection)


FILE_COLUMNS = {
    "key": "VARCHAR",
    "path": "VARCHAR",
    "run_id": "VARCHAR",
    "attempt": "VARCHAR",
    "node": "VARCHAR",
    "size_bytes": "BIGINT",
    "modified_unix_ns": "BIGINT",
    "reason": "VARCHAR",
}


def list_files(
    connection: DuckDBPyConnection, files: Sequence[SampleFile], scratch: Path
) -> dict[tuple[str, ...], list[str]]:
    """The files into the temporary table sample_files; readable ones by their columns."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    with Spool(scratch / "sample_files.jsonl", FILE_COLUMNS) as spool:
        for file in files:
            size, changed = file.stamp()
            header = read_header(file.path)
            path = without_cut_line(file.path, scratch) if header.is_cut else file.path
            reason = header.problem or (CUT if header.is_cut else None)
            spool.write(
                (file.key, str(path), file.run_id, file.attempt, file.node, size, changed, reason)
            )
            if header.problem is None:
                groups[header.columns].append(str(path))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE sample_files AS {spool.select()}")
    return groups


def read_group(
    connection: DuckDBPyConnection, columns: Sequence[str], paths: Iterable[str]
) -> None:
    """Files of the same columns into `samples`, what was refused into the temporary `refused`."""
    types = ", ".join(f"{quote(name)}: '{COLUMNS.get(name, 'VARCHAR')}'" for name in columns)
    values = ", ".join(f's."{name}"' if name in columns else "NULL" for name in COLUMNS)
    names = ", ".join(COLUMNS)
    connection.execute(
        f"INSERT INTO samples (run_id, attempt, node, {names}) "
        f"SELECT f.run_id, f.attempt, f.node, {values} FROM read_csv("
        f"[{', '.join(map(quote, paths))}], auto_detect = false, header = true, delim = ',', "
        f"quote = '', escape = '', new_line = '\\n', columns = {{{types}}}, filename = 'sy_path', "
        f"store_rejects = true) AS s JOIN sample_files AS f ON f.path = s.sy_path"
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
            "SELECT s.file_path AS path, count(DISTINCT e.line) AS lines, min(e.line) AS first "
            "FROM reject_errors AS e JOIN reject_scans AS s USING (scan_id, file_id) GROUP BY ALL"
            if has_refused
            else "SELECT NULL::VARCHAR AS path, 0 AS lines, 0 AS first WHERE false"
        )
    )
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE loaded AS "
        "SELECT run_id, attempt, node, count(*) AS samples, min(unix_s) AS first_unix_s, "
        "max(unix_s) AS last_unix_s FROM samples "
        "SEMI JOIN sample_files USING (run_id, attempt, node) GROUP BY ALL"
    )
    connection.execute(
        "INSERT INTO sources SELECT f.key, f.run_id, f.attempt, f.node, f.size_bytes, "
        "f.modified_unix_ns, coalesce(n.samples, 0), "
        "nullif(concat_ws('; ', f.reason, CASE WHEN r.lines > 0 THEN r.lines || ' lines do not fit "
        "their columns and are left out, the first is line ' || r.first END), '') AS reason "
        "FROM sample_files AS f LEFT JOIN loaded AS n USING (run_id, attempt, node) "
        "LEFT JOIN refused AS r USING (path)"
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
