"""Statements on the published data are computed from them: a changed value changes them."""

from __future__ import annotations

import csv
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from steelyard.analysis.papers.jungels2012.measurements_report import build_thesis_report
from steelyard.analysis.papers.jungels2012.thesis_study import FOLDER, read_measurements
from steelyard.analysis.report import export

pytestmark = pytest.mark.slow

FILES, HPC = "filesystem.csv", "hpc.csv"
Row = dict[str, str]


@dataclass(frozen=True)
class Told:
    """As much of the report's JSON as is looked at."""

    means: dict[tuple[str, str], float]
    places: dict[str, list[str]]
    outcomes: dict[str, str]
    figures: list[Any]


Change = Callable[..., Told]


def told(folder: Path, with_figures: bool = False) -> Told:
    """Drawing takes longer than all the rest; nobody here looks at what any study has drawn."""
    report = build_thesis_report(read_measurements(folder))
    if not with_figures:
        report = replace(report, draws=[])
    with mock.patch.object(export, "figure_jobs", return_value=[]):
        document = json.loads(json.dumps(report.document()))
    return Told(
        {(r["variant"], r["condition"]): r["mean"] for r in document["rows"]},
        {f["code"]: f["places"] for f in document["findings"]},
        {c["sentence"]: c["outcome"] for c in document["conclusions"]},
        document["figures"],
    )


@pytest.fixture(scope="module")
def printed() -> Told:
    return told(FOLDER, with_figures=True)


@pytest.fixture
def changed(tmp_path: Path) -> Change:
    """Return the statements if the rows of one file differ; True: with the figures."""

    def change(name: str, edit: Callable[[list[Row]], list[Row]], *figures: bool) -> Told:
        for path in FOLDER.glob("*.csv"):
            (tmp_path / path.name).write_bytes(path.read_bytes())
        with (tmp_path / name).open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as lines:
            writer = csv.DictWriter(lines, rows[0].keys())
            writer.writeheader()
            writer.writerows(edit(rows))
        return told(tmp_path, *figures)

    return change


def test_a_value_moves_its_mean_its_figure_and_nothing_else(printed: Told, changed: Change) -> None:
    means = []

    def edit(rows: list[Row]) -> list[Row]:
        mine = [r for r in rows if (r["figure"], r["node_type"]) == ("D1", "virtual")]
        assert mine[0] is rows[0]
        means.append(statistics.harmonic_mean([float(row["total"]) for row in mine]))
        rows[0]["total"] = str(float(rows[0]["total"]) + 35)
        means.append(statistics.harmonic_mean([float(row["total"]) for row in mine]))
        return rows

    found = changed(HPC, edit, True)
    key = ("npb kernel=BT class=B", "node_type=virtual")
    assert [printed.means[key], found.means[key]] == pytest.approx(means)
    assert {k: v for k, v in found.means.items() if k != key} == {
        k: v for k, v in printed.means.items() if k != key
    }
    moved = [a["name"] for a, b in zip(found.figures, printed.figures, strict=True) if a != b]
    assert len(moved) == 1


def test_an_average_that_becomes_the_mean_is_no_finding(printed: Told, changed: Change) -> None:
    def edit(rows: list[Row]) -> list[Row]:
        mine = [r for r in rows if (r["figure"], r["node_type"]) == ("D6", "virtual")]
        shift = 873.986 - statistics.fmean(float(r["total"]) for r in mine)
        for row in mine:
            row["total"] = repr(float(row["total"]) + shift)
        return rows

    found = changed(HPC, edit)
    assert len(printed.places["SP01"]) == 6 + 5
    wanted = [p for p in printed.places["SP01"] if not p.startswith("D6") or "per process" in p]
    assert found.places["SP01"] == wanted


def test_a_series_is_repeated_only_value_for_value(printed: Told, changed: Change) -> None:
    def edit(rows: list[Row]) -> list[Row]:
        next(row for row in rows if row["figure"] == "B7")["seconds"] = "99"
        return rows

    found = changed(FILES, edit)
    assert printed.places["SP02"] == ["B7 prints the values of B6, one for one"]
    assert "SP02" not in found.places
    assert found.means != printed.means  # B7 counts then


def test_series_that_are_cut_or_missing_are_named(printed: Told, changed: Change) -> None:
    def edit(rows: list[Row]) -> list[Row]:
        kept = [row for row in rows if row["figure"] != "B12"]
        return [r for r in kept if r["figure"] != "C1" or int(r["iteration"]) <= 20]

    found = changed(FILES, edit)
    new = set(found.places["SP03"]) - set(printed.places["SP03"])
    assert "C1 (virtual): 20 values" in new
    assert any(place.startswith("filesystem test=large_file_copy · ") for place in new)


def test_the_ramp_is_found_where_it_is(printed: Told, changed: Change) -> None:
    """Lustre's small-file copy backwards: its ramp is then at the end, and no warm-up."""

    def edit(rows: list[Row]) -> list[Row]:
        for figure in {r["figure"] for r in rows}:
            mine = [r for r in rows if r["figure"] == figure]
            if (mine[0]["filesystem"], mine[0]["test"]) == ("Lustre", "small_file_copy"):
                for row, value in zip(mine, [r["seconds"] for r in mine][::-1], strict=True):
                    row["seconds"] = value
        return rows

    def ramps(told: Told) -> set[str]:
        wanted = "small_file_copy · filesystem=Lustre"
        return {p.partition(" · seconds")[0] for p in told.places["SY20"] if wanted in p}

    found = changed(FILES, edit)
    assert len(ramps(printed)) == 4
    assert len(ramps(found)) < 4
    assert [p for p in found.places["SY20"] if "PVFS" in p] == [
        p for p in printed.places["SY20"] if "PVFS" in p
    ]


def test_conclusions_turn_with_the_data(printed: Told, changed: Change) -> None:
    def edit(rows: list[Row]) -> list[Row]:
        for row in rows:
            if row["benchmark"] == "EP":
                row["node_type"] = {"virtual": "physical", "physical": "virtual"}[row["node_type"]]
        return rows

    found = changed(HPC, edit)
    sentence = "EP is faster on the virtual cluster."
    assert (printed.outcomes[sentence], found.outcomes[sentence]) == ("holds", "does not hold")
    assert {s for s in printed.outcomes if printed.outcomes[s] != found.outcomes[s]} == {sentence}
