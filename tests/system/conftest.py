"""Tests of real programs: shared fixtures. No test may leave a process running."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.submit.paper_slurm import (  # noqa: F401 - fixtures
    finish_run,
    slurm,
    submitted,
    write_study,
)
from tests.unit.summary.databases import (  # noqa: F401 - fixtures
    demo_folder,
    demo_summary,
    energy_folder,
    synthetic,
    thesis_folder,
)

from . import leftovers
from .leftovers import marked  # noqa: F401 - a fixture

CLUSTER = Path(__file__).parent / "cluster"  # its daemons outlive a test


@pytest.fixture(autouse=True)
def nothing_is_left_running(
    request: pytest.FixtureRequest,
    marked: None,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """End the processes that a test started and did not end, and fail the test."""
    if CLUSTER in request.path.parents:
        yield
        return
    before = leftovers.pids()
    yield
    left = leftovers.end(before, str(tmp_path_factory.getbasetemp()))
    assert not left, "still running after the test, and killed: " + "; ".join(left)
