"""A simulated PBS, in both dialects."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.schedulers import retries

DATA = Path(__file__).parents[2] / "data"
NODES = {"torque": "pbsnodes-x-properties.xml", "openpbs": "pbsnodes-a-2nodes.txt"}


@dataclass
class PaperPbs:
    """The simulation's state, which tests read and change."""

    folder: Path
    dialect: str

    @property
    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return data

    def change(self, **changes: object) -> None:
        (self.folder / "state.json").write_text(json.dumps(self.state | changes))

    def fail(self, command: str, *messages: str) -> None:
        self.change(faults=self.state["faults"] | {command: list(messages)})

    @property
    def jobs(self) -> dict[str, Any]:
        return dict(self.state["jobs"])

    def set_tasks(self, job_id: str, *letters: str) -> None:
        jobs = self.state["jobs"]
        jobs[job_id]["tasks"] = list(letters)
        self.change(jobs=jobs)

    def with_node_part(self) -> None:
        """Install our prologues, or our hook."""
        self.change(node_part=True)
        (self.folder / "torque.cfg").write_text("SUBMITFILTER /opt/steelyard/submitfilter\n")

    def options(self) -> list[list[str]]:
        """Return the options of each job's qsub."""
        return [job["options"] for job in self.jobs.values()]


@pytest.fixture(params=["torque", "openpbs"])
def pbs(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> PaperPbs:
    """Put only its commands and the system's on PATH."""
    folder, dialect = tmp_path / "pbs", str(request.param)
    (folder / "bin").mkdir(parents=True)
    program = folder / "fake_pbs"
    text = Path(__file__).with_name("fake_pbs.py").read_text()
    program.write_text(f"#!{sys.executable} -S\n{text}")
    program.chmod(0o755)
    for name in ("qsub", "qstat", "qselect", "qdel", "qmgr", "pbsnodes"):
        (folder / "bin" / name).symlink_to(program)
    shutil.copyfile(DATA / dialect / "qstat-Bf.txt", folder / "server.txt")
    shutil.copyfile(DATA / dialect / NODES[dialect], folder / "nodes.txt")
    state = {"dialect": dialect, "next": 7, "jobs": {}, "faults": {}, "attributes": {},
             "node_part": False}  # fmt: skip
    (folder / "state.json").write_text(json.dumps(state))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("STEELYARD_PBS_ACCOUNTING", str(tmp_path / "none"))
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.01)
    return PaperPbs(folder, dialect)
