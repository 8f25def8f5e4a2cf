"""Input files: the events, what must be found in them, and how a file is kept."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.system.hep.conftest import RECIPE, SMALL

from steelyard.facts import json_fields
from steelyard.jobscripts import registry
from steelyard.jobscripts.hep import client_output, client_tasks, input_files, tree_writer
from steelyard.jobscripts.hep.events import Events, Pairs, reckon


def pairs_one_by_one(columns: Mapping[str, Any]) -> list[float]:
    """Masses by a loop over events and muons in plain Python: a third way."""
    found, at = [], 0
    for number in columns["nMuon"].tolist():
        muons = [
            tuple(float(columns[f"Muon_{name}"][i]) for name in ("pt", "eta", "phi", "charge"))
            for i in range(at, at + number)
        ]
        at += number
        good = [m for m in muons if m[0] > 20 and abs(m[1]) < np.float32(2.4)]
        if len(good) >= 2 and good[0][3] != good[1][3]:
            (pt1, eta1, phi1, _), (pt2, eta2, phi2, _) = good[:2]
            square = 2 * pt1 * pt2 * (math.cosh(eta1 - eta2) - math.cos(phi1 - phi2))
            found.append(math.sqrt(square))
    return found


def test_the_reckoning_is_what_a_plain_loop_finds() -> None:
    columns, pairs = Events(seed=3).block(0, 0, 2000), Pairs()
    reckon(columns, pairs)
    masses = pairs_one_by_one(columns)
    assert 100 < len(masses) == pairs.result()["selected"]
    assert pairs.result()["mass_sum_gev"] == pytest.approx(math.fsum(masses), rel=1e-12)


def test_events_look_like_a_z_and_depend_on_the_seed_only() -> None:
    columns = Events(seed=3).block(0, 0, 2000)
    masses = np.array(pairs_one_by_one(columns))
    assert 88 < float(np.median(masses)) < 94
    again, other = Events(seed=3).block(0, 0, 2000), Events(seed=4).block(0, 0, 2000)
    assert all(np.array_equal(columns[name], again[name]) for name in columns)
    assert not np.array_equal(columns["MET_pt"], other["MET_pt"])
    assert len(columns["Muon_pt"]) == columns["nMuon"].sum()


def task(data: Path, tmp_path: Path, benchmark: str = "xrootd", **given: object) -> dict[str, Any]:
    """A task of work.py for the small file."""
    asked = registry.load(benchmark).check_parameters({**SMALL, **given})
    where = data / input_files.file_name(RECIPE)
    return {"where": str(where), "asked": asked, "skim": str(tmp_path / "skim.root")}


@pytest.mark.parametrize("step", [70, 1000, 1700, 10**6])
@pytest.mark.parametrize("columns", ["needed", "all"])
def test_the_analysis_finds_the_same_pairs_in_steps_of_any_size(
    data: Path, tmp_path: Path, step: int, columns: str
) -> None:
    known = input_files.keep_file(data, RECIPE)
    found = client_tasks.analyse(task(data, tmp_path, step=step, columns=columns))
    client_output.verify(found["found"], known["pairs"], "this")
    assert found["events"] == 3000
    assert not (tmp_path / "skim.root").exists()


def test_reading_ahead_changes_nothing_but_the_waiting(data: Path, tmp_path: Path) -> None:
    plain = client_tasks.analyse(task(data, tmp_path, step=500))
    ahead = client_tasks.analyse(task(data, tmp_path, step=1000, read_ahead=2))
    client_output.verify(ahead["found"], plain["found"], "reading ahead")
    # A step of half a basket reads it twice.
    assert ahead["bytes_read"] < plain["bytes_read"]
    assert 0 < ahead["wait_s"] < ahead["end_s"] - ahead["begin_s"]


@pytest.mark.slow
@pytest.mark.parametrize("compression", registry.load("roottree").parameters["compression"].choices)
@pytest.mark.parametrize("structure", registry.load("roottree").parameters["structure"].choices)
def test_every_structure_and_compression_is_read_as_it_was_written(
    tmp_path: Path, structure: str, compression: str
) -> None:
    recipe = {"structure": structure, "compression": compression, "events": 250}
    known = input_files.keep_file(tmp_path, {**recipe, "cluster": 100, "seed": 1})
    asked = registry.load("roottree").check_parameters({**recipe, "step": 110})
    found = client_tasks.read_all({"where": str(tmp_path / known["file"]), "asked": asked})
    assert found["found"] == {"content_sha256": known["content_sha256"]}
    assert found["events"] == 250


def test_both_benchmarks_have_the_same_compressions() -> None:
    one, other = (registry.load(name).parameters["compression"] for name in ("xrootd", "roottree"))
    assert one.choices == other.choices and len(one.choices) == 5


# --- keeping ---


def test_a_file_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    write = tree_writer.write

    def counted(path: Path, recipe: tree_writer.Recipe) -> dict[str, Any]:
        made.append(path)
        return write(path, recipe)

    monkeypatch.setattr(tree_writer, "write", counted)
    with ThreadPoolExecutor(3) as pool:
        notes = list(pool.map(lambda _: input_files.keep_file(tmp_path, RECIPE), range(3)))
    assert len(made) == 1
    assert json_fields.compare("hep_data", notes[0]) == []
    assert notes[0] == notes[1] == notes[2] == input_files.keep_file(tmp_path, RECIPE)
    name = input_files.file_name(RECIPE)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        name,
        f"{name}.json",
        f"{name}.lock",
    ]


def test_processes_wait_for_each_other(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from steelyard.jobscripts.hep import input_files\n"
        f"print(input_files.keep_file(Path(sys.argv[1]), {RECIPE!r})['sha256'])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    sums = {process.communicate(timeout=60)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    path = tmp_path / input_files.file_name(RECIPE)
    assert sums == {input_files.sha256(path) + "\n"}


def test_a_file_that_could_not_be_made_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, recipe: tree_writer.Recipe) -> dict[str, Any]:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tree_writer, "write", full)
    with pytest.raises(input_files.DataError, match="cannot be kept in .*No space left"):
        input_files.keep_file(tmp_path, RECIPE)
    assert [path.name for path in tmp_path.iterdir()] == [input_files.file_name(RECIPE) + ".lock"]
    monkeypatch.undo()
    assert input_files.keep_file(tmp_path, RECIPE)["bytes"] > 0


def test_a_file_whose_content_changed_is_refused(tmp_path: Path) -> None:
    known = input_files.keep_file(tmp_path, RECIPE)
    path = tmp_path / known["file"]
    assert input_files.checked(path, known) == path
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(input_files.DataError, match="is not the file that was made: its SHA-256"):
        input_files.checked(path, known)


def test_a_copy_is_checked_while_it_is_made(tmp_path: Path) -> None:
    known = input_files.keep_file(tmp_path, RECIPE)
    copy = input_files.checked(tmp_path / known["file"], known, tmp_path / "copy")
    assert input_files.sha256(copy) == known["sha256"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "is not version 1 of a note"),
        ({"format": "x"}, "is not version 1 of a note"),
        ({"recipe": {}}, "is of another recipe: remove it"),
    ],
)
def test_a_note_of_something_else_is_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    known = input_files.keep_file(tmp_path, RECIPE)
    input_files.note_of(tmp_path / known["file"]).write_text(json.dumps(known | change))
    with pytest.raises(input_files.DataError, match=words):
        input_files.keep_file(tmp_path, RECIPE)
