"""A folder of records that does not respond: pbs_mom's scripts return successfully."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.hung_folder import Mounted, Unkillable, needed, waiting_samplers
from tests.system.job.conftest import TIMEOUT_S
from tests.system.torque.conftest import Cluster
from tests.system.torque.test_pelog import first_given

CONDITION = "other=steelyard:netem=rate%3D100mbit,nodes=2"


@pytest.fixture(params=[Mounted, Unkillable])
def mounted(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Mounted]:
    needed()
    made: Mounted = request.param(cluster.base / "behind", cluster.records)
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


@pytest.mark.parametrize("mounted", [Unkillable], indirect=True)
@pytest.mark.parametrize(("resources", "status"), [("nodes=2", 0), (CONDITION, 1)])
def test_notes_of_other_nodes_that_cannot_be_read(
    cluster: Cluster, mounted: Mounted, resources: str, status: int
) -> None:
    """The kernel knows that this node has left no note; whether its sister has, the server knows."""
    given = first_given(cluster, "prologue", resources=resources)
    assert not (cluster.records / f".answer.{given.words[0]}.vm").exists()
    mounted.hang()
    assert cluster.first.pelog("prologue", given, kill_after_s=TIMEOUT_S) == status
    if status:
        assert "cannot be read" in cluster.first.output.read_text()
        assert cluster.samplers() == []


def test_beside_too_many_samplers_that_wait_a_job_runs_unmeasured(cluster: Cluster) -> None:
    with waiting_samplers(cluster.run, 64):
        assert cluster.first.pelog("prologue", first_given(cluster, "prologue")) == 0
        assert (
            "not sampled: 64 samplers of this node wait already"
            in (cluster.run / "vm.log").read_text()
        )
        assert cluster.first.pelog("epilogue", first_given(cluster, "epilogue")) == 0
