"""What `steelyard doctor` says one can do now: as its checks say, and as it turns out."""

from __future__ import annotations

import subprocess
import sys

import pytest

from steelyard.wrappers.base.check import Check
from steelyard.wrappers.commands import cli
from steelyard.wrappers.doctor import now

RIGHT = [
    Check("node program", "ok", "steelyard-node 1"),
    Check("energy", "ok", "package-0"),
    Check("Slurm", "ok", "controller answers"),
    Check("netem programs", "ok", "/usr/sbin/tc"),
    Check("netem kernel", "ok", "all"),
    Check("benchmark fio", "ok", "/usr/bin/fio"),
    Check("benchmark npb", "ok", "/usr/bin/mpirun"),
]


def told(*changed: Check, root: bool = True) -> dict[str, tuple[bool, str]]:
    """By what one may want to do."""
    names = {check.name for check in changed}
    checks = [*(check for check in RIGHT if check.name not in names), *changed]
    return {f"{one.what} {one.can}": (one.can, one.text) for one in now.doable(checks, root)}


def test_where_all_is_right_all_can_be_done() -> None:
    found = told()
    assert all(can for can, _ in found.values()), found
    assert found["jobs of Slurm True"][1].startswith("sbatch")
    assert found["benchmarks True"][1] == "fio, npb"


def test_what_is_in_the_way_is_said() -> None:
    found = told(
        Check("energy", "warning", "no RAPL"),
        Check("Slurm", "warning", "sbatch is not in PATH", "x"),
        Check("netem kernel", "warning", "sch_netem is missing", "x"),
        Check("benchmark npb", "warning", "mpirun was not found", "x"),
    )
    assert found["joules of it False"][1] == "no RAPL"
    assert found["jobs of Slurm False"][1].endswith("to try: steelyard cluster up")
    assert found["under network conditions False"][1].startswith("sch_netem is missing")
    assert found["benchmarks True"][1] == "fio"
    assert found["benchmarks False"][1] == "npb (mpirun was not found)"


def test_conditions_here_are_roots() -> None:
    assert not told(root=False).get("under network conditions True")


def test_without_the_node_program_nothing_can_be_done() -> None:
    (one,) = told(Check("node program", "missing", "not found", "make all"))
    assert one == "weigh anything False"


def test_what_it_says_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor"])
    _, _, ending = capsys.readouterr().out.partition("what you can do now:\n")
    lines = [line.split() for line in ending.splitlines()]
    ways = [words for words in lines if words[0] == "yes" and "--in" in words]
    assert ["weigh", "a", "command"] in [words[1:4] for words in lines]
    for words in ways:
        launcher = words[words.index("--in") + 1]
        if ":" not in launcher:  # of the others an image is needed
            run = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run"]
            command = [*run, "--in", launcher, "--", "true"]
            assert subprocess.run(command, capture_output=True, check=False).returncode == 0
