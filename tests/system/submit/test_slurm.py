"""Submitting to a Slurm of paper: exact scripts, no run twice, nothing lost in a crash."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.submit.test_slurm import folder_of, submitted

Write = Callable[..., Path]


def test_batch_and_run_scripts_are_good_bash(slurm: Any, write_study: Write) -> None:
    path = write_study()
    submitted(path)
    scripts = list(folder_of(path).path.glob("**/*.sh"))
    assert len(scripts) == 4 + 16 + 1
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True)
