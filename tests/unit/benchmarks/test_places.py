"""A benchmark is its folder: other code reads its description."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.jobscripts import registry

ROOT = Path(__file__).parents[3]
PRESETS = "analysis/papers/"  # what a thesis measured is named after the benchmarks here


def test_no_program_text_outside_of_its_folder_names_a_benchmark() -> None:
    """Whole words in quotes: `app` in prose, or `mpi` in a path, is no benchmark's name."""
    named = re.compile(rf"""["']({"|".join(registry.names())})\b[^"'/]*["']""")
    found = [
        f"{path.relative_to(ROOT)}: {hit[0]}"
        for top in ("analysis", "wrappers", "jobscripts")
        for path in sorted((ROOT / top).rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(PRESETS)
        and not (top == "jobscripts" and path.parent != ROOT / top)
        for hit in named.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_every_debian_package_of_a_benchmark_is_installed_for_the_tests() -> None:
    lists = "\n".join(
        (ROOT / "setup" / name).read_text(encoding="utf-8") for name in ("run.txt", "test.txt")
    )
    there = {line.partition("#")[0].strip() for line in lists.splitlines()}
    wanted = {program.debian for name in registry.names() for program in registry.load(name).needs}
    assert wanted - {""} <= there
