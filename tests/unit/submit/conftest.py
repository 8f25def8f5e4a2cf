"""Fixtures of several modules here."""

from .ended_study import ended_study, results_read  # noqa: F401 - fixtures
