"""Text files of samples: columns, line numbers, malformed and thinned lines, and reading by DuckDB.

A study has ten thousand small files, and opening each in DuckDB takes 1 ms. So `TextBatch` joins
files before DuckDB reads them. Only files that the reader in C (sample_library.py) rejects are read
here. Each line of samples that a sweep has thinned (docs/records.md) states it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from steelyard.analysis.store.row_files import quote_path
from steelyard.analysis.store.sample_store import Part, Parts
from steelyard.analysis.store.schema import SAMPLE_COLUMNS
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.jobscripts.regular_files import BULK_BYTES, open_regular

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

NEEDED = ("unix_s", "elapsed_s")

HEADER_BYTES = 1_000_000  # longer than any header; a file that begins with zeros has no line end
TAIL_BYTES = 4096  # longer than a line
# Lines per search for malformed ones.
LINES_AT_ONCE = 10_000
HEADER_LINES = 1


def read_header(file: BinaryIO, path: Path) -> tuple[tuple[str, ...], str | None]:
    """Return column names from a file's first line, and what is wrong with them, or None."""
    line = file.readline(HEADER_BYTES)
    columns = tuple(line.decode("utf-8", "replace").rstrip("\r\n").split(","))
    if not line.endswith(b"\n"):
        return columns, f"{path} has no whole line"
    lacking = [name for name in NEEDED if name not in columns]
    if lacking:
        return columns, f"{path} has no column '{lacking[0]}'"
    if len(set(columns)) < len(columns):
        return columns, f"{path} has a column name twice"
    return columns, None


def read_first_and_last_time(file: BinaryIO, columns: Sequence[str]) -> Iterator[float]:
    """Yield unix_s of the first and the last complete line after the position of `file`.

    The position stays. A line without a time is left out, and so is a last line that is too long.
    """
    begin = file.tell()
    first = file.readline(HEADER_BYTES)
    end = file.seek(0, os.SEEK_END)
    file.seek(max(begin, end - TAIL_BYTES))
    tail = file.read().rpartition(b"\n")[0]
    file.seek(begin)
    for line in (first, tail.rpartition(b"\n")[2]):
        with contextlib.suppress(ValueError, IndexError):
            yield float(line.split(b",")[columns.index("unix_s")])


def number_lines(lines: bytes, number: int) -> bytes:
    """Append a number to each complete line, as `make_csv_scan` needs it.

    DuckDB (2.0) fails at a carriage return. At a line's end it is removed; elsewhere it becomes a
    byte that fits no number. DuckDB also ignores an extra empty cell at a line's end, but not
    before a number.
    """
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\0")
    return lines.replace(b"\n", b",%d\n" % number)


def make_csv_scan(columns: Sequence[str], paths: Sequence[Path]) -> str:
    """Return SQL for files of numbered lines of these columns, without malformed lines.

    Columns are named by position (c0, c1, …), since a file's names may be any text, and DuckDB does
    not distinguish `a` from `A`. The last column is `file`, the number.
    """
    types = [f"'c{n}': '{SAMPLE_COLUMNS.get(name, 'VARCHAR')}'" for n, name in enumerate(columns)]
    return (
        f"read_csv([{', '.join(map(quote_path, paths))}], auto_detect = false, "
        "header = false, delim = ',', quote = '', escape = '', new_line = '\\n', "
        f"columns = {{{', '.join(types)}, 'file': 'BIGINT'}}, ignore_errors = true)"
    )


def make_column_selection(columns: Sequence[str]) -> str:
    """Return SQL for the fixed columns, with NULL for those that a file lacks."""
    return ", ".join(
        f"s.c{columns.index(name)} AS {name}" if name in columns else f"NULL::{kind} AS {name}"
        for name, kind in SAMPLE_COLUMNS.items()
    )


@dataclass(frozen=True, slots=True)
class RefusedLines:
    """Malformed lines of a file; `first` is the line number, where the header is line 1."""

    lines: int
    first: int

    def format_reason(self) -> str:
        """Return the text for `sources.reason`."""
        return (
            f"{counted(self.lines, 'line')} {inflect(self.lines, 'does', 'do')} not fit "
            f"{inflect(self.lines, 'its', 'their')} columns and {inflect(self.lines, 'is', 'are')} left out, "
            f"the first is line {self.first}"
        )


