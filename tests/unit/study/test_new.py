"""`steelyard new`: the file that it writes is accepted unchanged."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.study import plan, study

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)


def new(*words: str) -> int:
    return cli.main(["new", *words])


OPTIONS = {
    "a command over its own parameter": (
        ("--run", "sleep 0.{n}", "--against", "n=1 2", "--repeat", "3"),
        {"n=1": "sleep 0.1", "n=2": "sleep 0.2"},
    ),
    "a command with quotes over words with blanks": (
        ("--run", 'printf "%s\\n" {w}', "--against", "w='a b' \"it's\""),
        {"w=a b": "printf \"%s\\n\" 'a b'", "w=it's": "printf \"%s\\n\" 'it'\"'\"'s'"},
    ),
    "a whole command": (
        ("--run", "true", "--against", "clients=1 2", "--repeat", "2%"),
        {"clients=1": "true", "clients=2": "true"},
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_dry_run_takes_it_at_once(case: str, capsys: Capture) -> None:
    words, commands = OPTIONS[case]
    assert new(*words, "--scheduler", "local", "--name", "mine") == 0
    assert "steelyard check mine.toml --scheduler local" in capsys.readouterr().out
    assert cli.main(["submit", "mine.toml", "--scheduler", "local", "--dry-run"]) == 0
    found = study.load_study(Path("mine.toml"))
    runs = plan.make_plan(found)
    assert {run.condition_label: run.parameters["command"] for run in runs} == commands
    assert found.blocks == found.repeat


def test_benchmarks_node_types_and_conditions_have_their_words(capsys: Capture) -> None:
    against = ("--against", "node_type=physical virtual", "--against", "network=none delay=20ms")
    assert new("--run", "npb", *against, "--scheduler", "slurm", "--partition", "long",
               "--name", "vm", "--repeat", "1%") == 0  # fmt: skip
    found = study.load_study(Path("vm.toml"))
    assert found.factors == {
        "node_type": ("physical", "virtual"),
        "network": ("none", "delay=20ms"),
    }
    assert found.baseline == {"node_type": "physical", "network": "none"}
    assert found.place["virtual"] == {"slurm": ("--constraint=virtual",)}
    assert found.job.partition == "long"
    assert found.stop is not None
    assert (found.stop.half_width, found.stop.max_repeat) == (0.005, 100)


@pytest.mark.parametrize(
    ("levels", "line"),
    [("each", 'node = "each"'), ("n1 n2 n3", 'node = ["n1", "n2", "n3"]')],
)
def test_nodes_have_no_baseline(levels: str, line: str) -> None:
    against = ("--against", f"node={levels}", "--against", "clock=1 2")
    assert new("--run", "true {clock}", *against, "--name", "mine") == 0
    assert f"\n{line}\n" in Path("mine.toml").read_text(encoding="utf-8")
    assert study.load_study(Path("mine.toml")).baseline == {"clock": 1}
    assert new("--run", "true", *against[:2], "--name", "alone") == 0
    assert "[baseline]" not in Path("alone.toml").read_text(encoding="utf-8")


def test_without_a_terminal_one_line_says_what_to_give(monkeypatch: Patch, capsys: Capture) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert new("--run", "true") == 2
    assert capsys.readouterr().err == (
        "steelyard new: --name must be given where there is no terminal to ask: steelyard new "
        "--run 'COMMAND {threads}' --against 'threads=1 2 4' --repeat 10 --scheduler local "
        "--name NAME\n"
    )


class Terminal(io.StringIO):
    """A user who types."""

    def isatty(self) -> bool:
        return True


def test_five_questions_are_asked_again_until_they_are_understood(
    monkeypatch: Patch, capsys: Capture
) -> None:
    lines = ["sleep 0.{n}", "n=1", "n=1 2", "", "often", "4", "here", "local", "a b", "mine"]
    monkeypatch.setattr(sys, "stdin", Terminal("\n".join(lines) + "\n"))
    assert new() == 0
    out = capsys.readouterr().out
    for word in ("expected NAME=LEVEL LEVEL", "'often': expected a number of repeats",
                 "--scheduler here: allowed is", "'a b': expected a name"):  # fmt: skip
        assert word in out
    found = study.load_study(Path("mine.toml"))
    assert (found.repeat, found.factors) == (4, {"n": (1, 2)})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--against", "n=1 2"), "mine.toml: factors.n: no factor with a meaning"),
        (("--against", "n"), "'n': expected NAME=LEVEL LEVEL …, the baseline first"),
        (
            ("--against", "n=1"),
            "'n=1' has one level, and a comparison needs two: expected NAME=LEVEL",
        ),
        (("--against", "n='1"), "No closing quotation"),
        (("--repeat", "0"), "'0': expected a number of repeats from 1 to 999, or a difference"),
        (("--scheduler", "lsf"), "--scheduler lsf: allowed is slurm or pbs or local"),
        (("--name", "a/b"), "'a/b': expected a name of letters"),
    ],
)
def test_an_answer_that_is_none_is_one_line(
    words: tuple[str, ...], message: str, capsys: Capture
) -> None:
    assert new("--run", "true", "--name", "mine", "--scheduler", "local", *words) == 2
    assert message in capsys.readouterr().err
    assert not list(Path().iterdir())


def test_a_file_is_not_written_over(capsys: Capture) -> None:
    Path("mine.toml").write_text("mine")
    assert new("--run", "true", "--name", "mine", "--scheduler", "local") == 2
    assert "mine.toml is there already: another --name, or --force" in capsys.readouterr().err
    assert Path("mine.toml").read_text() == "mine"
    assert new("--run", "true", "--name", "mine", "--scheduler", "local", "--force") == 0
