"""Files that are not what was expected: one line with the file, the place, and what it should
be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uproot
from tests.system.hep.conftest import RECIPE, SMALL, Study

from steelyard.jobscripts import registry
from steelyard.jobscripts.hep import client_tasks, input_files
from steelyard.jobscripts.hep.counting_reader import ReadError

Make = Callable[[Path], None]


def refusal(path: Path, **given: object) -> str:
    asked = registry.load("xrootd").check_parameters({**SMALL, **given})
    task = {"where": str(path), "asked": asked, "skim": str(path.with_name("skim.root"))}
    with pytest.raises(ReadError) as caught:
        client_tasks.analyse(task)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


def another_tree(path: Path) -> None:
    with uproot.recreate(path) as file:
        file.mktree("Others", {"a": "f4"}).extend({"a": np.zeros(9, "f4")})


def no_tree(path: Path) -> None:
    with uproot.recreate(path) as file:
        file["Events"] = np.histogram([1, 2])


def one_branch(path: Path) -> None:
    with uproot.recreate(path) as file:
        file.mktree("Events", {"Muon_pt": "f4"}).extend({"Muon_pt": np.zeros(9, "f4")})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (another_tree, "expected a tree 'Events'; found: 'Others;1'"),
        (no_tree, "expected a tree 'Events'; found: a TH1D"),
        (lambda path: uproot.recreate(path).close(), "expected a tree 'Events'; found: nothing"),
        (
            one_branch,
            (
                "the tree 'Events' has no branch 'Muon_eta', 'Muon_phi', 'Muon_charge'; expected: "
                "'Muon_pt', 'Muon_eta', 'Muon_phi', 'Muon_charge'; found: 'Muon_pt'"
            ),
        ),
        (
            lambda path: path.write_bytes(b"no ROOT at all " * 99),
            "expected a ROOT file with a tree 'Events'; found: ValueError: not a ROOT file",
        ),
        (
            lambda path: path.write_bytes(b""),
            "expected the bytes up to 403; found: the file's end at 0",
        ),
    ],
)
def test_a_file_with_something_else_in_it(tmp_path: Path, make: Make, words: str) -> None:
    make(tmp_path / "own.root")
    assert refusal(tmp_path / "own.root").startswith(words)


def basket(path: Path, branch: str) -> int:
    """Return the offset of the branch's second basket."""
    with uproot.open(path) as file:
        return int(file["Events"][branch].basket_key(1).data_cursor.index)


def damaged(source: Path, target: Path, branch: str) -> Path:
    """The file with bytes of a compressed basket changed."""
    data = bytearray(source.read_bytes())
    at = basket(source, branch)
    for i in range(at + 15, at + 60):
        data[i] ^= 0x5A
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd", "lzma"])
def test_a_damaged_basket_is_named(tmp_path: Path, compression: str) -> None:
    known = input_files.keep_file(tmp_path, {**RECIPE, "compression": compression})
    path = damaged(tmp_path / known["file"], tmp_path / "bad.root", "Muon_eta")
    words = refusal(path, compression=compression)
    assert words.startswith(
        "the branch 'Muon_eta' of the tree 'Events' is damaged between the events 1000 and 2000; "
        "expected: baskets as they were written; found: "
    )


def test_a_file_that_ends_too_early_is_named(data: Path, tmp_path: Path) -> None:
    whole = (data / input_files.file_name(RECIPE)).read_bytes()
    (tmp_path / "cut.root").write_bytes(whole[: len(whole) // 2])
    words = refusal(tmp_path / "cut.root")
    assert re.match(r"expected the bytes up to \d+; found: the file's end at \d+$", words)


def test_a_run_gives_the_cause_as_its_reason(study: Study) -> None:
    """Of a tree with another name: nobody has to look for a traceback."""
    path = study.folder / "data" / input_files.file_name(RECIPE)
    another_tree(path)
    note = input_files.note_of(path)
    known: dict[str, Any] = json.loads(note.read_text())
    known |= {"sha256": input_files.sha256(path), "bytes": path.stat().st_size}
    note.write_text(json.dumps(known))
    found = study.run("xrootd", mode="local", data=str(path.parent))
    assert found["state"] == "failed"
    wanted = f"steelyard: client 0: {path}: expected a tree 'Events'; found: 'Others;1'"
    assert wanted in found["reason"]
    assert "Traceback" not in (study.attempt / "err.0").read_text()
