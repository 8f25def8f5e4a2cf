"""Tests read extracts of real databases, and their cache."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import duckdb
import pytest

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.history import extract_cache
from steelyard.analysis.history.extract_cache import CACHE_FILE, ReadSession, read_sessions
from steelyard.analysis.history.history import read_history
from steelyard.analysis.history.session_extracts import read_extract
from steelyard.analysis.sources.study_sessions import list_sessions

from .stored_sessions import (
    change_session,
    first_session_files,
    write_first_session,
    write_sessions,
)


def read(folder: Path) -> list[ReadSession]:
    return read_sessions(folder, list_sessions(folder))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_sessions(tmp_path, [1.0, 1.0, 1.1], ["6.1.0-30", "6.1.0-30", "6.1.0-31"])


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any database that is read from now on is an error."""

    def refuse(folder: Path) -> None:
        raise AssertionError(f"{folder} was read")

    monkeypatch.setattr(extract_cache, "read_extract", refuse)


def test_the_sessions_of_these_tests_leave_nothing_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run of the tests left a folder in /tmp for each of its workers."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    first_session_files.cache_clear()
    write_first_session(tmp_path / "a.study")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_extract_has_the_valid_completed_runs_and_the_nodes_states(tmp_path: Path) -> None:
    found = read_extract(write_first_session(tmp_path / "a.study"))
    (figure,) = found.figures
    assert (figure.variant, figure.label, figure.metric, figure.unit) == (
        "app", "clients=1", "seconds", "s",
    )  # fmt: skip
    assert len(figure.values) == 6
    assert all(9.9 < value < 10.1 for value in figure.values)
    assert figure.nodes == [["n2"], ["n1"]] * 3
    assert (found.completed, found.failed, found.invalid, found.waiting) == (7, 1, 1, 1)
    assert found.states["n1"]["kernel.release"] == "6.1.0-30"
    assert found.states["n1"]["cpu.microcode"] is None
    assert found.states["n1"]["governor"] == "performance"
    assert found.states["n1"]["library /lib/libm.so.6"] == "cd" * 6
    assert "memory.source" not in found.states["n1"], "it is of a total, not of the machine"
    assert "launcher_container" not in found.states["n1"], "it is of one run"
    assert found.programs["app"]["program /opt/app"] == "ab" * 6


def test_what_is_cached_is_what_was_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(folder)
    forbid_reading(monkeypatch)
    assert read(folder) == first
    kernels = [one.extract and one.extract.states["n2"]["kernel.release"] for one in first]
    assert kernels == ["6.1.0-30", "6.1.0-30", "6.1.0-31"]


def test_alike_states_are_stored_once(folder: Path) -> None:
    read(folder)
    document = json.loads((folder / CACHE_FILE).read_bytes())
    assert len(document["states"]) == 2


def test_a_session_that_was_collected_again_is_read_again(folder: Path) -> None:
    before = read(folder)
    change_session(folder / "2026-11-02.study", 2.0, "6.1.0-30")
    after = read(folder)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    changed = after[1].extract
    assert changed is not None
    assert changed.figures[0].values[0] > 19


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": "x"}', b"\xff\x00"])
def test_a_cache_that_cannot_be_read_is_made_again(folder: Path, content: bytes) -> None:
    first = read(folder)
    whole = (folder / CACHE_FILE).read_bytes()
    (folder / CACHE_FILE).write_bytes(content)
    assert read(folder) == first
    assert (folder / CACHE_FILE).read_bytes() == whole


def test_a_folder_without_room_for_a_cache_is_read_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / CACHE_FILE).mkdir()
    assert len(read(folder)) == 3
    assert not list(folder.glob(".history.json.*"))


def test_a_damaged_database_and_one_that_is_missing_are_told_and_others_used(folder: Path) -> None:
    (folder / "2026-11-01.study" / "study.duckdb").write_bytes(b"no database" * 1000)
    (folder / "2026-11-02.study" / "study.duckdb").unlink()
    for _ in range(2):  # once more, from the cache
        found = read_history(folder)
        assert [session.name for session in found.sessions] == ["2026-11-03"]
        (damaged, missing) = (reason for _, reason in found.excluded)
        assert "is damaged" in damaged
        assert "steelyard collect" in missing


def test_without_any_database_there_is_no_history(folder: Path) -> None:
    for database in folder.glob("*/study.duckdb"):
        database.unlink()
    with pytest.raises(MissingError, match="has no session that can be read: .*steelyard collect"):
        read_history(folder)


def test_a_database_of_an_earlier_steelyard_is_used_as_it_was_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade loses no history: the cached extract stands in, unless the file is another one."""
    first = read(folder)
    with duckdb.connect(str(folder / "2026-11-02.study" / "study.duckdb")) as connection:
        connection.execute("UPDATE meta SET schema_version = 1")

    def refuse(session: Path) -> None:
        raise UsageError(f"{session} has schema version 1")

    monkeypatch.setattr(extract_cache, "read_extract", refuse)
    monkeypatch.setattr(file_changes, "digest_program", lambda: "another release")
    after = read(folder)
    assert (after[0], after[2]) == (first[0], first[2])
    assert after[1].extract is None
    assert "schema version 1" in (after[1].reason or "")


def test_a_removed_session_leaves_the_cache(folder: Path) -> None:
    read(folder)
    (folder / "2026-11-02.study").rename(folder.parent / "elsewhere")
    assert len(read(folder)) == 2
    assert set(json.loads((folder / CACHE_FILE).read_bytes())["sessions"]) == {
        "2026-11-01", "2026-11-03",
    }  # fmt: skip
