"""Samples as text on their way into a part: files put together, for DuckDB to read at once.

A study has ten thousand small files; opening each in DuckDB takes 1 ms. Only what our own reader
does not take comes here (native.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from duckdb import DuckDBPyConnection

from steelyard.analysis.sources.sample_lines import csv_scan, numbered, select_columns
from steelyard.analysis.store.sample_store import Part, Parts

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
                text = numbered(whole + newline, number)
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
        lines = csv_scan(self.columns, [self._path])
        written = parts.write(
            f"SELECT f.run_id, f.attempt, f.node, {select_columns(self.columns)} "
            f"FROM {lines} AS s JOIN sample_files AS f USING (file)",
            self.day,
        )
        self._path.unlink()
        return written
