"""`steelyard compare` of two sessions: nothing is paired, and each difference has Welch's interval."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from scipy import stats

import steelyard.analysis
from steelyard.wrappers.commands import cli

Capture = pytest.CaptureFixture[str]
REPEAT = 12  # from 10 blocks on, conditions of one study are paired by block


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, synthetic: Any) -> Path:
    """Make two sessions of demo; the second is 10 % slower, and lacks clients=2 of HPL."""
    parent = tmp_path_factory.mktemp("compare")
    for number, name in enumerate(("before", "after"), 1):
        path = synthetic.demo("demo", repeat=REPEAT).write(parent / "demo.sessions" / name)
        session = parent / "demo.sessions" / f"{name}.study"
        path.rename(session)
        path.parent.rmdir()
        with duckdb.connect(str(session / "study.duckdb")) as connection:
            connection.execute("UPDATE meta SET session = ?, session_number = ?", [name, number])
            if name == "after":
                connection.execute("UPDATE results SET value = value * 1.1 WHERE unit = 's'")
                hpl = "benchmark = 'hpl' AND condition_label = 'clients=2'"
                connection.execute(f"DELETE FROM runs WHERE {hpl}")
    index = [
        json.dumps({"name": name, "number": number, "began_unix_s": float(number)}) + "\n"
        for number, name in enumerate(("before", "after"), 1)
    ]
    (parent / "demo.sessions/sessions.jsonl").write_text("".join(index), encoding="utf-8")
    return parent / "demo"


def values(folder: Path, session: str, variant: str, label: str) -> list[float]:
    with steelyard.analysis.load(f"{folder}@{session}") as study:
        return list(study.row(variant, label, "seconds").values)


def compared(folder: Path, capsys: Capture, *options: str) -> str:
    assert cli.main(["compare", f"{folder}@before", f"{folder}@after", *options]) == 0
    return capsys.readouterr().out


def test_figures_in_different_units_are_not_compared(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    """The benchmark prints milliseconds from the second session on: nothing is 1000 times slower."""
    shutil.copytree(folder.parent, tmp_path, dirs_exist_ok=True)
    with duckdb.connect(str(tmp_path / "demo.sessions/after.study/study.duckdb")) as connection:
        connection.execute("UPDATE results SET unit = 'ms', value = 1000 * value WHERE unit = 's'")
    rows = json.loads(compared(tmp_path / "demo", capsys, "--json"))["rows"]
    seconds = [row for row in rows if row["metric"] == "seconds"]
    assert {row["verdict"] for row in seconds} == {
        "cannot be judged: its unit is ms, the baseline's s"
    }
    assert {(row["overhead"], row["p_holm"]) for row in seconds} == {(None, None)}
    assert any(row["overhead"] is not None for row in rows)  # those of HPL


def test_the_interval_is_welchs_of_independent_runs(folder: Path, capsys: Capture) -> None:
    document = json.loads(compared(folder, capsys, "--json"))
    assert (document["study"], document["a"], document["b"]) == (
        "demo",
        "demo@before",
        "demo@after",
    )
    assert document["interleaved"] is False
    key = ("filesystem test=large_file_copy", "clients=1")
    (row,) = [r for r in document["rows"] if (r["variant"], r["condition"]) == key]
    a, b = (values(folder, name, *key) for name in ("before", "after"))
    assert row["a"]["n"] == row["b"]["n"] == REPEAT
    assert row["overhead"] == pytest.approx(np.mean(b) / np.mean(a) - 1, rel=1e-12)
    assert row["overhead"] == pytest.approx(0.1, abs=1e-9)
    # The same values times 1.1: pairing by block would see no spread at all.
    p = float(stats.ttest_ind(a, b, equal_var=False).pvalue)
    width = (row["overhead_high"] - row["overhead_low"]) / 2
    spread = 1.1 * np.sqrt(2) * np.std(a, ddof=1) / np.mean(a) / np.sqrt(REPEAT)
    assert 1.8 < width / spread < 2.3  # t of about 22 degrees of freedom: 2.07
    assert p <= row["p_holm"] <= p * len(document["rows"])


@pytest.mark.parametrize(("a", "b"), [("before", "nope"), ("nope", "before"), ("nope", "nope")])
def test_a_session_that_is_none_is_told_with_those_there_are(
    folder: Path, a: str, b: str, capsys: Capture
) -> None:
    assert cli.main(["compare", f"{folder}@{a}", f"{folder}@{b}"]) == 2
    assert capsys.readouterr().err == (
        f"steelyard compare: {folder}@nope: no such session; the last of 2: before, after (all: "
        f"`steelyard status {folder}`)\n"
    )


def test_it_says_what_was_not_interleaved_and_what_one_side_lacks(
    folder: Path, capsys: Capture
) -> None:
    text = " ".join(compared(folder, capsys).split())
    assert "demo@after (B) against demo@before (A):" in text
    assert "The runs of the two were not interleaved: whatever changed between them is in" in text
    assert "demo@before alone has, or demo@after has no values of: hpl N=4000 clients=2" in text
    assert "slower by 10.0 % (" in text


def test_only_main_figures_of_common_conditions_are_compared(folder: Path, capsys: Capture) -> None:
    rows = json.loads(compared(folder, capsys, "--json"))["rows"]
    keys = {(row["variant"], row["condition"], row["metric"]) for row in rows}
    assert ("hpl N=4000", "clients=1", "gflops") in keys
    assert not [key for key in keys if key[:2] == ("hpl N=4000", "clients=2")]
    assert not [key for key in keys if key[2] in ("elapsed_s", "cpu_s")]


@pytest.mark.parametrize("other, message", [
    ("{folder}@before", "are the same: name two of them"),
    ("never", "is none: expected another study or session (STUDY STUDY), or two"),
])  # fmt: skip
def test_bad_names(other: str, message: str, folder: Path, capsys: Capture) -> None:
    assert cli.main(["compare", f"{folder}@before", other.format(folder=folder)]) == 2
    assert message in capsys.readouterr().err


def test_studies_without_a_common_condition_are_refused(
    folder: Path, capsys: Capture, synthetic: Any, tmp_path: Path, thesis_folder: Path
) -> None:
    assert cli.main(["compare", f"{folder}@before", str(thesis_folder)]) == 2
    assert "have no main figure of a benchmark and condition in common" in capsys.readouterr().err


def test_a_report_names_its_session_and_how_to_redo_it(
    folder: Path, capsys: Capture, tmp_path: Path
) -> None:
    page: Callable[[], str] = (tmp_path / "page.html").read_text
    assert cli.main(["report", f"{folder}@after", "-o", str(tmp_path / "page.html")]) == 0
    assert capsys.readouterr().out.startswith("demo@after: ")
    assert "<title>demo@after: report of a study</title>" in page()
    assert "Save the study below as <code>demo.toml</code>" in page()
    assert "steelyard submit demo.toml --session after" in page()
