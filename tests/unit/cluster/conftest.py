"""Folders whose names are short enough for the Unix sockets of a cluster."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Make a short folder name; pytest's is long if workers share the tests."""
    with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)
