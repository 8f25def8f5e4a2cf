"""`steelyard run --benchmark`: one benchmark alone."""

from __future__ import annotations

import pytest

from steelyard.wrappers.base import programs
from steelyard.wrappers.commands import cli
from steelyard.wrappers.launchers import launcher_grammar
from steelyard.wrappers.run import benchmark as run_benchmark
from steelyard.wrappers.run import container_run as run_inside
from steelyard.wrappers.run import measurement

pytestmark = pytest.mark.skipif(
    programs.find_program("steelyard-fstest") is None,
    reason="steelyard-fstest is missing: make all",
)
Capture = pytest.CaptureFixture[str]


def test_totals_of_a_daemons_containers_are_not_the_clients() -> None:
    """They were given: those of docker's client."""
    tags = ({"launcher_measured": "no", "launcher_start_s": "0.5"},)
    found = run_inside.ContainerRun(1.5, (0,), ({},), tags)
    measured = measurement.Measurement(1, 0, None, {"cpu": 3.0, "elapsed": 9.0}, {})
    told = run_benchmark.use_client_times(launcher_grammar.parse("docker:a"), found, measured)
    assert (told.values["elapsed"], told.values["start"], told.values["cpu"]) == (1.5, 0.5, None)
    assert told.missing["cpu"] == run_inside.NOT_OURS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give a command, or --benchmark NAME, and not both"),
        (["--benchmark", "hpl", "--", "true"], "and not both"),
        (["-p", "n=3", "--", "true"], "-p n=3: goes with --benchmark"),
        (["--benchmark", "hpll"], "unknown benchmark 'hpll'; known: "),
        (["--benchmark", "hpl", "-p", "n"], "-p n: allowed is NAME=VALUE"),
        (["--benchmark", "hpl", "-p", "n=x"], "-p n=x: 'x' is not allowed: a whole number, at"),
        (["--benchmark", "hpl", "-p", "m=1"], "hpl has no parameter 'm'; known: "),
        (["--benchmark", "fio", "-p", "direct=1"], "-p direct=1: '1' is not allowed: true or"),
        (["--benchmark", "app", "-p", "figures={}}"], "-p figures={}}: no JSON: a table"),
    ],
)
def test_what_is_wrong_is_one_line(capsys: Capture, words: list[str], message: str) -> None:
    assert cli.main(["run", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_program_that_is_missing_is_exit_code_3(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cli.main(["run", "--benchmark", "iozone"]) == 3
    assert "iozone (it is the benchmark" in capsys.readouterr().err
