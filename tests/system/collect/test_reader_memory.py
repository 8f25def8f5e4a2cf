"""Samples into the database: columns by name, missing stays missing, nothing is made up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.collect.test_sample_import import reader as reader  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow

COLUMNS = "unix_s,elapsed_s,cpu_s,memory_bytes"


def grown_mb(folder: Path) -> tuple[str, int]:
    """Return the output of collecting n1.csv alone, and its memory."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", MANY_BAD, str(folder)],
        check=True, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    found, grown = done.stdout.splitlines()
    return found, int(grown)


def test_zeros_without_an_end_cost_no_memory(tmp_path: Path) -> None:
    """What a node that crashed leaves: room that was never written."""
    with (tmp_path / "n1.csv").open("wb") as file:
        file.truncate(600_000_000)
    found, grown = grown_mb(tmp_path)
    assert "has no whole line" in found and grown < 200


MANY_BAD = """
import resource, sys
from pathlib import Path
import duckdb
from steelyard.analysis.collect import sample_import
from steelyard.analysis.store import schema
from steelyard.analysis.store import sample_store
connection = duckdb.connect()
connection.execute(schema.build_schema())
folder = Path(sys.argv[1])
file = sample_import.SampleFile(folder / "n1.csv", "n1", "run", "1.0", "n1")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in sample_import.load_files(connection, [file], sample_store.Parts(connection, folder, folder), folder):
    pass
print(connection.execute("SELECT samples, reason FROM sources").fetchall())
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_many_bad_lines_cost_no_memory(tmp_path: Path) -> None:
    """DuckDB's own list of them takes more than 1 KB each: 400 MB here."""
    text = f"{COLUMNS}\n1,0,0,1\n" + "2,x,0,1\n" * 300_000
    (tmp_path / "n1.csv").write_text(text, encoding="utf-8")
    found, grown = grown_mb(tmp_path)
    assert found == (
        "[(1, '300000 lines do not fit their columns and are left out, the first is line 3')]"
    )
    assert grown < 200
