"""What an image lacks: looked at inside, told with the command that makes a better one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.wrappers.launchers import image_contents, launcher_grammar
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit import program_checks

BOX = launcher_grammar.parse("podman:my-app:1,cpus=1")
Patch = pytest.MonkeyPatch


def test_libraries_are_told_by_the_program_and_by_their_packages(monkeypatch: Patch) -> None:
    lines = (
        "library\t/a/cg.S.4\t\tlibmpi.so.40 => not found\n"
        "library\t/a/ep.S.4\t\tlibmpi.so.40 => not found\n"
        "library\t/a/cg.S.4\t\tlibgfortran.so.5 => not found\n"
        "library\t/a/cg.S.4\t/a/cg.S.4: /lib/libc.so.6: version `GLIBC_2.38' not found (required)\n"
    )
    packages = {"*/libmpi.so.40": "libopenmpi3:amd64: /usr/lib/libmpi.so.40\n"}

    def ask(*argv: str) -> subprocess.CompletedProcess[str]:
        if argv[0] == "dpkg-query":
            told = packages.get(argv[-1], "")
            return subprocess.CompletedProcess(argv, 0 if told else 1, told, "")
        return subprocess.CompletedProcess(argv, 0, lines, "")

    monkeypatch.setattr(image_contents, "run_quickly", ask)
    said = image_contents.find_missing(
        BOX, image_contents.RequiredPrograms({}, (Path("/a/cg.S.4"),))
    )
    assert said is not None
    assert (
        "lacks libmpi.so.40, libgfortran.so.5 (of cg.S.4); libraries as new as GLIBC_2.38" in said
    )
    assert "`steelyard image make podman:my-app:1 --include=libopenmpi3 --force`" in said


def run(benchmark: str, **parameters: object) -> Run:
    """Of a study."""
    found = registry.load(benchmark)
    values = {name: one.default for name, one in found.parameters.items()} | parameters
    return Run("r", 1, 1, benchmark, values, "v", {"launcher": BOX.text}, "c", False, 1)


def test_what_a_run_starts_is_the_benchmarks_ours_and_the_users(tmp_path: Path) -> None:
    """Of the user's own a folder's programs, too; what lies below /usr is the image's."""
    mine = tmp_path / "cg.S.2"
    shutil.copy(Path(shutil.which("true") or "").resolve(), mine)
    (tmp_path / "README").write_text("no program")
    runs = [run("npb", ranks=2, folder=str(tmp_path)), run("app", command=f"/usr/bin/x {mine} 1")]
    benchmarks = {name: registry.load(name) for name in ("npb", "app")}
    wanted = program_checks.list_required_programs(benchmarks, runs)
    assert wanted.commands["mpirun"] == "openmpi-bin"
    assert mine in wanted.programs and tmp_path / "README" not in wanted.programs
