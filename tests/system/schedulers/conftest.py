"""Fixtures of tests/unit/schedulers."""

from tests.unit.schedulers.conftest import pbs  # noqa: F401 - a fixture
