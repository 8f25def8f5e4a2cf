"""Tests as an ordinary user of the PBS server, Torque or OpenPBS, that the commands on PATH reach.

Its nodes have Steelyard (docs/admin-pbs.md). STEELYARD_RECORD_DIR is the folder of the records. Any
missing requirement is the reason of a skip; a session that skips everything has failed.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.analysis.sources.pbs.field_values import OVER, TORQUE
from steelyard.wrappers.schedulers.pbs import doctor_checks
from steelyard.wrappers.schedulers.pbs.dialects import OpenPbs, Torque

TIMEOUT_S = 120
WAIT_S = float(os.environ.get("STEELYARD_PBS_WAIT_S", "600"))  # where other users' jobs come first
RECORDS = Path(os.environ.get("STEELYARD_RECORD_DIR", "/var/lib/steelyard/records"))


def absent() -> str:
    """Return what is missing here; "" if nothing is."""
    if not doctor_checks.is_installed():
        return f"no Torque and no OpenPBS on the PATH: {doctor_checks.explain_absence()}"
    if os.geteuid() == 0:
        return "pbs_server takes no jobs of root: run this as an ordinary user"
    found = dialect()
    try:
        found.read_server(patient=False)
    except SteelyardError as error:
        return f"the server does not answer: {error}"
    if not found.has_node_part():
        return f"Steelyard is not installed on the nodes of this {found.title}"
    if not RECORDS.is_dir():
        return f"{RECORDS} cannot be read: STEELYARD_RECORD_DIR names the folder of records"
    return ""


def dialect() -> Torque | OpenPbs:
    return Torque() if pbs_commands.detect_dialect() == TORQUE else OpenPbs()


@dataclass
class Server:
    """The server, and a folder that its nodes can read and write."""

    folder: Path
    torque: bool
    jobs: list[str] = field(default_factory=list)

    def qsub(self, text: str, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        script = self.folder / "job.sh"
        script.write_text(f"#!/bin/sh\n{text}\n")
        done = subprocess.run(
            ["qsub", *words, str(script)], cwd=self.folder, env=os.environ | variables,
            capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        self.jobs += done.stdout.split()
        return done

    def submit(self, text: str, *words: str, **variables: str) -> str:
        done = self.qsub(text, *words, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def nodes(self, count: int) -> list[str]:
        if self.torque:
            return ["-n", "-l", f"nodes={count}"]
        return ["-l", f"select={count}:ncpus=1", "-l", "place=scatter:excl"]

    def slots(self, each: Sequence[int]) -> list[str]:
        """Return requests for as many nodes, with so many slots in the node file."""
        if self.torque:
            # Two requests of the same size may get the same node.
            parts = [f"{len(list(same))}:ppn={n}" for n, same in itertools.groupby(each)]
            return ["-n", "-l", f"nodes={'+'.join(parts)}"]
        chunks = "+".join(f"1:ncpus={n}:mpiprocs={n}" for n in each)
        return ["-l", f"select={chunks}", "-l", "place=scatter:excl"]

    def array(self, tasks: int) -> list[str]:
        return ["-t" if self.torque else "-J", f"0-{tasks - 1}"]

    def job(self, job: str) -> dict[str, Any]:
        return dict(pbs_commands.query_jobs([job]).get(job, {}))

    def wait(self, job: str) -> dict[str, Any]:
        """Return the job's attributes after its end."""
        return self.until(job, lambda found: found.get("job_state") in OVER)

    def until(self, job: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            found = self.job(job)
            if found and condition(found):
                return found
            time.sleep(0.3)
        raise AssertionError(f"waited {WAIT_S:g} s for {job}: {self.job(job)}")


@pytest.fixture(scope="session")
def lacking() -> str:
    return absent()


@pytest.fixture
def server(lacking: str) -> Iterator[Server]:
    if lacking:
        pytest.skip(lacking)
    home = pwd.getpwuid(os.getuid()).pw_dir
    folder = Path(tempfile.mkdtemp(prefix="steelyard-check-", dir=home))
    tool = Server(folder, pbs_commands.detect_dialect() == TORQUE)
    yield tool
    for job in tool.jobs:  # jobs of a failed test; others have ended
        subprocess.run(["qdel", job], capture_output=True, timeout=TIMEOUT_S, check=False)
    shutil.rmtree(folder, ignore_errors=True)
