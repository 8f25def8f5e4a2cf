"""Shared by the tests of Spark: a collected study."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..unit.collect.study import Study


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the study's folder: recorded jobs, several runs under one condition."""
    study = Study(tmp_path_factory.mktemp("spark"))
    study.everything()
    study.collect()
    path: Path = study.dir
    return path
