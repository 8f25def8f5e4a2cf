"""report and compare on databases that are odd or broken: an exit code and one line, no traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest

from steelyard.wrappers.commands.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(synthetic: ModuleType, tmp_path: Path) -> Path:
    """Six runs a condition, with records."""
    maker = synthetic.StudyMaker("bad", {"clients": [1, 2]}, {"clients": 1})
    for number in range(6):
        for level in (1, 2):
            run = maker.run("x", {}, {"clients": level}, number + 1)
            maker.result(run, "seconds", 3.0 + level + number / 10, "s")
            maker.record(run, "n1", 10.0, energy_j=100.0 + number, rtt_median_s=0.001)
    path: Path = maker.write(tmp_path)
    return path


def change(*statements: str) -> Callable[[Path], None]:
    def changed(database: Path) -> None:
        with duckdb.connect(str(database)) as connection:
            for statement in statements:
                connection.execute(statement)

    return changed


def cut(database: Path) -> None:
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])


def begun(database: Path) -> None:
    database.unlink()
    duckdb.connect(str(database)).close()


BROKEN = {
    "empty": (lambda path: path.write_bytes(b""), 3, "is damaged, or no database of a study"),
    "broke off": (begun, 3, "its first collect broke off. Run `steelyard collect` again"),
    "text": (lambda path: path.write_text("x" * 9999), 3, "is damaged, or no database of a study"),
    "cut": (
        cut,
        3,
        "Move it away and run `steelyard collect`: it is made from accounting, records",
    ),
    "no table": (change("DROP TABLE gaps"), 3, "Table with name gaps does not exist"),
    "no column": (change("ALTER TABLE records DROP rtt_mean_s"), 3, "rtt_mean_s"),
    "no meta": (change("DELETE FROM meta"), 3, "is empty: run `steelyard collect` again"),
    "older": (
        change("UPDATE meta SET schema_version = 1"),
        2,
        "has schema version 1, this Steelyard",
    ),
    "later": (change("UPDATE meta SET schema_version = 99"), 2, "has schema version 99"),
    "other": (change("DROP TABLE meta"), 2, "is no study's database: it has no table meta"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_database_is_one_line(kind: str, folder: Path, capsys: Capture) -> None:
    damage, code, words = BROKEN[kind]
    damage(folder / "study.duckdb")
    before = (folder / "study.duckdb").read_bytes()
    for command in (["report", str(folder)], ["compare", str(folder), "clients=1", "clients=2"]):
        assert main(command) == code
        captured = capsys.readouterr()
        assert words in captured.err and captured.err.count("\n") == 1 and captured.out == ""
    assert (folder / "study.duckdb").read_bytes() == before  # nothing lost


def sampled(synthetic: ModuleType, parent: Path) -> tuple[Path, Path]:
    """(study, its file of samples)."""
    maker = synthetic.StudyMaker("sampled", {"clients": [1, 2]}, {"clients": 1})
    for number in range(6):
        for level in (1, 2):
            run = maker.run("x", {}, {"clients": level}, number + 1)
            maker.result(run, "seconds", 3.0 + level + number / 10, "s")
            maker.record(run, "n1", 60.0)
            maker.samples(run, "n1", 60.0)
    folder = maker.write(parent)
    (part,) = folder.glob("parquet/samples/*/*.parquet")
    return folder, part


def test_samples_cut_short_or_gone_are_told_and_nothing_else_is_lost(
    synthetic: ModuleType, tmp_path: Path, capsys: Capture
) -> None:
    folder, part = sampled(synthetic, tmp_path)
    whole = report_of(folder, tmp_path, capsys)
    for damage, words in ((part.read_bytes()[:-99], "is cut short"), (None, "is not there")):
        part.unlink()
        if damage is not None:
            part.write_bytes(damage)
        told = report_of(folder, tmp_path, capsys)
        assert told["rows"] == whole["rows"]
        assert "samples: 1" in {p for f in told["findings"] for p in f["places"]}
        page = (tmp_path / "r.html").read_text("utf-8")
        assert f"{words}: its 732 samples are in no figure" in page
        assert "No figure over time: fewer than 5 samples on a node are at hand" in page


@pytest.mark.parametrize("offset", [4, 100, 700, 1500])
def test_samples_damaged_in_the_middle_are_one_line(
    offset: int, synthetic: ModuleType, tmp_path: Path, capsys: Capture
) -> None:
    folder, part = sampled(synthetic, tmp_path)
    with part.open("r+b") as file:
        file.seek(offset)
        file.write(b"X" * 400)
    for command in (["report", str(folder)], ["report", str(folder), "--json"]):
        assert main(command) == 3
        captured = capsys.readouterr()
        assert captured.err.count("\n") == 1 and captured.out == ""
        assert "is damaged" in captured.err
        assert "and run `steelyard collect`" in captured.err


def no_constant(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def report_of(folder: Path, tmp_path: Path, capsys: Capture) -> dict[str, Any]:
    """Page, figures and tables can be made; what --json prints."""
    output = ["-o", str(tmp_path / "r.html"), "--figures", "--format", "csv"]
    assert main(["report", str(folder), *output, "--export", "csv,parquet,json,latex"]) == 0
    capsys.readouterr()
    assert main(["report", str(folder), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    return found


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e308"])
def test_figures_that_are_none_are_in_no_mean(
    word: str, folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    one = "run_id = (SELECT min(run_id) FROM runs WHERE condition_label = 'clients=1')"
    values = ", ".join(
        f"{name} = '{word}'::DOUBLE"
        for name in ("rtt_median_s", "rtt_mean_s", "energy_j", "elapsed_s")
    )
    change(
        f"UPDATE results SET value = '{word}'::DOUBLE WHERE {one}",
        f"UPDATE records SET {values} WHERE {one}",
        f"UPDATE attempts SET elapsed_s = '{word}'::DOUBLE WHERE {one}",
    )(folder / "study.duckdb")
    told = report_of(folder, tmp_path, capsys)
    rows = {(r["condition"], r["metric"]): r for r in told["rows"]}
    row = rows["clients=1", "seconds"]
    assert (row["n"], row["without_value"]) == (5, 1)
    assert row["mean"] == pytest.approx(4.3)
    assert rows["clients=1", "energy_j"]["n"] == 5
    assert "SY19" in {finding["code"] for finding in told["findings"]}


def test_no_runs_at_all(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    tables = ("runs", "attempts", "results", "records", "sample_parts")
    change(*(f"DELETE FROM {table}" for table in tables))(folder / "study.duckdb")
    told = report_of(folder, tmp_path, capsys)
    assert told["rows"] == [] and told["figures"] == []
    assert told["answer"][0] == "The study has no runs: nothing was measured."
    assert [finding["code"] for finding in told["findings"]] == ["SY29"]
    assert main(["compare", str(folder), "clients=1", "clients=2"]) == 2
    assert "no condition 'clients=1'" in capsys.readouterr().err


def test_one_run(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    keep = "run_id <> (SELECT min(run_id) FROM runs WHERE condition_label = 'clients=2')"
    change(*(f"DELETE FROM {t} WHERE {keep}" for t in ("results", "records", "attempts", "runs")))(
        folder / "study.duckdb"
    )
    told = report_of(folder, tmp_path, capsys)
    (row,) = [r for r in told["rows"] if r["metric"] == "seconds"]
    spread = (row["low"], row["sd"], row["mad"])
    assert (row["n"], spread, row["overhead"]) == (1, (None, None, None), None)
    assert told["answer"][0].startswith("No main figure can be judged against the baseline")
    assert row["verdict"] == "cannot be judged: no runs of the baseline"


def test_all_runs_failed(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    change(
        "DELETE FROM results",
        "UPDATE runs SET state = 'failed', valid = NULL, reason = 'killed by signal 9'",
        "UPDATE attempts SET state = 'failed'",
    )(folder / "study.duckdb")
    told = report_of(folder, tmp_path, capsys)
    assert {row["n"] for row in told["rows"]} == {0}
    assert {row["mean"] for row in told["rows"]} == {None}
    assert told["answer"][0].startswith("No run has given a result that counts")
    assert told["findings"][0]["code"] == "SY01"
    assert told["findings"][0]["text"] == "12 of 12 runs gave no result: 12 failed."
