"""Texts on their way into DuckDB arrive as they are."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from steelyard.analysis.store.row_files import TextSpool

ODD = [
    "",
    " ",
    '"',
    'a "job" name',
    "two\nlines",
    "\r\n",
    "\r",
    TextSpool.DELIMITER,
    TextSpool.NULL,
    "NULL",
    "日本語",
    "\\n",
    "x" * 3_000_000,
]


@pytest.mark.parametrize("text", ODD, ids=[repr(text[:12]) for text in ODD])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_any_text_in_any_place(tmp_path: Path, text: str, place: int) -> None:
    rows = [("1", "2", "3"), tuple(text if n == place else "v" for n in range(3)), ("", "", "")]
    with TextSpool(tmp_path / "rows", ("a", "b", "end")) as spool:
        for row in rows:
            spool.write(row)
    with duckdb.connect() as connection:
        assert sorted(connection.execute(spool.select()).fetchall()) == sorted(rows)


@pytest.mark.parametrize("text", [text for text in ODD if text != TextSpool.DELIMITER])
def test_values_that_come_joined(tmp_path: Path, text: str) -> None:
    rows = [("1", text, "3"), ("4", "5", text), (text, "6", "7")]
    with TextSpool(tmp_path / "rows", ("a", "b", "end")) as spool:
        for first, *others in rows:
            spool.write_joined((first,), TextSpool.DELIMITER.join(others))
    with duckdb.connect() as connection:
        assert sorted(connection.execute(spool.select()).fetchall()) == sorted(rows)


def test_no_rows(tmp_path: Path) -> None:
    with TextSpool(tmp_path / "rows", ("a", "b")) as spool:
        pass
    with duckdb.connect() as connection:
        assert connection.execute(spool.select()).fetchall() == []
