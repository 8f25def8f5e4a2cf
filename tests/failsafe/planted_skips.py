"""Run by tests/failsafe/run.sh only; it must fail, because nothing is shown."""

import pytest


def test_planted() -> None:
    """A test that a machine cannot run, and that is the only one."""
    pytest.skip("planted")
