"""What must be on disk before something else happens, is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.collect import record_import as gather
from steelyard.analysis.sources.study_files import Submission
from steelyard.analysis.store import sample_store, schema
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study.folder import StudyDir

from ..collect import study as HELP


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, bytes]]:
    """Each file that was put on disk, with what stood in it then."""
    real, found = os.fsync, []

    def fsync(fd: int) -> None:
        real(fd)
        path = Path(f"/proc/self/fd/{fd}").readlink()
        found.append((path, path.read_bytes()))

    monkeypatch.setattr(os, "fsync", fsync)
    return found


def test_an_accepted_submission_is_on_disk(
    tmp_path: Path, synced: list[tuple[Path, bytes]]
) -> None:
    """With its line whole, before anything else is handed in."""
    study = StudyDir(tmp_path)
    for job in ("12", "13"):
        entry = Submission("b001-x", "slurm", None, job, 0.0, 1, [], ["a"])
        ledger.append_submission(study, entry)
        path, data = synced.pop()
        assert path == study.submissions
        assert json.loads(data.splitlines()[-1])["job_id"] == job and data.endswith(b"\n")


def test_samples_that_are_rewritten_are_on_disk_before_the_old_ones_go(
    tmp_path: Path, synced: list[tuple[Path, bytes]]
) -> None:
    connection = duckdb.connect()
    connection.execute(schema.build_schema())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mine = sample_store.Parts(connection, tmp_path, scratch)
    names = ", ".join(f"NULL::{kind} AS {name}" for name, kind in sample_store.ALL_COLUMNS.items())
    mine.rewrite(f"SELECT {names}", None)
    (part,) = scratch.rglob("*.parquet")
    assert synced == [(part, part.read_bytes())]


def test_a_record_is_brought_after_its_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alone it would look whole, and its samples would be gone with the node's copy."""
    study = HELP.Study(tmp_path)
    study.everything()
    real: Any = gather.copy_into_study
    brought: dict[str, list[str]] = {}

    def bring_file(source: Path, target: Path) -> None:
        brought.setdefault(source.stem + source.parent.name, []).append(source.suffix)
        real(source, target)

    monkeypatch.setattr(gather, "copy_into_study", bring_file)
    study.collect()
    assert len(brought) == 7
    assert set(map(tuple, brought.values())) == {(".csv", ".json")}
