"""A throwaway Slurm cluster of one host node and two guests, for all tests in this folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster.conftest import cluster, lab
from tests.throwaway_lab import Lab, virtual_config

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import cluster as throwaway

__all__ = ["cluster", "lab"]  # fixtures of host nodes without guests


@pytest.fixture(scope="session")
def virtual_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[throwaway.Cluster]:
    """Start a host node and two guests; `nobody` owns the folder `home` next to the cluster's.

    It needs root, and is never skipped.
    """
    with tempfile.TemporaryDirectory(prefix="sylab-", dir="/tmp") as folder:
        home = Path(folder) / "home"
        home.mkdir()
        Path(folder).chmod(0o711)
        try:
            shutil.chown(home, "nobody")
            shares = (home, tmp_path_factory.getbasetemp())
            with throwaway.start_cluster(virtual_config(Path(folder) / "c", shares)) as running:
                yield running
        except (MissingError, PermissionError) as error:
            pytest.fail(f"the tier of virtual nodes must not be skipped: {error}")


@pytest.fixture
def virtual_lab(virtual_cluster: throwaway.Cluster, tmp_path: Path) -> Iterator[Lab]:
    """The cluster with guests for one test: its jobs are cancelled, and no node may be drained."""
    lab = Lab(virtual_cluster, tmp_path)
    yield lab
    lab.cancel()
    lab.wait_nodes("idle", what="every node is idle again")
