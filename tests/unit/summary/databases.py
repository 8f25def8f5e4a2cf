"""Study databases without a cluster, made once per session."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.summary.summary import Summary, summarize

from . import synthetic as databases


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    return databases


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.demo().write(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def energy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.demo("demo-energy", energy=True).write(tmp_path_factory.mktemp("energy"))


@pytest.fixture(scope="session")
def thesis_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return databases.thesis_filesystem().write(tmp_path_factory.mktemp("thesis"))


@pytest.fixture(scope="session")
def demo_summary(demo_folder: Path) -> Summary:
    return summarize(demo_folder)
