"""A small input file, and a real XRootD server for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.hep import input_files
from steelyard.jobscripts.parameters import shell_text
from steelyard.jobscripts.registry import Result

RECIPE = {
    "structure": "jagged",
    "compression": "zlib",
    "events": 3000,
    "cluster": 1000,
    "seed": 7,
}
RUN_ID = "hep-0123abcd-001"
SMALL: dict[str, object] = {"events": 3000, "cluster": 1000, "seed": 7, "step": 1000}


@dataclass
class Server:
    """A running server: its process (xrootd_server.py), and its output."""

    process: subprocess.Popen[str]
    words: dict[str, Any]
    base: Path
    own: str  # its folder in /tmp

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.words['port']}"

    @property
    def url(self) -> str:
        return f"root://{self.address}//{self.words['path']}"


def parameters(benchmark: str, **given: object) -> dict[str, str]:
    """Return the variables of run.sh."""
    values = registry.load(benchmark).check_parameters(given)
    return {f"SY_PARAM_{k.upper()}": shell_text(v) for k, v in values.items()}


def own_folder(pid: int) -> str:
    """Return the folder that the guard of a server removes, from its command line."""
    done = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"/tmp/steelyard-xrootd\.\w+(?= )", done.stdout)
    return found[0] if found else ""


class Study:
    """A study's folder that contains the input, and one run."""

    def __init__(self, folder: Path, base: Path, data: Path) -> None:
        self.folder, self.scratch = folder / "my study", base / "scratch"
        self.run_folder = self.folder / "runs" / RUN_ID
        for path in (self.run_folder, self.folder / "lib", self.scratch):
            path.mkdir(parents=True)
        shutil.copytree(data, self.folder / "data")
        (self.folder / "lib/steelyard.sh").write_text(registry.library(), encoding="utf-8")

    def run(self, benchmark: str, **given: object) -> dict[str, Any]:
        """Execute the run; return result.json. The parser gets the same parameters."""
        self.benchmark, self.given = registry.load(benchmark), {**small(benchmark), **given}
        text = runscript.render(
            self.benchmark, self.given, study_dir=self.folder, run_id=RUN_ID,
            environment={"STEELYARD_PYTHON": sys.executable},
        )  # fmt: skip
        (self.run_folder / "run.sh").write_text(text, encoding="utf-8")
        outside = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "SY_"))}
        subprocess.run(
            ["bash", str(self.run_folder / "run.sh")],
            env={**outside, "SY_SCRATCH_BASE": str(self.scratch)},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        self.attempt = max(self.run_folder.glob("local.*"))
        found: dict[str, Any] = json.loads((self.attempt / "result.json").read_bytes())
        assert list(self.scratch.iterdir()) == [], "nothing is left behind"
        return found

    def iteration(self, number: int) -> dict[str, Any]:
        """Return the clients' output of an iteration."""
        lines = [json.loads(line) for line in (self.attempt / "out.0").read_text().splitlines()]
        return next(line for line in lines if line.get("iteration") == number)

    def results(self) -> list[Result]:
        return self.benchmark.parse(self.attempt, 0, self.given)

    def figures(self) -> dict[str, float]:
        """Return the figures of the first iteration."""
        return {r.metric: r.value for r in self.results() if r.iteration == 1}

    def completed(self, benchmark: str, **given: object) -> dict[str, float]:
        """Return the figures of a run that must succeed."""
        found = self.run(benchmark, **given)
        assert found["state"] == "completed", found["reason"]
        return self.figures()


def small(benchmark: str) -> dict[str, object]:
    extra = {"structure": "jagged"} if benchmark == "roottree" else {}
    return {**SMALL, **extra}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the input of RECIPE."""
    folder = tmp_path_factory.mktemp("hep")
    input_files.keep_file(folder, RECIPE)
    return folder


@pytest.fixture
def base() -> Iterator[Path]:
    """Make a scratch folder that all users may enter, unlike pytest's: root's server is nobody."""
    with tempfile.TemporaryDirectory(prefix="syhep-", dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def start(data: Path, base: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Return a function that starts servers; they are ended after the test."""
    if shutil.which("xrootd") is None:
        pytest.skip("no xrootd (Debian: xrootd-server)")
    started: list[subprocess.Popen[str]] = []

    def begin(**environment: str) -> Server:
        study = tmp_path / "study"
        if not study.exists():
            shutil.copytree(data, study / "data")
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.jobscripts.hep.xrootd_server", "xrootd"],
            env={
                **os.environ,
                **parameters("xrootd", **SMALL),
                "SY_STUDY_DIR": str(study),
                "SY_SCRATCH_BASE": str(base),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        words = json.loads(line.split(" ", 2)[2]) if line else {}
        return Server(process, words, base, own_folder(process.pid))

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def study(data: Path, base: Path, tmp_path: Path) -> Study:
    return Study(tmp_path, base, data)
