"""One real throwaway Slurm cluster of four nodes of this machine, for all tests in this folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.throwaway_lab import KERNEL_COUNTS, Lab, until

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster.cluster_config import ClusterConfig


@pytest.fixture(scope="session")
def cluster() -> Iterator[throwaway.Cluster]:
    """Start one cluster for all tests; without Slurm they are skipped, in CI they fail."""
    try:
        plugin, node_program = throwaway.find_plugin()
        with (
            tempfile.TemporaryDirectory(prefix="sylab-", dir="/tmp") as folder,
            throwaway.start_cluster(
                ClusterConfig(
                    dir=Path(folder) / "c",
                    plugin=plugin,
                    node_program=node_program,
                    sample_rate_hz=10,
                    bpf=KERNEL_COUNTS,
                )
            ) as running,
        ):
            yield running
    except MissingError as error:
        if os.environ.get("CI"):
            pytest.fail(f"the lab tier must not be skipped in CI: {error}")
        pytest.skip(str(error))


@pytest.fixture
def commands(cluster: throwaway.Cluster, tmp_path: Path) -> Lab:
    """The cluster for commands that submit nothing: no job must end afterwards."""
    return Lab(cluster, tmp_path)


@pytest.fixture
def lab(cluster: throwaway.Cluster, tmp_path: Path) -> Iterator[Lab]:
    """The cluster for one test: its jobs are cancelled afterwards, and nothing may be left."""
    lab = Lab(cluster, tmp_path)
    yield lab
    lab.cancel()
    until(lambda: not lab.queued() & set(lab.jobs), "the test's jobs have ended")
    until(lambda: not lab.samplers(), "every sampler of the test has ended")
    # A node completes a job later than the job ends.
    lab.wait_nodes("idle", "mixed", what="no node is drained, down or completing")
