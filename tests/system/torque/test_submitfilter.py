"""Torque's submit filter: what it makes of a script and of qsub's arguments, and what it refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.system.torque.conftest import put_program, render

from steelyard.wrappers.base.programs import find_node_program

Filter = Callable[..., subprocess.CompletedProcess[str]]
ASKED = "netem=delay%3D50ms"
LINE = f"#PBS -l other=steelyard:{ASKED}\n"


@pytest.fixture
def submit(tmp_path: Path) -> Filter:
    put_program(tmp_path)
    script = render("submitfilter.sh", tmp_path / "filter", tmp_path, tmp_path / "pbs.conf")

    def run(
        text: str, *words: str, shell: str = "sh", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*shell.split(), script, *words], input=text, capture_output=True, text=True,
            env={"PATH": os.environ["PATH"]} | variables, check=False, timeout=30,
        )  # fmt: skip

    return run


PLAIN = [
    "", "sleep 1\n", "#!/bin/sh\n#PBS -N a\n\nsleep 1\n#STEELYARD --netem=delay=50ms\n",
    "#!/bin/sh\n  indented\\n \\ $x `y`\n\ttab\n", "#PBS -l other=theirs\nx\n", "#STEELYARDX\nx\n",
]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
@pytest.mark.parametrize("words", [[], ["-l", "other=theirs", "-v", "A=b,C", "x.sh", "-v", "STEELYARD_NETEM=x"]])  # fmt: skip
def test_a_script_that_asks_for_nothing_stays_as_it_is(submit: Filter, text: str, words: list[str]) -> None:  # fmt: skip
    done = submit(text, *words, STEELYARD_NETEM="delay=50ms")
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")


SAME = [
    ("#STEELYARD --netem=delay=50ms\n", []),
    ("#STEELYARD --netem delay=50ms\n", []),
    ("#PBS -v STEELYARD_NETEM=delay=50ms\n", []),
    ("", ["-v", "A=1,STEELYARD_NETEM=delay=50ms,B=2"]),
    ("", ["-vSTEELYARD_NETEM=delay=50ms"]),
    ("", ["-v", "STEELYARD_NETEM"]),
    ("", ["-V"]),
    ("", ["-N", "-v", "-V"]),
    ("", ["-I", "-v", "STEELYARD_NETEM=delay=50ms"]),
    ("#STEELYARD --netem=delay=9ms\n", ["-v", "STEELYARD_NETEM=delay=50ms"]),
    ("#PBS -l other=steelyard:netem=delay%3D9ms\n#STEELYARD --netem=delay=50ms\n", []),
]


@pytest.mark.parametrize(("head", "words"), SAME)
def test_every_way_to_ask_becomes_one_line(submit: Filter, head: str, words: list[str]) -> None:
    done = submit(f"#!/bin/sh\n{head}\nsleep 1\n", *words, STEELYARD_NETEM="delay=50ms")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"#!/bin/sh\n{head}\n{LINE}sleep 1\n"


def line_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stderr) == (0, "")
    return next(line for line in done.stdout.splitlines() if "steelyard:" in line)


def test_several_words_of_several_doors_add_up(submit: Filter) -> None:
    head = "#PBS -l nodes=1,other=mine+steelyard:tag=a%3D1\n#STEELYARD --tag=b=2 --cache=warm\n"
    done = submit(head + "x\n", "-v", r"STEELYARD_NETEM=delay=50ms\,loss=1%,STEELYARD_TAGS=c=3;d=4")
    line = [line for line in done.stdout.splitlines() if "cache" in line and "-l other" in line]
    assert line == [
        "#PBS -l other=mine+steelyard:tag=a%3D1:tag=b%3D2:cache=warm"
        + ":netem=delay%3D50ms%2Closs%3D1%25:tag=c%3D3:tag=d%3D4"
    ]


def test_another_prefix(submit: Filter) -> None:
    done = submit("#STEELYARD --netem=delay=50ms\nx\n", "-C", "#FOO")
    assert line_of(done) == LINE.strip().replace("#PBS", "#FOO")


def test_what_the_command_line_says_of_other_stays(submit: Filter) -> None:
    done = submit("x\n", "-l", f"other=steelyard:{ASKED}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "x\n", "")


REFUSED = [
    ("#STEELYARD --netem=dela=50ms\n", [], "known are delay, loss"),
    ("#STEELYARD --nettem=delay=50ms\n", [], "expected --netem=SPEC"),
    ("#STEELYARD --netem\n", [], "expected a value"),
    ("", ["-v", "STEELYARD_NETEM=dela=50ms"], "known are delay, loss"),
    ("", ["-v", "STEELYARD_NETEM=delay=50ms,loss=1%"], r"write '\,'"),
    ("", ["-l", "other=steelyard:netem=dela%3D1ms"], "known are delay, loss"),
    ("", ["-l", "other=steelyard:delay=50ms"], "expected KEY=VALUE:KEY=VALUE"),
    ("#STEELYARD --netem=delay=50ms\n", ["-l", "other=mine"], f"say -l other='mine+steelyard:{ASKED}'"),
    ("#STEELYARD --netem=delay=50ms\n", ["-C", ""], f"say -l other='steelyard:{ASKED}'"),
    ("#STEELYARD" + f" --tag=a={'x' * 250}" * 4 + "\n", [], "expected at most 1000"),
    ("#STEELYARD --cache=hot\n", [], "cache"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "words", "said"), REFUSED)
def test_refused_at_qsub(submit: Filter, head: str, words: list[str], said: str) -> None:
    done = submit(f"{head}sleep 1\n", *words)
    assert done.returncode == 255
    assert done.stderr.startswith("steelyard: ") and done.stderr.count("\n") == 1
    assert said in done.stderr


def test_the_words_are_those_of_sbatch(submit: Filter) -> None:
    words = [find_node_program(), "job", "check", "--netem=dela=50ms"]
    truth = subprocess.run(words, capture_output=True, text=True, check=False)
    assert submit("#STEELYARD --netem=dela=50ms\n").stderr == truth.stderr


def test_without_our_program_only_who_asks_is_refused(submit: Filter, tmp_path: Path) -> None:
    (tmp_path / "libexec/steelyard/steelyard-node").unlink()
    assert submit("x\n").stdout == "x\n"
    done = submit("#STEELYARD --netem=delay=50ms\nx\n")
    assert done.returncode == 255
    assert "make install-torque-login" in done.stderr


def test_nothing_of_a_user_is_executed(submit: Filter, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    evil = f"$(touch${{IFS}}{marker})`touch${{IFS}}{marker}`;touch {marker}"
    submit(f"#PBS -N {evil}\n#STEELYARD --tag=a={evil}\nx\n", "-N", evil, "-v", f"STEELYARD_TAGS=a={evil}")  # fmt: skip
    assert not marker.exists()


@pytest.mark.parametrize("shell", ["dash", "busybox sh", "bash --posix"])
def test_in_other_shells(submit: Filter, shell: str) -> None:
    if not shutil.which(shell.split()[0]):
        pytest.skip(f"{shell.split()[0]} is not here")
    done = submit("#!/bin/sh\n#STEELYARD --netem=delay=50ms\nx\n", shell=shell)
    assert (done.stdout, done.stderr) == (
        f"#!/bin/sh\n#STEELYARD --netem=delay=50ms\n{LINE}x\n",
        "",
    )


def test_a_comma_whose_backslash_the_shell_of_an_older_qsub_took(submit: Filter) -> None:
    done = submit("", "-v", "STEELYARD_NETEM=rate=100mbit,to=10.0.0.0/8")
    assert (done.returncode, done.stdout) == (255, "")
    assert "write '\\,' for it" in done.stderr
    assert "Torque before 6.1.3 loses it" in done.stderr
    assert "or a line #STEELYARD --netem=" in done.stderr


@pytest.mark.parametrize(
    ("config", "policy", "head", "words", "is_refused"),
    [
        ("", "", "", [], True),
        ("exclusive = no\n", "", "", ["-V"], True),
        ("", "", "", ["-l", "naccesspolicy=singlejob"], True),
        ("", "", "", ["-n"], False),
        ("", "", "", ["-nI"], False),
        ("", "", "#PBS -n\n", [], False),
        (" exclusive = yes \n", "", "", [], False),
        ("", "exclusive_only no\n", "", [], False),
        (None, "", "", [], False),  # the nodes know, and this host does not
    ],
)
def test_a_condition_without_whole_nodes_is_refused_where_it_is_known(
    submit: Filter,
    tmp_path: Path,
    config: str | None,
    policy: str,
    head: str,
    words: list[str],
    is_refused: bool,
) -> None:
    netem = tmp_path / "netem.conf"
    netem.write_text(f"enabled yes\n{policy}")
    if config is not None:
        (tmp_path / "pbs.conf").write_text(f"netem_policy={netem}\n{config}")
    done = submit(f"#!/bin/sh\n#STEELYARD --netem=delay=50ms\n{head}sleep 1\n", *words)
    if is_refused:
        assert (done.returncode, done.stdout) == (255, "")
        assert "netem: only for jobs that have their nodes for themselves" in done.stderr
        assert "-n (Torque)" in done.stderr
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_tags_need_no_whole_nodes(submit: Filter, tmp_path: Path) -> None:
    (tmp_path / "pbs.conf").write_text("")
    assert submit("#STEELYARD --tag=a=b\nx\n").returncode == 0
