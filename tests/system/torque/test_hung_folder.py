"""A folder of records that does not answer: pbs_mom's scripts come back, and say yes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hung_folder import Mounted, needed, waiting_samplers
from tests.system.torque.conftest import Cluster
from tests.system.torque.test_pelog import first_given


@pytest.fixture
def mounted(cluster: Cluster) -> Iterator[Mounted]:
    needed()
    made = Mounted(cluster.base / "behind", cluster.records)
    try:
        yield made
    finally:
        made.end()


@pytest.mark.parametrize("hangs_at", ["begin", "end"])
def test_a_folder_that_hangs_refuses_no_job_and_holds_none(
    cluster: Cluster, mounted: Mounted, hangs_at: str
) -> None:
    if hangs_at == "begin":
        mounted.hang()
    assert cluster.first.pelog("prologue", first_given(cluster, "prologue")) == 0
    if hangs_at == "end":
        mounted.hang()
    assert cluster.first.pelog("epilogue", first_given(cluster, "epilogue")) == 0


def test_beside_too_many_samplers_that_wait_a_job_runs_unmeasured(cluster: Cluster) -> None:
    with waiting_samplers(cluster.run, 64):
        assert cluster.first.pelog("prologue", first_given(cluster, "prologue")) == 0
        assert (
            "not sampled: 64 samplers of this node wait already"
            in (cluster.run / "vm.log").read_text()
        )
        assert cluster.first.pelog("epilogue", first_given(cluster, "epilogue")) == 0
