"""The capabilities that `steelyard doctor` reports: they follow its checks, and are real."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.unit.doctor.test_capabilities import told

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.commands import cli


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


def test_what_it_says_can_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor"])
    abilities, _, checks = capsys.readouterr().out.partition("\n\n")
    assert abilities.startswith("what you can do now:\n")
    assert "ok       benchmark" not in checks  # they are in one line above
    lines = [line.split() for line in abilities.splitlines()[1:]]
    ways = [words for words in lines if words[0] == "yes" and "--in" in words]
    assert ["measure", "a", "command"] in [words[1:4] for words in lines]
    for words in ways:
        launcher = words[words.index("--in") + 1]
        if ":" not in launcher:  # of the others an image is needed
            run = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run"]
            command = [*run, "--in", launcher, "--", "true"]
            assert subprocess.run(command, capture_output=True, check=False).returncode == 0
