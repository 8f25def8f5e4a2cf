"""A library with NVML's interface, built here, and trees of GPUs: the machines have none."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TREE = HERE.parents[1] / "data" / "meters" / "two-gpus"
BUSES = ("0000:3b:00.0", "0000:86:00.0")


@dataclass
class Gpus:
    """The library, the folder with the joules that it reports, and a tree that lists its GPUs."""

    folder: Path
    tree: Path

    def set(self, gpu: int, text: str) -> None:
        path = self.folder / BUSES[gpu]
        part = path.with_suffix(".part")
        part.write_text(text)
        part.chmod(0o644)
        part.rename(path)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Gpus]:
    """Make them readable by unprivileged users: pytest's folders are private."""
    with tempfile.TemporaryDirectory(prefix="steelyard-nvml-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1",
             HERE / "nvml_stand_in.c"],
            check=True,
        )  # fmt: skip
        monkeypatch.setenv("LD_LIBRARY_PATH", name)
        monkeypatch.setenv("NVML_STAND_IN", name)
        made = Gpus(folder, Path(shutil.copytree(TREE, tmp_path / "tree")))
        made.set(0, "7000000000")
        made.set(1, "9000000000")
        yield made
