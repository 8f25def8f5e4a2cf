"""A small input file, and a real XRootD server of it."""

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
from steelyard.jobscripts.hep import datafile

RECIPE = {
    "structure": "jagged",
    "compression": "zlib",
    "events": 3000,
    "cluster": 1000,
    "seed": 7,
}
SMALL: dict[str, object] = {"events": 3000, "cluster": 1000, "seed": 7, "step": 1000}


@dataclass
class Server:
    """A server that runs: its process (server.py), what it said."""

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
    """The variables of run.sh."""
    values = registry.load(benchmark).check_parameters(given)
    return {f"SY_PARAM_{k.upper()}": runscript.shell_text(v) for k, v in values.items()}


def own_folder(pid: int) -> str:
    """The folder that the guard of a server is to remove, from its command line."""
    done = subprocess.run(
        ["ps", "-ww", "-o", "args=", "--ppid", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"/tmp/steelyard-xrootd\.\w+(?= )", done.stdout)
    return found[0] if found else ""


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the input of RECIPE in it."""
    folder = tmp_path_factory.mktemp("hep")
    datafile.keep(folder, RECIPE)
    return folder


@pytest.fixture
def base() -> Iterator[Path]:
    """Scratch that everybody may enter, pytest's own folder not: the server of root is nobody."""
    with tempfile.TemporaryDirectory(prefix="syhep-", dir="/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def start(data: Path, base: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers; they are gone afterwards, whatever the test did."""
    if shutil.which("xrootd") is None:
        pytest.skip("no xrootd (Debian: xrootd-server)")
    started: list[subprocess.Popen[str]] = []

    def begin(**environment: str) -> Server:
        study = tmp_path / "study"
        if not study.exists():
            shutil.copytree(data, study / "data")
        process = subprocess.Popen(
            [sys.executable, "-m", "steelyard.jobscripts.hep.server", "xrootd"],
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
