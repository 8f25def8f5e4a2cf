"""What the tests of Spark share: a collected study."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

STUDY = Path(__file__).parents[1] / "unit" / "merging" / "study.py"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its folder: recorded jobs, several runs under one condition."""
    study = SimpleNamespace(**runpy.run_path(str(STUDY))).Study(tmp_path_factory.mktemp("spark"))
    study.everything()
    study.collect()
    path: Path = study.dir
    return path
