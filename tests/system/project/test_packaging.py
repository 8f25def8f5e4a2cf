"""The traps of one distribution from several top-level folders (HABITS part 3), each guarded."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOP = ("facts", "analysis", "jobscripts", "wrappers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as a user gets it, built from a clean copy of what git has."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    for name in files:
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", target, source], check=True
    )
    return zipfile.ZipFile(next(target.glob("*.whl")))


def test_the_wheel_has_every_file_that_the_packages_need(wheel: zipfile.ZipFile) -> None:
    """Templates, job scripts, descriptions and the schema are data: easily forgotten."""
    suffixes = {".py", ".sh", ".toml", ".sql", ".j2", ".css", ".csv", ".def"}
    wanted = {
        f"steelyard/{p.relative_to(ROOT).as_posix()}"
        for top in TOP
        for p in (ROOT / top).rglob("*")
        if p.suffix in suffixes and "__pycache__" not in p.parts
    }
    assert wanted - set(wheel.namelist()) == set()


def test_the_bare_names_of_the_folders_are_not_importable() -> None:
    """`import analysis` would be a second copy of every module in it."""
    code = "import analysis"
    result = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "No module named 'analysis'" in result.stderr


def test_help_starts_without_the_heavy_libraries() -> None:
    """`steelyard --help` must not pay for DuckDB, scipy or matplotlib."""
    code = (
        "import sys; from steelyard.wrappers.commands import cli; cli.main(['--help'])\n"
        "heavy = {'duckdb', 'scipy', 'numpy', 'matplotlib', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
