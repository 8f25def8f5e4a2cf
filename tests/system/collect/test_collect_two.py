"""Two collects of one study: one waits its turn, and none fails that has done its work."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.collect import collect


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


@contextlib.contextmanager
def held(study: Any) -> Iterator[None]:
    """As long as another process has the database open for writing."""
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(study.dir / "study.duckdb")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None and holder.stdout.readline() == b"1\n"
        yield
    finally:
        holder.communicate(b"\n", timeout=60)


def test_the_second_of_two_is_told_to_wait(study: Any) -> None:
    study.collect()
    with held(study), pytest.raises(UsageError, match="in use by another process"):
        study.collect()
    study.collect()


def test_the_first_of_two_has_done_its_work(study: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second takes the database between the commit of the first and its Parquet files."""
    real = collect.export_tables

    def export_again(work: collect.Merge, but: Collection[str]) -> None:
        with held(study):
            real(work, but)

    monkeypatch.setattr(collect, "export_tables", export_again)
    done = study.collect()
    assert done.states["completed"] == 4
    assert HELP.query(study, "SELECT count(*) FROM runs WHERE state = 'completed'") == [(4,)]
    exported = study.dir / "parquet" / "exported"
    assert not exported.exists()  # summary refuses them until the second has written them
    monkeypatch.undo()
    study.collect()
    assert exported.exists()
