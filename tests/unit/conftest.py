"""The guard that prevents processes in this tier, and shared fixtures.

Replacements of other programs answer in the process of the test (stand_ins.py).
"""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

import pytest

from steelyard.analysis.base import parallel_work

from . import stand_ins
from .submit.paper_slurm import finish_run, slurm, submitted, write_study  # noqa: F401 - fixtures
from .summary.databases import (  # noqa: F401 - fixtures
    demo_folder,
    demo_summary,
    energy_folder,
    synthetic,
    thesis_folder,
)

ROOM = Path(__file__).parent
STARTS = (
    (subprocess.Popen, "__init__"),
    (multiprocessing.process.BaseProcess, "start"),
    (os, "fork"),
    (os, "forkpty"),
    (os, "posix_spawn"),
    (os, "posix_spawnp"),
    (os, "system"),
)


def refuse(*args: Any, **_: Any) -> NoReturn:
    """Fail, past every `except Exception` of the code under test."""
    command = next((arg for arg in args if isinstance(arg, (str, list, tuple))), "a fork")
    pytest.fail(f"a unit test starts a process ({command}): file this test under tests/system")


def run(argv: Any, *, env: Any = None, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Replace subprocess.run."""
    environment = os.environ.copy() if env is None else env
    answer = None if isinstance(argv, str) else stand_ins.answer(argv, environment, options)
    if answer is None:
        refuse(argv)
    return answer


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Prevent a test below this folder, and its fixtures, from starting a process."""
    if ROOM not in item.path.parents:
        return (yield)
    with ExitStack() as patches:
        for owner, name in STARTS:
            patches.enter_context(mock.patch.object(owner, name, refuse))
        patches.enter_context(mock.patch.object(subprocess, "run", run))
        patches.enter_context(mock.patch.object(parallel_work, "can_fork", lambda: False))
        return (yield)
