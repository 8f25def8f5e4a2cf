"""Samples as arrays in memory, on their way from text into a part."""

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

ROWS = 500_000  # in a batch: 75 MB
TEXT_BYTES = 64_000_000  # larger files are read by DuckDB, piece by piece
NOT_KNOWN = np.iinfo(np.int64).min  # of the reader, where a cell is empty

TYPES = {"DOUBLE": np.dtype(np.float64), "BIGINT": np.dtype(np.int64)}

Array = np.ndarray[tuple[int], np.dtype[np.float64 | np.int64 | np.int32]]


Text = bytes | ctypes.Array[ctypes.c_char]


class TextBuffer:
    """The text of one file after another, in the same memory: fresh pages for each cost more than
    the reading."""

    def __init__(self) -> None:
        self._memory = bytearray()

    def read(self, file: BinaryIO) -> tuple[Text, int, bool] | None:
        """From where `file` stands, and stays, to its end as it is now: the text, as long as the next
        call; the size of its whole lines in bytes; whether that is all. None: over TEXT_BYTES."""
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
        whole = self._memory.rfind(b"\n", 0, got) + 1
        return text, whole, whole == got


Room = tuple[dict[str, Array], Array]  # of a batch: by column; the files' numbers


def allocate_buffer() -> Room:
    """Memory is taken as it is filled."""
    columns: dict[str, Array] = {
        name: np.empty(ROWS, dtype=TYPES[kind]) for name, kind in SAMPLE_COLUMNS.items()
    }
    return columns, np.empty(ROWS, dtype=np.int32)


class RowBatch:
    """Rows of files; `day`: all are of it, None: they may be of several."""

    def __init__(self, day: str | None, room: Room | None = None) -> None:
        self.day = day
        self.count = 0
        self.room = room or allocate_buffer()  # for another batch, once this one is written
        self._arrays, self._numbers = self.room
        self._rows = 0  # of the file that was read last, not yet counted
        self._files: list[tuple[str, ...]] = []  # their KEYs

    def read(self, text: Text, size: int, columns: Sequence[str]) -> int:
        """A file's lines, `size` bytes of `text`: how many, or below 0 (sample_library.FULL: no room); see keep()."""
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
        """Whether the rows just read are all of this day; any are of None."""
        times = self._arrays["unix_s"][self.count : self.count + self._rows]
        if day is None or not self._rows:
            return True
        low, high = float(times.min()), float(times.max())  # NaN when one is
        if day == UNKNOWN or not high - low < DAY_S:
            return False
        return format_day(low) == day == format_day(high)

    def add_file_rows(
        self, key: tuple[str, ...], totals: Sequence[str]
    ) -> list[float | int | None]:
        """Count the rows just read as those of a file; its largest values of some columns."""
        begin, self.count = self.count, self.count + self._rows
        self._numbers[begin : self.count] = len(self._files)
        self._files.append(key)
        return [find_largest(self._arrays[name][begin : self.count]) for name in totals]

    def write(self, engine: DuckDBPyConnection, parts: Parts) -> list[Part]:
        """Into parts. `engine` must not be in a transaction: it would hold the arrays to its end."""
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
    """A column of a batch as DuckDB shall have it; NaN it takes for NULL by itself."""
    if SAMPLE_COLUMNS[column] == "BIGINT":
        return f"nullif({column}, {NOT_KNOWN}) AS {column}"
    return column


def find_largest(array: Array) -> float | int | None:
    """None: all are not known."""
    if not array.size:
        return None
    value = np.fmax.reduce(array).item()
    return None if math.isnan(value) or value == NOT_KNOWN else value
