"""Folders whose names are short enough for the Unix sockets of a cluster."""

from tests.unit.cluster.conftest import tmp_path  # noqa: F401 - a fixture
