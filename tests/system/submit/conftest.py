"""Fixtures of tests/unit/submit."""

from tests.unit.submit.ended_study import ended_study, results_read  # noqa: F401 - fixtures
