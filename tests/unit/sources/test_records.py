"""Reading and checking records (docs/formats.md part 1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.job import job_view
from steelyard.analysis.sources import records
from steelyard.analysis.sources.records import RecordError, read_record
from steelyard.facts import json_fields

from ..collect import study as HELP


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written: Path = HELP.write_record(tmp_path, "n1", 1795250000.0, "7", tags={"k": "v"})
    return written


def change(path: Path, **fields: Any) -> None:
    document = json.loads(path.read_text(encoding="utf-8")) | fields
    path.write_text(json.dumps(document), encoding="utf-8")


def test_values_stand_under_their_columns(path: Path) -> None:
    record = read_record(path)
    values = record.columns()
    assert (record.node, record.complete, record.tags) == ("n1", True, {"k": "v"})
    assert (values["vm"], values["kernel"], values["cpu_model"]) == ("kvm", "6.1.0", "a processor")
    assert (values["cpu_s"], values["write_bytes"], values["samples"]) == (5.0, 400, 3)
    assert record.samples_path == path.with_suffix(".csv")


def test_what_is_missing_stays_missing_and_says_why(path: Path) -> None:
    record = read_record(path)
    assert record.columns()["energy_j"] is None
    assert record.missing_reason("energy.energy_j") == "no RAPL: /sys/class/powercap is absent"
    assert record.missing_reason("cpu.cpu_s") is None


def test_the_reason_of_the_whole_counts_for_its_parts(path: Path) -> None:
    change(path, probe=None, missing={"probe": "the probe failed"})
    record = read_record(path)
    assert record.columns()["node_type"] is None
    assert record.missing_reason("probe.kernel.release") == "the probe failed"


def test_unknown_fields_are_ignored(path: Path) -> None:
    change(path, something_new={"a": 1})
    assert read_record(path).complete


def test_every_column_reads_a_declared_field() -> None:
    declared = {name: json_fields.read(name).types for name in ("record", "probe")}
    for dotted, _ in records.COLUMNS.values():
        name = "probe" if dotted.startswith("probe.") else "record"
        assert dotted.removeprefix("probe.") in declared[name], dotted


@pytest.mark.parametrize("name", ["../x.csv", "/etc/passwd", "a/b.csv", None, 7, ""])
def test_only_a_file_beside_the_record_is_followed(path: Path, name: object) -> None:
    change(path, samples_file=name)
    assert read_record(path).samples_path is None


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", "record", "is not JSON"),
        ('{"format": "steelyard-record"', "record", "is not JSON"),
        ("[]", "record", "expected a document of format"),
        ("[" * 100_000, "record", "is not JSON"),
        ('{"format": "steelyard-record", "version": 7}', "record_version", "is version 7"),
        ('{"format": "steelyard-record", "version": null}', "record_version", "version None"),
        ('{"format": "steelyard-record", "version": 1}', "record", "'node'"),
    ],
)
def test_what_is_no_record(tmp_path: Path, text: str, kind: str, words: str) -> None:
    path = tmp_path / "n1.1.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError, match=words) as error:
        read_record(path)
    assert error.value.kind == kind and str(path) in str(error.value)


def test_a_record_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot be read: No such file"):
        read_record(tmp_path / "n1.1.json")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("n1.1795250000.json", ("n1", 1795250000)),
        ("n1.example.org.1795250000.json", ("n1.example.org", 1795250000)),
        (".n1.1795250000.json.part", None),
        ("n1.json", None),
        ("n1.1795250000.csv", None),
        ("n1.x.json", None),
    ],
)
def test_names_of_records(name: str, parts: tuple[str, int] | None) -> None:
    assert records.parse_record_name(Path(name)) == parts


# --- recorded ones (tests/data/records/ORIGIN) --------------------------------------------------

RECORDED = Path(__file__).parents[2] / "data" / "records"


def recorded(name: str) -> records.Record:
    (path,) = (RECORDED / name).glob("*.json")
    return read_record(path)


def last_sample(record: records.Record) -> dict[str, str]:
    assert record.samples_path is not None
    header, *_, last = record.samples_path.read_text(encoding="utf-8").splitlines()
    return dict(zip(header.split(","), last.split(","), strict=True))


def test_totals_of_a_recorded_record_are_those_of_its_last_sample() -> None:
    record = recorded("complete")
    (view,) = job_view.make_node_views([record])
    assert view.values["complete"] and view.missing["energy_j"].startswith("no RAPL")
    cells = last_sample(record)
    for column in ("elapsed_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes"):
        assert view.values[column] == pytest.approx(float(cells[column]), abs=1e-5)


def test_a_recorded_record_cut_short_has_the_totals_of_its_last_sample() -> None:
    record = recorded("cut")
    assert not record.complete and record.get("cpu.cpu_s") is None
    (view,) = job_view.make_node_views([record])
    cells = last_sample(record)
    for column in ("elapsed_s", "cpu_s", "rchar_bytes", "wchar_bytes"):
        assert view.values[column] == float(cells[column]) > 0
    assert view.values["energy_j"] is None
    assert record.tags == {"color": "blue"}
