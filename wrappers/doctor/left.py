"""What runs have left on this machine that were killed with -9."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from steelyard.wrappers.base import killed_runs
from steelyard.wrappers.base.check import Check

NAME = "killed runs"


def checks() -> Iterator[Check]:
    """Named here, removed by the next run."""
    try:
        left = killed_runs.listed()
    except (OSError, subprocess.SubprocessError) as error:
        yield Check(NAME, "warning", f"what they left is not known: {error}")
        return
    what = "network devices, cgroups and folders" if os.geteuid() == 0 else "folders of yours"
    if not left:
        yield Check(NAME, "ok", f"none left {what} here")
        return
    yield Check(
        NAME,
        "warning",
        f"{len(left)} left behind: {'; '.join(left)}",
        "the next run removes them: steelyard run -- true",
    )
