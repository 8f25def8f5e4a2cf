"""Study databases without a cluster, made once a session."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.summary import Summary, summarize

# Tests are imported one by one, so a module beside them is loaded by its path.
SPEC = importlib.util.spec_from_file_location(
    "judging_synthetic", Path(__file__).with_name("synthetic.py")
)
assert SPEC is not None and SPEC.loader is not None
MODULE = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = MODULE
SPEC.loader.exec_module(MODULE)


@pytest.fixture(scope="session")
def synthetic() -> ModuleType:
    return MODULE


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MODULE.demo().write(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="session")
def energy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MODULE.demo("demo-energy", energy=True).write(tmp_path_factory.mktemp("energy"))


@pytest.fixture(scope="session")
def thesis_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MODULE.thesis_filesystem().write(tmp_path_factory.mktemp("thesis"))


@pytest.fixture(scope="session")
def demo_summary(demo_folder: Path) -> Summary:
    return summarize(demo_folder)
