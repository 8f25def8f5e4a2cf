"""A peer of bench/collect.py: DuckDB's read_csv reads every sample of the records, keeps nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

from steelyard.analysis.database import bound
from steelyard.analysis.sample_lines import COLUMNS, csv_scan


def main(record_dir: Path) -> None:
    """The largest value of every column, as collect's own statement reads what is not as the sampler writes it."""
    paths = sorted(record_dir.glob("*/*.csv"))
    with paths[0].open(encoding="utf-8") as file:
        columns = file.readline().rstrip("\n").split(",")
    largest = ", ".join(f'max("{name}")' for name in COLUMNS)
    with duckdb.connect() as connection:
        bound(connection, record_dir)
        for start in range(0, len(paths), 500):
            scan = csv_scan(columns, paths[start : start + 500], "ignore_errors", is_batch=False)
            connection.execute(f"SELECT {largest} FROM {scan}").fetchall()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
