"""Our reader of samples gives what DuckDB's gives, or nothing at all."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.collect import sample_import
from steelyard.analysis.sources import sample_arrays, sample_library
from steelyard.analysis.store import sample_store, schema

HEADER = "unix_s,elapsed_s,cpu_s,rchar_bytes,energy_j:package-0,energy_j,rtt_s"
PIECES = [
    "0",
    "7",
    "0.5",
    "12.000001",
    "",
    "x",
    "-1",
    "nan",
    "1e3",
    "1.",
    ".5",
    " 1",
    "99999999999999999999",
]


def loaded(folder: Path, text: str) -> tuple[list[Any], list[Any]]:
    """Samples and sources of one file."""
    folder.mkdir()
    (folder / "n1.csv").write_text(text, encoding="utf-8", newline="")
    file = sample_import.SampleFile(folder / "n1.csv", "n1", "run", "1.0", "n1")
    connection = duckdb.connect()
    connection.execute(schema.build_schema())
    mine = sample_store.Parts(connection, folder, folder)
    for _ in sample_import.load_files(connection, [file], mine, folder):
        pass
    return (
        connection.execute("SELECT * FROM samples ORDER BY ALL").fetchall(),
        connection.execute("SELECT * EXCLUDE modified_unix_ns FROM sources").fetchall(),
    )


def spoilt(chance: random.Random) -> str:
    """Lines of samples, some of them not as the sampler writes them."""
    lines = []
    for number in range(chance.randrange(8)):
        cells = [
            f"{172790 + number * 4}.5",
            f"{number}.000000",
            f"{number / 3:.6f}",
            "7",
            "1.5",
            "",
            "0.25",
        ]
        if chance.random() < 0.3:
            cells[chance.randrange(7)] = chance.choice(PIECES)
        if chance.random() < 0.05:
            cells.pop()
        lines.append(",".join(cells))
    return "\n".join([HEADER, *lines]) + ("" if chance.random() < 0.1 else "\n")


@pytest.mark.parametrize("seed", range(25))
def test_both_readers_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    text = spoilt(random.Random(seed))
    ours = loaded(tmp_path / "ours", text)
    monkeypatch.setattr(sample_library, "read_samples", lambda: None)
    theirs = loaded(tmp_path / "theirs", text)
    # As text: NaN is not equal to itself.
    assert repr(ours).replace("/ours/", "/theirs/") == repr(theirs)


def test_what_the_sampler_writes_is_read_by_us(tmp_path: Path) -> None:
    batch = sample_arrays.RowBatch("1970-01-01")
    text = b"1.5,0,0.000001,7,2.5,,\n2.5,1,0.1,9,3.5,4.25,0.025\n"
    assert batch.read(text, len(text), HEADER.split(",")) == 2
    assert batch.is_of_day("1970-01-01") and not batch.is_of_day("1970-01-02")
    assert batch.add_file_rows(
        ("r", "1.0", "n1"), ("cpu_s", "rchar_bytes", "energy_j", "tx_bytes")
    ) == [
        0.1,
        9,
        4.25,
        None,
    ]
    assert batch.count == 2


@pytest.mark.parametrize("text", [b",0,0,7,2.5,,\n", b"1,0,0,7,,,\n86400,0,0,7,,,\n"])
def test_rows_of_no_day_or_of_two_are_of_none(text: bytes) -> None:
    batch = sample_arrays.RowBatch("1970-01-01")
    assert batch.read(text, len(text), HEADER.split(",")) > 0
    assert (
        not batch.is_of_day("1970-01-01")
        and not batch.is_of_day(sample_store.UNKNOWN)
        and batch.is_of_day(None)
    )


def test_without_the_library_there_is_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ("", "/nowhere.so", __file__):
        monkeypatch.setenv("STEELYARD_SAMPLES", named)
        sample_library.read_samples.cache_clear()
        assert sample_library.read_samples() is None
    sample_library.read_samples.cache_clear()
