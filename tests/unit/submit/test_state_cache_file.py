"""The file in which a status notes what it has read: damaged, another's, or not to be written."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from steelyard.analysis.base import file_changes
from steelyard.wrappers.submit import run_state

from .ended_study import RUNS, told

NOBODY = 65534


@pytest.fixture
def study(ended_study: Path) -> Path:
    return ended_study


def cut(data: bytes) -> bytes:
    return data[:-40]


def a_letter_changed(data: bytes) -> bytes:
    assert b'"failed"' in data
    return data.replace(b'"failed"', b'"foiled"', 1)


def a_hole(data: bytes) -> bytes:
    """Make a hole, as a node's crash does."""
    return data[:200] + bytes(len(data) - 200)


def of_another_make(data: bytes) -> bytes:
    """Whole, and not what this one writes."""
    body = b'{"reader":[99],"runs":{"x":1}}'
    return f"{file_changes.digest(body)}\n".encode() + body


@pytest.mark.parametrize(
    "damage",
    [cut, a_letter_changed, a_hole, of_another_make, lambda _: b"", lambda _: b"\xff\x00\n[]\n"],
)
def test_a_damaged_file_is_not_believed_and_made_anew(
    study: Path, damage: Callable[[bytes], bytes], results_read: list[str]
) -> None:
    first = told(study)
    file = study / run_state.CACHE_FILE
    file.write_bytes(damage(file.read_bytes()))
    results_read.clear()
    assert told(study) == first
    assert len(results_read) == RUNS + 1
    results_read.clear()
    assert told(study) == first
    assert results_read == []


@pytest.mark.parametrize("what", ["folder", "fifo", "link"])
def test_something_else_in_its_place_is_no_harm(study: Path, what: str) -> None:
    file = study / run_state.CACHE_FILE
    outside = study.parent / "outside"
    outside.write_text("mine")
    if what == "folder":
        file.mkdir()
    elif what == "fifo":
        os.mkfifo(file)
    else:
        file.symlink_to(outside)
    assert (told(study), outside.read_text()) == (told(study), "mine")


def test_another_version_reads_all_anew(
    study: Path, monkeypatch: pytest.MonkeyPatch, results_read: list[str]
) -> None:
    first = told(study)
    monkeypatch.setattr(file_changes, "digest_program", lambda: "another")
    results_read.clear()
    assert told(study) == first
    assert len(results_read) == RUNS + 1


def test_a_changed_file_of_the_program_changes_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = tmp_path / "analysis" / "sources" / "study_files.py"
    code.parent.mkdir(parents=True)
    code.write_text("# a reader\n")
    monkeypatch.setattr(file_changes, "__file__", str(tmp_path / "analysis/base/file_changes.py"))
    first = file_changes.digest_program.__wrapped__()
    (code.parent / "study_files.cpython-311.pyc").write_text("compiled")
    assert file_changes.digest_program.__wrapped__() == first
    code.write_text("# another reader\n")
    assert file_changes.digest_program.__wrapped__() != first


def test_a_look_that_was_killed_is_waited_for_no_longer_than_a_minute(study: Path) -> None:
    part = study / f"{run_state.CACHE_FILE}.part"
    part.write_text("half")
    first = told(study)
    assert not (study / run_state.CACHE_FILE).exists()
    assert part.read_text() == "half"
    old = time.time() - run_state.STALE_S - 1
    os.utime(part, (old, old))
    assert told(study) == first
    assert (study / run_state.CACHE_FILE).exists()
    assert not part.exists()


def test_a_full_disk_is_no_error(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> None:
        os.write(fd, data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_state.ledger, "write_all", full)
    assert told(study)["done"] == RUNS - 2
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]


def test_a_study_that_cannot_be_written_is_told_without_a_word(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(part: Path) -> int:
        raise OSError(30, "Read-only file system", str(part))

    monkeypatch.setattr(run_state, "create_file", refused)
    assert told(study) == told(study)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away")
def test_a_file_of_somebody_else_is_not_believed(study: Path, results_read: list[str]) -> None:
    told(study)
    os.chown(study / run_state.CACHE_FILE, NOBODY, NOBODY)
    results_read.clear()
    told(study)
    assert len(results_read) == RUNS + 1
