"""The sessions of a study: their order, and what hands did to their folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources.study_sessions import Session, list_sessions


def add_session(folder: Path, name: str, number: int, began: float, indexed: bool = True) -> Path:
    """Make a session with a plan of no runs."""
    session = {"name": name, "number": number, "began_unix_s": began}
    path = folder / f"{name}.study"
    path.mkdir(parents=True)
    plan = {"format": "steelyard-plan", "version": 1, "study": {"session": session}, "runs": []}
    (path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    if indexed:
        with (folder / "sessions.jsonl").open("a", encoding="utf-8") as index:
            index.write(json.dumps(session) + "\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "nightly.sessions"


def test_without_a_folder_there_are_no_sessions(folder: Path) -> None:
    assert list_sessions(folder) == []


def test_numbers_and_not_clocks_or_names_give_the_order(folder: Path) -> None:
    add_session(folder, "z", 1, 500.0)
    add_session(folder, "a", 2, 100.0)  # the clock stepped back
    add_session(folder, "m", 10, 600.0)
    assert list_sessions(folder) == [
        Session("z", 1, 500.0, folder / "z.study"),
        Session("a", 2, 100.0, folder / "a.study"),
        Session("m", 10, 600.0, folder / "m.study"),
    ]


def test_half_made_and_deleted_sessions_are_none(folder: Path) -> None:
    add_session(folder, "first", 1, 1.0)
    (add_session(folder, "half", 2, 2.0) / "plan.json").unlink()
    shutil.rmtree(add_session(folder, "deleted", 3, 3.0))
    assert [one.name for one in list_sessions(folder)] == ["first"]


def test_a_renamed_session_keeps_its_number(folder: Path) -> None:
    add_session(folder, "old", 1, 1.0).rename(folder / "new.study")
    add_session(folder, "next", 2, 2.0)
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("new", 1), ("next", 2)]


def test_without_the_index_the_plans_tell(folder: Path) -> None:
    add_session(folder, "b", 1, 1.0, indexed=False)
    add_session(folder, "a", 2, 2.0, indexed=False)
    assert [one.name for one in list_sessions(folder)] == ["b", "a"]


def test_a_line_cut_short_is_left_out(folder: Path) -> None:
    add_session(folder, "a", 1, 1.0)
    add_session(folder, "b", 2, 2.0)
    index = folder / "sessions.jsonl"
    index.write_bytes(index.read_bytes()[:-9])
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("a", 1), ("b", 2)]


def test_a_session_submitted_again_after_it_was_deleted_is_a_later_one(folder: Path) -> None:
    shutil.rmtree(add_session(folder, "a", 1, 1.0))
    add_session(folder, "b", 2, 2.0)
    add_session(folder, "a", 3, 3.0)
    assert [(one.name, one.number) for one in list_sessions(folder)] == [("b", 2), ("a", 3)]


def test_a_study_that_was_put_there_by_hand_is_named(folder: Path) -> None:
    stranger = add_session(folder, "x", 1, 1.0, indexed=False)
    plan = {"format": "steelyard-plan", "version": 1, "study": {}, "runs": []}
    (stranger / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.study/plan\.json.*move the folder out"):
        list_sessions(folder)
