"""A peer of bench/collect.py: DuckDB's read_csv reads every sample, and stores nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from steelyard.analysis.store.database import limit_memory
from steelyard.analysis.store.row_files import quote_path, quote_text
from steelyard.analysis.store.schema import SAMPLE_COLUMNS


def main(record_dir: Path) -> None:
    """Compute the maximum of every column; collect reads samples of other writers in this way."""
    paths = sorted(record_dir.glob("*/*.csv"))
    with paths[0].open(encoding="utf-8") as file:
        columns = file.readline().rstrip("\n").split(",")
    largest = ", ".join(f'max("{name}")' for name in SAMPLE_COLUMNS)
    types = ", ".join(
        f"{quote_text(name)}: '{SAMPLE_COLUMNS.get(name, 'VARCHAR')}'" for name in columns
    )
    with duckdb.connect() as connection:
        limit_memory(connection, record_dir)
        for start in range(0, len(paths), 500):
            some = ", ".join(map(quote_path, paths[start : start + 500]))
            connection.execute(
                f"SELECT {largest} FROM read_csv([{some}], auto_detect = false, header = true, "
                f"delim = ',', quote = '', escape = '', new_line = '\\n', "
                f"columns = {{{types}}}, ignore_errors = true)"
            ).fetchall()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
