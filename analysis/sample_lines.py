"""Files of samples as text: their columns, how many lines they have, and which do not fit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from duckdb import DuckDBPyConnection

from steelyard.analysis.spool import quote, quote_path

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

TAIL_BYTES = 4096  # longer than a line
# Searched at once for those that do not fit: DuckDB keeps more than 1 KB for each of them.
LINES_AT_ONCE = 10_000


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


def times_of_ends(file: BinaryIO, columns: Sequence[str]) -> Iterator[float]:
    """unix_s of the first and the last whole line behind the header, where `file` stands and stays.

    Less than both where a line has none, or the last is longer than any of ours.
    """
    begin = file.tell()
    first = file.readline()
    end = file.seek(0, os.SEEK_END)
    file.seek(max(begin, end - TAIL_BYTES))
    tail = file.read().rpartition(b"\n")[0]
    file.seek(begin)
    for line in (first, tail.rpartition(b"\n")[2]):
        with contextlib.suppress(ValueError, IndexError):
            yield float(line.split(b",")[columns.index("unix_s")])


def csv_scan(columns: Sequence[str], paths: Sequence[Path], what: str, is_batch: bool) -> str:
    """Files of these columns as a relation; `what` is read_csv's option for lines that do not fit.

    A batch has no header, and the number of its file before each line.
    """
    types = [f"{quote(name)}: '{COLUMNS.get(name, 'VARCHAR')}'" for name in columns]
    if is_batch:
        types.insert(0, "'sy file': 'BIGINT'")
    return (
        f"read_csv([{', '.join(map(quote_path, paths))}], auto_detect = false, "
        f"header = {not is_batch}, delim = ',', quote = '', escape = '', new_line = '\\n', "
        f"columns = {{{', '.join(types)}}}, {what} = true, filename = 'sy path')"
    )


def select_columns(columns: Sequence[str]) -> str:
    """The fixed columns, NULL where a file of these columns has none."""
    return ", ".join(
        f's."{name}"' if name in columns else f"NULL::{kind} AS {name}"
        for name, kind in COLUMNS.items()
    )


@dataclass(frozen=True, slots=True)
class Refused:
    """Lines of a file that do not fit its columns; `first` counts from 1, its header's number."""

    lines: int
    first: int

    def words(self) -> str:
        """For `sources.reason`."""
        return (
            f"{self.lines} lines do not fit their columns and are left out, "
            f"the first is line {self.first}"
        )


def find_refused(
    connection: DuckDBPyConnection, path: Path, loaded: int, scratch: Path
) -> Refused | None:
    """What of a file is not among its samples, of which `loaded` are; None: empty lines only.

    Read_csv could tell while it reads, but would hold all such lines in memory: 4 GB for 142 MB.
    """
    part = scratch / "lines.csv"
    first, lines, empty = None, 0, 0
    with path.open("rb") as file:
        columns, _ = check_header(file.readline(), path)
        for some in pieces(file):
            if first is None:
                part.write_bytes(",".join(columns).encode() + b"\n" + b"".join(some))
                place = first_refused(connection, columns, part)
                first = None if place is None else lines + place
            lines += len(some)
            empty += sum(line in (b"\n", b"\r\n") for line in some)
    part.unlink(missing_ok=True)
    return None if first is None else Refused(lines - empty - loaded, first)


def pieces(file: BinaryIO) -> Iterator[list[bytes]]:
    """Some whole lines after the other; the last line only when it has its end."""
    while some := list(islice(file, LINES_AT_ONCE)):
        if not some[-1].endswith(b"\n"):
            some.pop()
        yield some


def first_refused(connection: DuckDBPyConnection, columns: Sequence[str], path: Path) -> int | None:
    """The number of a file's first line that does not fit, its header being line 1."""
    scan = csv_scan(columns, [path], "store_rejects", is_batch=False)
    # Into a table as in earnest: columns that nobody wants are not looked at.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE tried AS SELECT {select_columns(columns)} FROM {scan} AS s"
    )
    found = connection.execute("SELECT min(line) FROM reject_errors").fetchall()[0][0]
    for table in ("tried", "reject_errors", "reject_scans"):
        connection.execute(f"DROP TABLE {table}")
    return None if found is None else int(found)
