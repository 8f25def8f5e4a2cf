"""Study files and a simulated Slurm for the tests of studies."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import retries
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study.folder import StudyDir

PLUGIN_HELP = """\
Usage: sbatch [OPTIONS(0)...] executable [args(0)...]
      --tag=KEY=VALUE         a tag that
                              stays with the job [steelyard]
      --netem=SPEC            network conditions [steelyard]
"""
PLAIN_HELP = (
    "Usage: sbatch [OPTIONS(0)...] executable [args(0)...]\n  -t, --time=minutes   time limit\n"
)

STUDY = """\
[study]
name = "small"
repeat = 4
blocks = 2
seed = 7
[factors]
clients = [1, 2]
[[benchmark]]
use = "filesystem"
test = ["large_file_copy", "small_file_write"]
size = "1MiB"
write_files = 4
iterations = 1
"""


@dataclass
class FakeSlurm:
    """The simulation's state, which tests read and change."""

    folder: Path

    @property
    def state(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return data

    def change(self, **changes: object) -> None:
        (self.folder / "state.json").write_text(json.dumps(self.state | changes))

    def fail(self, command: str, *messages: str) -> None:
        self.change(faults=self.state["faults"] | {command: list(messages)})

    def calls(self, command: str) -> list[list[str]]:
        log = self.folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [call[1:] for call in map(json.loads, lines) if call[0] == command]

    @property
    def jobs(self) -> dict[str, Any]:
        found: dict[str, Any] = self.state["jobs"]
        return found

    def set_tasks(self, job_id: str, state: str, waits_for: str = "Priority") -> None:
        jobs = self.jobs
        jobs[job_id]["reason"] = waits_for
        jobs[job_id]["tasks"] = [state] * len(jobs[job_id]["tasks"])
        self.change(jobs=jobs)

    def end_jobs(self, state: str = "COMPLETED") -> None:
        for job_id in self.jobs:
            self.set_tasks(job_id, state)

    def with_plugin(self) -> None:
        (self.folder / "sbatch.help").write_text(PLUGIN_HELP)


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSlurm:
    """Put Slurm's commands on PATH, all of them simulated; retries do not wait."""
    fake = FakeSlurm(tmp_path / "fake-slurm")
    programs = fake.folder / "bin"
    programs.mkdir(parents=True)
    script = Path(__file__).with_name("fake_slurm.py")
    for name in ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"):
        program = programs / name
        program.write_text(f"#!{sys.executable}\n{script.read_text()}")
        program.chmod(0o755)
    (fake.folder / "sbatch.help").write_text(PLAIN_HELP)
    (fake.folder / "state.json").write_text(
        json.dumps(
            {
                "next_job_id": 100,
                "jobs": {},
                "faults": {},
                "max_array_size": 1001,
                "accounting": True,
                "exit_codes": {},
                "cluster_in_answer": False,
            }
        )
    )
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 0.01)
    return fake


@pytest.fixture
def write_study(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes the small study file, with pieces of its text replaced."""

    def write(*replacements: tuple[str, str], text: str = STUDY) -> Path:
        for old, new in replacements:
            assert old in text, f"{old!r} is not in the study"
            text = text.replace(old, new)
        path = tmp_path / "study.toml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def submitted(slurm: Any, write_study: Callable[..., Path]) -> StudyDir:
    """Submit the small study of 16 runs, as jobs 100 to 103."""
    path = write_study()
    assert cli.main(["submit", str(path)]) == 0
    return StudyDir(studydir.derive_folder(path).absolute())


def finish(run_dir: Path, attempt: str, state: str = "completed", **fields: object) -> None:
    """Write a run's result as steelyard.sh does."""
    folder = run_dir / attempt
    folder.mkdir(parents=True)
    result = {
        "format": "steelyard-run",
        "version": 1,
        "run_id": run_dir.name,
        "attempt": attempt,
        "scheduler": "slurm",
        "job_id": attempt.partition(".")[0],
        "start_unix_s": 1000.0,
        "end_unix_s": 1002.0,
        "elapsed_s": 2.0,
        "state": state,
        "reason": None,
    }
    (folder / "result.json").write_text(json.dumps(result | fields))


@pytest.fixture
def finish_run() -> Callable[..., None]:
    """Return `finish` as a fixture: test modules are not packages here."""
    return finish
