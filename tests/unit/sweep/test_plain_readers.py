"""Packs as DuckDB and pandas read them, without Steelyard: the numbers of the loose files, exactly."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest

from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.records import COLUMNS, find_value
from steelyard.wrappers.sweep.sweep import SweepRequest, sweep

from .swept_site import DAY_S, NOW

DATA = Path(__file__).parents[2] / "data" / "records"
Rows = dict[tuple[Any, ...], Mapping[str, Any]]
KEY = ("job_id", "node", "start_unix_s")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """The recorded jobs, one of them without a record; and a record that is none of ours."""
    for number, source in enumerate(sorted(DATA.glob("*/*.csv"))):
        folder = tmp_path / "records" / f"{number}"
        folder.mkdir(parents=True)
        for path in source.parent.glob(f"{source.stem}.*"):
            copy = folder / path.name
            copy.write_bytes(path.read_bytes())
            copy.chmod(0o444)
            os.utime(copy, (NOW - 70 * DAY_S,) * 2)  # one of them never ended
    without = tmp_path / "records" / "none" / "n1.1795270138.json"
    without.parent.mkdir()
    without.write_text('{"node": "n1", "end_unix_s": 1.5}', encoding="utf-8")
    without.chmod(0o444)
    return tmp_path / "records"


def packed(records: Path, every_s: int | None = None) -> list[Path]:
    """Return the packs of all jobs."""
    assert sweep(SweepRequest(records, pack_after_s=-1e9, every_s=every_s)).failed == []
    return sorted(records.rglob("records-*.parquet"))


def number(name: str, cell: str) -> int | Decimal | None:
    """Return a number as a sampler writes it."""
    if not cell:
        return None
    return Decimal(cell) if name.partition(":")[0].endswith(("_s", "_j")) else int(cell)


def loose_samples(records: Path) -> Rows:
    """Return every line, by job, node, start and line number."""
    found: Rows = {}
    for path in records.glob("*/*.csv"):
        node, _, start = path.stem.rpartition(".")
        with path.open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.DictReader(file), 1):
                cells = {name: number(name, cell) for name, cell in row.items()}
                found[path.parent.name, node, int(start), line] = cells
    return found


def loose_records(records: Path) -> Rows:
    """Return text and columns of every record; samples without a record have none."""
    found: Rows = {key[:3]: {"record": None} for key in loose_samples(records)}
    for path in records.glob("*/*.json"):
        node, _, start = path.stem.rpartition(".")
        text = path.read_text(encoding="utf-8")
        document = json.loads(text) if "format" in text else {}
        columns = {name: find_value(document, dotted) for name, (dotted, _) in COLUMNS.items()}
        del columns["start_unix_s"]  # that of the key is the one in the file's name
        found[path.parent.name, node, int(start)] = {
            "record": text, "cluster": find_value(document, "job.cluster"), **columns
        }  # fmt: skip
    return found


def by_key(rows: Iterable[Mapping[str, Any]], key: Iterable[str]) -> Rows:
    """Return rows by their key, without the key itself."""
    names, found = tuple(key), Rows()
    for row in rows:
        at = tuple(row[name] for name in names)
        assert at not in found, "doubled"
        found[at] = {name: value for name, value in row.items() if name not in names}
    return found


def by_duckdb(paths: Iterable[Path]) -> list[Mapping[str, Any]]:
    """Read with DuckDB's own reader of Parquet only."""
    result = duckdb.execute(
        "SELECT * FROM read_parquet(?, union_by_name = true)", [[str(path) for path in paths]]
    )
    names = [one[0] for one in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def by_pandas(paths: Iterable[Path]) -> list[Mapping[str, Any]]:
    """With pyarrow's types: a column of integers that has nulls stays one of integers."""
    found: list[Mapping[str, Any]] = []
    for path in paths:
        frame = pandas.read_parquet(path, dtype_backend="pyarrow").astype(object)
        for row in frame.to_dict("records"):
            found.append({str(k): None if v is pandas.NA else v for k, v in row.items()})
    return found


READERS = pytest.mark.parametrize("read", [by_duckdb, by_pandas])


@READERS
def test_samples_are_the_lines_of_the_loose_files(records: Path, read: Any) -> None:
    truth = loose_samples(records)
    found = by_key(read(map(record_packs.samples_path, packed(records))), (*KEY, "line"))
    assert found.keys() == truth.keys() and len(truth) > 900
    for key, row in found.items():
        there = {name: value for name, value in row.items() if name in truth[key]}
        assert there == truth[key]
        assert {name: type(value) for name, value in there.items()} == {
            name: type(value) for name, value in truth[key].items()
        }
        others = {name: value for name, value in row.items() if name not in truth[key]}
        assert set(others.values()) == {None}, "a column that this file lacks"
        real = {n: float(v) for n, v in there.items() if isinstance(v, Decimal)}
        assert real == {n: float(str(v)) for n, v in truth[key].items() if n in real}


@READERS
def test_records_are_the_loose_ones(records: Path, read: Any) -> None:
    truth = loose_records(records)
    found = by_key(read(packed(records)), KEY)
    assert found.keys() == truth.keys() and len(truth) > 4
    for key, row in found.items():
        assert {name: row[name] for name in truth[key]} == truth[key]
    times = [row["cpu_s"] for row in found.values()]
    assert None in times and len(set(times)) > 2


@READERS
def test_thinned_samples_are_some_of_the_lines(records: Path, read: Any) -> None:
    truth = loose_samples(records)
    found = by_key(read(map(record_packs.samples_path, packed(records, 30))), (*KEY, "line"))
    assert {row["thinned_s"] for row in found.values()} == {30}
    assert found.keys() < truth.keys() and len(found) < len(truth) / 10
    for key, row in found.items():
        assert {name: row[name] for name in truth[key]} == truth[key]
