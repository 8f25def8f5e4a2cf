"""Jungels 2012 in small: a host node against a virtual one, with the thesis' numbers beside."""

from __future__ import annotations

import pytest

from .conftest import PASSED, Papers

pytestmark = pytest.mark.lab


def test_physical_against_virtual(papers: Papers) -> None:
    """Starting a program takes a User Mode Linux many times as long (docs/virtual.md)."""
    told = papers.run("jungels2012-small", "jungels2012")
    written = told.row("seconds_by_processes", "filesystem", "node_type=virtual")
    assert written["n"] + written["invalid"] + written["failed"] == PASSED
    assert written["overhead_low"] > 0
    assert told.claims["XHPL is faster on physical nodes by a wide margin"] == "cannot tell"