def find_refused(
    connection: DuckDBPyConnection, path: Path, complete_lines: int, loaded: int, scratch: Path
) -> RefusedLines | None:
    """Return the malformed lines among a file's `whole` lines, of which `loaded` became samples.

    None: only empty lines. Lines that were added to the file later are ignored. read_csv could
    report malformed lines, but would keep all of them in memory: 4 GB for 142 MB.
    """
    batch_file = scratch / "lines.csv"
    first, lines, empty = None, 0, 0
    with open_regular(path) as file:
        columns, _ = read_header(file, path)
        for some in split_into_batches(file, complete_lines):
            if first is None:
                index = find_first_refused(connection, columns, some, batch_file)
                first = None if index is None else lines + index + HEADER_LINES + 1
            lines += len(some)
            empty += sum(map(is_empty, some))
    batch_file.unlink(missing_ok=True)
    return None if first is None else RefusedLines(lines - empty - loaded, first)


def is_empty(line: bytes) -> bool:
    """Whether the line is empty, which is no error."""
    return line in (b"\n", b"\r\n")


def split_into_batches(file: BinaryIO, lines: int) -> Iterator[list[bytes]]:
    """Yield `lines` lines of the file in batches."""
    remaining = islice(file, lines)
    while some := list(islice(remaining, LINES_AT_ONCE)):
        yield some


def find_first_refused(
    connection: DuckDBPyConnection, columns: Sequence[str], lines: Sequence[bytes], batch_file: Path
) -> int | None:
    """Return the index of the first of these complete lines that is malformed and not empty."""
    batch_file.write_bytes(b"".join(number_lines(line, index) for index, line in enumerate(lines)))
    # The lines go into a table, since DuckDB ignores malformed values of unused columns.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE tried AS SELECT file, {make_column_selection(columns)} "
        f"FROM {make_csv_scan(columns, [batch_file])} AS s"
    )
    fitting = {index for (index,) in connection.execute("SELECT file FROM tried").fetchall()}
    connection.execute("DROP TABLE tried")
    refused = (n for n, line in enumerate(lines) if n not in fitting and not is_empty(line))
    return next(refused, None)


CHUNK_BYTES = 8_000_000


class TextBatch:
    """Files with the same columns and day, joined in `path`; `day` None: several days."""

    def __init__(self, columns: tuple[str, ...], day: str | None, path: Path) -> None:
        self.columns = columns
        self.day = day
        self.size_bytes = 0
        self._path = path
        self._file = path.open("wb")

    def append(self, number: int, source: BinaryIO) -> tuple[int, bool]:
        """Append the rest of a file after its header.

        Returns the number of complete lines, and whether the last line was complete.
        """
        rest, lines = b"", 0
        while chunk := source.read(CHUNK_BYTES):
            full_lines, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                text = number_lines(full_lines + newline, number)
                self._file.write(text)
                self.size_bytes += len(text)
                lines += full_lines.count(b"\n") + 1
            if len(rest) > CHUNK_BYTES:  # no sampler's line: make it malformed
                rest = b"," * len(self.columns)
        return lines, not rest

    def close(self) -> None:
        """Close the file of the batch."""
        self._file.close()

    def write(self, connection: DuckDBPyConnection, parts: Parts) -> list[Part]:
        """Write the samples to Parquet files, without malformed lines; return these files.

        The table `sample_files` must have the files.
        """
        lines = make_csv_scan(self.columns, [self._path])
        written = parts.write(
            f"SELECT f.run_id, f.attempt, f.node, {make_column_selection(self.columns)} "
            f"FROM {lines} AS s JOIN sample_files AS f USING (file)",
            self.day,
        )
        self._path.unlink()
        return written


THINNED_COLUMN = "thinned_s"
LINE_BYTES = 1 << 20  # longer than any line
THINNED = "a sweep has thinned its samples"


def read_spacing_s(header: bytes, first: bytes) -> int | None:
    """Return the seconds per remaining line, from a file's first two lines.

    0: only the ends remain. None: the file is complete.
    """
    names = header.rstrip(b"\r\n").split(b",")
    if THINNED_COLUMN.encode() not in names:
        return None
    cells = first.rstrip(b"\r\n").split(b",")
    column = names.index(THINNED_COLUMN.encode())
    return int(cells[column]) if column < len(cells) and cells[column].isdigit() else 0


def format_thinning_note(every_s: int) -> str:
    """Return the note for users."""
    remainder = f"one in {every_s} s is left" if every_s else "none is left between its ends"
    return f"{THINNED}: {remainder}. Totals are what they were; rates are means of longer times"


def read_thinning_note(path: Path | None) -> str | None:
    """Return the note for a file; None: it is complete, or does not exist."""
    if path is None:
        return None
    try:
        with open_regular(path, BULK_BYTES) as file:
            found = read_spacing_s(file.readline(LINE_BYTES), file.readline(LINE_BYTES))
    except OSError:
        return None
    return None if found is None else format_thinning_note(found)
