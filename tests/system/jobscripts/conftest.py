"""A study's folder with one run, to execute run.sh."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.system.leftovers import without_sweeps

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.registry import Benchmark

from .launcher_lab import (  # noqa: F401 - fixtures
    apptainer,
    image,
    image_tar,
    launcher,
    lxc,
    nspawn,
    root_folder,
)

ROOT = Path(__file__).parents[3]
FSTEST = ROOT / "build/bin/steelyard-fstest"
RUN_ID = "tiny-0123abcd-001"
ODD = 'a "study" \\ of\n$(date) `id` %s é'
Environment = dict[str, str]


class Study:
    """A study's folder with one run."""

    def __init__(self, tmp_path: Path) -> None:
        self.folder = tmp_path / ODD
        self.scratch = tmp_path / "scratch ü"
        self.run_folder = self.folder / "runs" / RUN_ID
        self.run_folder.mkdir(parents=True)
        self.scratch.mkdir()
        (self.folder / "lib").mkdir()
        (self.folder / "lib/steelyard.sh").write_text(registry.library(), encoding="utf-8")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SY_"))},
            "SY_SCRATCH_BASE": str(self.scratch),
            "STEELYARD_FSTEST": str(FSTEST),
        }

    def write(self, benchmark: Benchmark, clients: int, **parameters: object) -> None:
        text = runscript.render(
            benchmark, parameters, study_dir=self.folder, run_id=RUN_ID, clients=clients
        )
        (self.run_folder / "run.sh").write_text(text, encoding="utf-8")

    def body(self, text: str, clients: int = 1) -> None:
        """Write a run of a benchmark whose sy_client is `text`."""
        template = f"sy_client() {{\n{text}\n}}\n"
        base = registry.load("filesystem")
        self.write(dataclasses.replace(base, template=template), clients)

    def command(self) -> list[str]:
        return ["bash", str(self.run_folder / "run.sh")]

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(),
            env={**self.environment, **environment},
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        )
        done.stderr = without_sweeps(done.stderr)
        return done

    def start(self, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(),
            env={**self.environment, **environment},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def errors(self, attempt: str = "local.1") -> str:
        """Return what the first client wrote to stderr."""
        return without_sweeps((self.attempt(attempt) / "err.0").read_text())

    def attempt(self, name: str = "local.1") -> Path:
        return self.run_folder / name

    def clock(self, client: int = 0) -> tuple[list[int], list[int]]:
        """Return a client's start and end in us: by the wall clock, and by the time since boot."""
        line = (self.attempt() / f"client.{client}").read_text(encoding="utf-8").splitlines()[-1]
        start, end, up_start, up_end = map(int, line.split()[2:])
        return [start, end], [up_start, up_end]

    def elapsed_is_the_longest_clients(self, clients: int = 1) -> bool:
        """Whether elapsed_s is the longest client's time by one of two clocks.

        The clocks are not read at the same moment.
        """
        spans = [[end - start for start, end in self.clock(n)] for n in range(clients)]
        elapsed_us = round(self.result()["elapsed_s"] * 1e6)
        return max(map(min, spans)) <= elapsed_us <= max(map(max, spans))

    def result(self, attempt: str = "local.1") -> dict[str, Any]:
        """Return result.json, which must always be complete and in its documented form."""
        found: dict[str, Any] = json.loads((self.attempt(attempt) / "result.json").read_bytes())
        assert list(found) == [
            *("format", "version", "run_id", "attempt", "scheduler", "job_id", "start_unix_s"),
            *("end_unix_s", "elapsed_s", "clients", "exit_codes", "state", "reason", "nodes"),
            *("tries", "missing"),
        ]
        assert (found["format"], found["version"]) == ("steelyard-run", 1)
        assert (found["run_id"], found["attempt"]) == (RUN_ID, attempt)
        nulls = {key for key, value in found.items() if value is None and key != "reason"}
        nulls |= {f"exit_codes.{i}" for i, code in enumerate(found["exit_codes"]) if code is None}
        nulls |= set() if found["nodes"] else {"nodes"}
        assert set(found["missing"]) == nulls
        assert (found["reason"] is None) == (found["state"] in ("started", "completed"))
        return found


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study(tmp_path)
