"""Notes on samples that a sweep has thinned (docs/records.md), which each of their lines states."""

from __future__ import annotations

from pathlib import Path

from steelyard.jobscripts.regular_files import BULK_BYTES, open_regular

COLUMN = "thinned_s"
LINE_BYTES = 1 << 20  # longer than any line
WORDS = "a sweep has thinned its samples"


def read_spacing_s(header: bytes, first: bytes) -> int | None:
    """Return the seconds per remaining line, from a file's first two lines.

    0: only the ends remain. None: the file is complete.
    """
    names = header.rstrip(b"\r\n").split(b",")
    if COLUMN.encode() not in names:
        return None
    cells = first.rstrip(b"\r\n").split(b",")
    column = names.index(COLUMN.encode())
    return int(cells[column]) if column < len(cells) and cells[column].isdigit() else 0


def format_note(every_s: int) -> str:
    """Return the note for users."""
    remainder = f"one in {every_s} s is left" if every_s else "none is left between its ends"
    return f"{WORDS}: {remainder}. Totals are what they were; rates are means of longer times"


def read_note(path: Path | None) -> str | None:
    """Return the note for a file; None: it is complete, or does not exist."""
    if path is None:
        return None
    try:
        with open_regular(path, BULK_BYTES) as file:
            found = read_spacing_s(file.readline(LINE_BYTES), file.readline(LINE_BYTES))
    except OSError:
        return None
    return None if found is None else format_note(found)
