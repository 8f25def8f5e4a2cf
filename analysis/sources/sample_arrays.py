"""Samples as arrays in memory, between the text and the Parquet file."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from duckdb import DuckDBPyConnection

from steelyard.analysis.sources import sample_library
from steelyard.analysis.store.sample_store import DAY_S, KEY, UNKNOWN, Part, Parts, format_day
from steelyard.analysis.store.schema import SAMPLE_COLUMNS

ROWS = 500_000  # per batch: 75 MB
TEXT_BYTES = 64_000_000  # DuckDB reads larger files, in chunks
NOT_KNOWN = np.iinfo(np.int64).min  # the reader's value for an empty cell

TYPES = {"DOUBLE": np.dtype(np.float64), "BIGINT": np.dtype(np.int64)}

Array = np.ndarray[tuple[int], np.dtype[np.float64 | np.int64 | np.int32]]


Text = bytes | ctypes.Array[ctypes.c_char]


class TextBuffer:
    """Memory for the text of one file after another.

    New pages for each file would cost more than reading it.
    """

    def __init__(self) -> None:
        self._memory = bytearray()

    def read(self, file: BinaryIO) -> tuple[Text, int, bool] | None:
        """Read `file` from its position, which stays, to its current end.

        Returns the text (valid until the next call), the size of its complete lines in bytes, and
        whether the last line is complete. None: the text is longer than TEXT_BYTES.
        """
        begin = file.tell()
        size = os.fstat(file.fileno()).st_size - begin
        if size > TEXT_BYTES:
            return None
        if size >= len(self._memory):
            self._memory = bytearray(2 * size + 1)
        view, got = memoryview(self._memory), 0
        while got < size and (more := os.preadv(file.fileno(), [view[got:size]], begin + got)):
            got += more
        text = (ctypes.c_char * len(self._memory)).from_buffer(self._memory)
        end = self._memory.rfind(b"\n", 0, got) + 1
        return text, end, end == got


Room = tuple[dict[str, Array], Array]  # of a batch: arrays by column; the files' numbers


def allocate_buffer() -> Room:
    """Return arrays for a batch. The kernel provides the memory when they are filled."""
    columns: dict[str, Array] = {
        name: np.empty(ROWS, dtype=TYPES[kind]) for name, kind in SAMPLE_COLUMNS.items()
    }
    return columns, np.empty(ROWS, dtype=np.int32)


class RowBatch:
    """Rows of files; `day` None: they may be of several days."""

    def __init__(self, day: str | None, room: Room | None = None) -> None:
        self.day = day
        self.count = 0
        self.room = room or allocate_buffer()  # reused by another batch after this one is written
        self._arrays, self._numbers = self.room
        self._rows = 0  # of the last file, not yet added
        self._files: list[tuple[str, ...]] = []  # their KEY values

    def read(self, text: Text, size: int, columns: Sequence[str]) -> int:
        """Read a file's lines, `size` bytes of `text`, after the rows of the batch.

        Returns the number of rows, or an error below 0 (sample_library.FULL: no space).
        `add_file_rows` must confirm the rows.
        """
        read = sample_library.read_samples()
        assert read is not None
        kinds: list[int] = []
        pointers: list[int | None] = []
        for name in columns:
            array = self._arrays.get(name)
            if array is None:
                kinds.append(sample_library.SKIP)
                pointers.append(None)
            else:
                kinds.append(
                    sample_library.REAL if array.dtype.kind == "f" else sample_library.INTEGER
                )
                pointers.append(array.ctypes.data + self.count * array.itemsize)
        out = (ctypes.c_void_p * len(columns))(*pointers)
        rows = read(text, size, len(columns), bytes(kinds), out, ROWS - self.count)
        for name in self._arrays.keys() - set(columns):
            array = self._arrays[name][self.count : self.count + max(rows, 0)]
            array.fill(np.nan if array.dtype.kind == "f" else NOT_KNOWN)
        self._rows = max(rows, 0)
        return rows

    def is_of_day(self, day: str | None) -> bool:
        """Whether the rows just read are all of this day; always so for None."""
        times = self._arrays["unix_s"][self.count : self.count + self._rows]
        if day is None or not self._rows:
            return True
        low, high = float(times.min()), float(times.max())  # NaN if any is NaN
        if day == UNKNOWN or not high - low < DAY_S:
            return False
        return format_day(low) == day == format_day(high)

    def add_file_rows(
        self, key: tuple[str, ...], totals: Sequence[str]
    ) -> list[float | int | None]:
        """Add the rows just read as those of a file; return its largest values of some columns."""
        begin, self.count = self.count, self.count + self._rows
        self._numbers[begin : self.count] = len(self._files)
        self._files.append(key)
        return [find_largest(self._arrays[name][begin : self.count]) for name in totals]

    def write(self, engine: DuckDBPyConnection, parts: Parts) -> list[Part]:
        """Write the rows to Parquet files.

        `engine` must not be in a transaction, which would keep the arrays until its end.
        """
        if not self._files:
            return []
        rows = {name: array[: self.count] for name, array in self._arrays.items()}
        engine.register("row_batch", {"file": self._numbers[: self.count], **rows})
        keys = zip(KEY, zip(*self._files, strict=True), strict=True)
        numbers = np.arange(len(self._files), dtype=np.int32)
        texts = {name: np.array(column, dtype=object) for name, column in keys}
        engine.register("row_files", {"file": numbers, **texts})
        try:
            return parts.write(
                f"SELECT {', '.join(KEY)}, {', '.join(map(convert_nan_to_null, SAMPLE_COLUMNS))} "
                "FROM row_batch JOIN row_files USING (file)",
                self.day,
                engine,
            )
        finally:
            engine.unregister("row_batch")
            engine.unregister("row_files")


def convert_nan_to_null(column: str) -> str:
    """Return SQL for a column of a batch. DuckDB itself takes NaN for NULL."""
    if SAMPLE_COLUMNS[column] == "BIGINT":
        return f"nullif({column}, {NOT_KNOWN}) AS {column}"
    return column


def find_largest(array: Array) -> float | int | None:
    """Return the largest known value of the array; None: all are unknown."""
    if not array.size:
        return None
    value = np.fmax.reduce(array).item()
    return None if math.isnan(value) or value == NOT_KNOWN else value
