"""collect where it cannot write: a full disk at each of its steps, a read-only one, another's folder.

The file systems are real ones.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.wrappers.commands import cli

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")

NOBODY = 65534
STEP_KB, LARGE_KB = 16, 8192


@pytest.fixture
def disk() -> Iterator[Path]:
    """Make a separate file system, at a path that all users reach."""
    with tempfile.TemporaryDirectory(prefix="sy-unwritable-") as folder:
        Path(folder).chmod(0o755)
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={LARGE_KB}k,mode=0755", "tmpfs", folder],
            check=True,
        )
        yield Path(folder)
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def study(disk: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    study = HELP.Study(disk)
    study.everything()
    monkeypatch.setenv("PATH", "/nonexistent")  # no Slurm: the folders and records speak
    monkeypatch.setenv("STEELYARD_RECORD_DIR", str(study.record_dir))
    return study


def remount(disk: Path, options: str) -> None:
    subprocess.run(["/bin/mount", "-o", f"remount,{options}", disk], check=True)


def leave_room(disk: Path, room_kb: int) -> None:
    """Fill the disk but for that."""
    (disk / "filler").unlink(missing_ok=True)
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(free.f_bavail * free.f_frsize - room_kb * 1024))


def collect(study: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = cli.main(["collect", str(study.dir)])
    return code, capsys.readouterr().err


def test_a_full_disk_at_each_step(
    study: Any, disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A little more room each time: it opens, collects, commits, exports."""
    steps = []
    for room_kb in range(0, 2048, STEP_KB):
        leave_room(disk, room_kb)
        code, text = collect(study, capsys)
        assert (code, text.count("\n")) == (3, 1), (room_kb, text, steps)
        assert "No space left on device. Free room on the disk of " in text
        assert text.endswith("and collect again: nothing is lost\n")
        steps.append(text.split(": ")[1].removeprefix(f"{study.dir}/study.duckdb "))
        if steps[-1].startswith("is whole"):
            break
    assert list(dict.fromkeys(steps)) == [
        "cannot be opened",
        "could not be written and is as it was before",
        f"is whole, but {study.dir}/parquet could not be written",
    ]
    assert (study.dir / "study.duckdb.wal").exists(), "the last step before was the commit"
    (disk / "filler").unlink()
    assert collect(study, capsys) == (0, "")
    assert HELP.query(study, "SELECT count(*) FROM samples") == [(21,)]


@pytest.mark.parametrize("collected", [False, True], ids=["first", "again"])
def test_a_read_only_disk(
    study: Any, disk: Path, collected: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if collected:
        assert collect(study, capsys)[0] == 0
    remount(disk, "ro")
    code, text = collect(study, capsys)
    remount(disk, "rw")
    words = f"steelyard collect: {study.dir}/study.duckdb cannot be opened: Read-only file system. "
    advice = f"Copy {study.dir} to a disk that can be written, and collect the copy\n"
    assert (code, text) == (3, words + advice)


@contextlib.contextmanager
def somebody_else() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("collected", [False, True], ids=["first", "again"])
def test_a_folder_of_somebody_else(
    study: Any, collected: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # At least another one: it loads what is loaded on demand, from where nobody may not be let in.
    assert collect(study if collected else HELP.Study(tmp_path), capsys)[0] == 0
    with somebody_else():
        code, text = collect(study, capsys)
    words = f"steelyard collect: {study.dir}/study.duckdb cannot be opened: Permission denied. "
    advice = f"Collect as root, whose it is, or copy {study.dir} and collect the copy\n"
    assert (code, text) == (3, words + advice)


def test_a_limit_of_a_files_size(study: Any) -> None:
    """A little more each time; a first collect that ends while it makes the database leaves none."""
    program = [
        sys.executable,
        "-P",
        "-m",
        "steelyard.wrappers.commands.cli",
        "collect",
        str(study.dir),
    ]
    steps = []
    for limit_kb in (1, 16, 256, 4096):
        done = subprocess.run(
            ["/usr/bin/prlimit", f"--fsize={limit_kb * 1024}", *program],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        steps.append(done.returncode)
        assert done.returncode == 0 or "File too large. Raise the limit" in done.stderr
    assert steps[0] == 3 and steps[-1] == 0
    assert HELP.query(study, "SELECT count(*) FROM samples") == [(21,)]
