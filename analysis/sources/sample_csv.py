"""Files of samples as text: columns, numbers of lines, lines that do not fit, and reading by DuckDB.

A study has ten thousand small files, and opening each in DuckDB takes 1 ms; so `TextBatch` joins files
before DuckDB reads them. Only files that the reader in C (sample_library.py) does not accept come here.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from duckdb import DuckDBPyConnection

from steelyard.analysis.store.sample_store import Part, Parts
from steelyard.analysis.store.schema import SAMPLE_COLUMNS
from steelyard.analysis.store.spool import quote_path
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.jobscripts.userfiles import open_regular

NEEDED = ("unix_s", "elapsed_s")

HEADER_BYTES = 1_000_000  # longer than any; where a file begins with zeros, no end comes
TAIL_BYTES = 4096  # longer than a line
# Searched at once for those that do not fit.
LINES_AT_ONCE = 10_000
HEADER_LINES = 1


def read_header(file: BinaryIO, path: Path) -> tuple[tuple[str, ...], str | None]:
    """Column names from a file's first line, and what is wrong with them."""
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
    """unix_s of the first and the last whole line behind the header, where `file` stands and stays.

    Less than both where a line has none, or the last is longer than any of ours.
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
    """Whole lines, each with a number behind it, as csv_scan reads them.

    DuckDB (2.0) fails altogether at a carriage return, which means nothing at the end of a line;
    elsewhere it becomes a byte that fits no number. At the end of a line it also overlooks an empty
    cell too many, but no number there.
    """
    if b"\r" in lines:
        lines = lines.replace(b"\r\n", b"\n").replace(b"\r", b"\0")
    return lines.replace(b"\n", b",%d\n" % number)


def make_csv_scan(columns: Sequence[str], paths: Sequence[Path]) -> str:
    """Files of numbered() lines of these columns as a relation, without lines that do not fit.

    Its columns are named by their place, c0, c1 and so on, for a file's names may be anything, and
    DuckDB does not tell `a` from `A`; behind them is `file`, the number.
    """
    types = [f"'c{n}': '{SAMPLE_COLUMNS.get(name, 'VARCHAR')}'" for n, name in enumerate(columns)]
    return (
        f"read_csv([{', '.join(map(quote_path, paths))}], auto_detect = false, "
        "header = false, delim = ',', quote = '', escape = '', new_line = '\\n', "
        f"columns = {{{', '.join(types)}, 'file': 'BIGINT'}}, ignore_errors = true)"
    )


def make_column_selection(columns: Sequence[str]) -> str:
    """The fixed columns, NULL where a file of these columns has none."""
    return ", ".join(
        f"s.c{columns.index(name)} AS {name}" if name in columns else f"NULL::{kind} AS {name}"
        for name, kind in SAMPLE_COLUMNS.items()
    )


@dataclass(frozen=True, slots=True)
class RefusedLines:
    """Lines of a file that do not fit its columns; `first` counts from 1, its header's number."""

    lines: int
    first: int

    def format_reason(self) -> str:
        """For `sources.reason`."""
        return (
            f"{counted(self.lines, 'line')} {inflect(self.lines, 'does', 'do')} not fit "
            f"{inflect(self.lines, 'its', 'their')} columns and {inflect(self.lines, 'is', 'are')} left out, "
            f"the first is line {self.first}"
        )


def find_refused(
    connection: DuckDBPyConnection, path: Path, whole: int, loaded: int, scratch: Path
) -> RefusedLines | None:
    """What of a file's `whole` lines is not among its samples, of which `loaded` are.

    None: empty lines only. What the file has got since it was read is not looked at.

    Read_csv could tell while it reads, but would hold all such lines in memory: 4 GB for 142 MB.
    """
    part = scratch / "lines.csv"
    first, lines, empty = None, 0, 0
    with open_regular(path) as file:
        columns, _ = read_header(file, path)
        for some in split_into_batches(file, whole):
            if first is None:
                place = find_first_refused(connection, columns, some, part)
                first = None if place is None else lines + place + HEADER_LINES + 1
            lines += len(some)
            empty += sum(map(is_empty, some))
    part.unlink(missing_ok=True)
    return None if first is None else RefusedLines(lines - empty - loaded, first)


def is_empty(line: bytes) -> bool:
    """Nothing to tell about."""
    return line in (b"\n", b"\r\n")


def split_into_batches(file: BinaryIO, lines: int) -> Iterator[list[bytes]]:
    """So many lines, some after the other."""
    left = islice(file, lines)
    while some := list(islice(left, LINES_AT_ONCE)):
        yield some


def find_first_refused(
    connection: DuckDBPyConnection, columns: Sequence[str], lines: Sequence[bytes], part: Path
) -> int | None:
    """The place of the first of these whole lines, empty ones aside, that does not fit."""
    part.write_bytes(b"".join(number_lines(line, place) for place, line in enumerate(lines)))
    # Into a table as in earnest: columns that nobody wants are not looked at.
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE tried AS SELECT file, {make_column_selection(columns)} "
        f"FROM {make_csv_scan(columns, [part])} AS s"
    )
    fitting = {place for (place,) in connection.execute("SELECT file FROM tried").fetchall()}
    connection.execute("DROP TABLE tried")
    refused = (n for n, line in enumerate(lines) if n not in fitting and not is_empty(line))
    return next(refused, None)


CHUNK_BYTES = 8_000_000


class TextBatch:
    """Files of the same columns and day, put together into `path`; `day` None: of several."""

    def __init__(self, columns: tuple[str, ...], day: str | None, path: Path) -> None:
        self.columns = columns
        self.day = day
        self.size_bytes = 0
        self._path = path
        self._file = path.open("wb")

    def append(self, number: int, source: BinaryIO) -> tuple[int, bool]:
        """The rest of a file behind its header; its whole lines, and whether that was all."""
        rest, lines = b"", 0
        while chunk := source.read(CHUNK_BYTES):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                text = number_lines(whole + newline, number)
                self._file.write(text)
                self.size_bytes += len(text)
                lines += whole.count(b"\n") + 1
            if len(rest) > CHUNK_BYTES:  # no line of ours: cells enough that it does not fit
                rest = b"," * len(self.columns)
        return lines, not rest

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    def write(self, connection: DuckDBPyConnection, parts: Parts) -> list[Part]:
        """Into parts; lines that do not fit are left out. The table `sample_files` knows the files."""
        lines = make_csv_scan(self.columns, [self._path])
        written = parts.write(
            f"SELECT f.run_id, f.attempt, f.node, {make_column_selection(self.columns)} "
            f"FROM {lines} AS s JOIN sample_files AS f USING (file)",
            self.day,
        )
        self._path.unlink()
        return written
