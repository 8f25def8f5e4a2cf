"""Writes rows as JSON lines or text, which DuckDB reads in one statement.

Inserting rows one by one is a hundred times slower, and keeping them in Python needs memory.
"""

from __future__ import annotations

import errno
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

# Write errors that a retry with another file would not fix.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def quote_text(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_identifier(name: str) -> str:
    """Return the name of a column as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def escape_pattern(path: Path) -> str:
    """Escape a path for DuckDB's readers, which take `*`, `?` and `[` as a pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(path))


def quote_path(path: Path) -> str:
    """Return an escaped path as an SQL literal."""
    return quote_text(escape_pattern(path))


def replace_lone_surrogates(text: str) -> str:
    r"""Replace lone surrogates by `?`. JSON may have them (`\ud800`), and a database may not."""
    return text.encode("utf-8", "replace").decode("utf-8")


def convert_non_finite(value: Any) -> Any:
    """Return a JSON value: NaN and infinity become strings that DuckDB reads."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def reject_constant(constant: str) -> None:
    """Raise ValueError in json.loads: `NaN` and `Infinity` are no JSON, and no measurement."""
    raise ValueError(f"{constant} is no number")


def parse_finite(word: str) -> float:
    """Parse a number in json.loads; raise ValueError for 1e999, which is too large."""
    value = float(word)
    if not math.isfinite(value):
        raise ValueError(f"{word[:40]} is no number that can be stored")
    return value


# One decoder for all: json.loads would create one for every document.
DECODER = json.JSONDecoder(parse_constant=reject_constant, parse_float=parse_finite)


def parse_json(data: bytes | str) -> Any:
    """Parse a JSON document; raise ValueError or RecursionError.

    Numbers that cannot be stored are errors.
    """
    if isinstance(data, bytes):
        data = data.decode(json.detect_encoding(data), "surrogatepass")
    return DECODER.decode(data)


class RowFile:
    """A file of rows, which a `with` statement closes."""

    def __init__(self, path: Path, newline: str | None = None) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8", errors="replace", newline=newline)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; no rows can be added afterwards."""
        self._file.close()


class Spool(RowFile):
    """Rows of one table; `columns` maps names to DuckDB types."""

    def __init__(self, path: Path, columns: Mapping[str, str]) -> None:
        super().__init__(path)
        self.columns = dict(columns)
        self.count = 0
        self._encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode

    def write(self, values: Sequence[Any]) -> None:
        """Write one row, with values in the order of the columns; None becomes NULL."""
        row = dict(zip(self.columns, values, strict=True))
        try:
            text = self._encode(row)
        except ValueError:  # NaN or infinity: rare, so that cells are only checked here
            text = self._encode({name: convert_non_finite(value) for name, value in row.items()})
        self._file.write(text + "\n")
        self.count += 1

    def select(self) -> str:
        """Return a SELECT statement for the rows, columns in order. The spool must be closed."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        if not self.count:
            nothing = ", ".join(f'NULL::{kind} AS "{n}"' for n, kind in self.columns.items())
            return f"SELECT {nothing} WHERE false"
        types = ", ".join(
            f"{quote_text(n)}: {quote_text(kind)}" for n, kind in self.columns.items()
        )
        return (
            f"SELECT {names} FROM read_json({quote_path(self.path)}, "
            f"format = 'newline_delimited', columns = {{{types}}}, "
            f"maximum_object_size = 67108864)"
        )


class TextSpool(RowFile):
    """Rows of strings without NULL: writing takes a tenth of the time of JSON."""

    DELIMITER = "\x1f"
    NULL = "\x1e"  # read_csv requires a null string, and would use the empty string
    QUOTED = re.compile('["\r\n\x1e]')

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        super().__init__(path, newline="\n")  # a carriage return in a cell is unchanged
        self.columns = tuple(columns)

    def write(self, values: Sequence[str]) -> None:
        """Write one row, with values in the order of the columns."""
        line = self.DELIMITER.join(values)
        if self.QUOTED.search(line) or line.count(self.DELIMITER) >= len(self.columns):
            line = self.DELIMITER.join('"' + value.replace('"', '""') + '"' for value in values)
        self._file.write(line + "\n")

    def write_joined(self, values: Sequence[str], text: str) -> None:
        """Do the same as `write`, with the last values joined by DELIMITER."""
        line = self.DELIMITER.join((*values, text))
        if self.QUOTED.search(line) or line.count(self.DELIMITER) != len(self.columns) - 1:
            self.write((*values, *text.split(self.DELIMITER)))
        else:
            self._file.write(line + "\n")

    def select(self) -> str:
        """Return a SELECT statement for the rows. The spool must be closed."""
        types = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in self.columns)
        # The line limit also sizes the buffers: a sixteenth of it is the default.
        return (
            f"SELECT * FROM read_csv({quote_path(self.path)}, auto_detect = false, "
            f"header = false, delim = '{self.DELIMITER}', quote = '\"', escape = '\"', "
            f"nullstr = '{self.NULL}', allow_quoted_nulls = false, new_line = '\\n', "
            f"max_line_size = 16000000, buffer_size = 32000000, columns = {{{types}}})"
        )
