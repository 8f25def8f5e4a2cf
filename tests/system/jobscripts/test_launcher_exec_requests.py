"""The exec helper of containers: a command is requested inside and executed outside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry

# A scheduler with three commands; the helper executes nothing else.
TOY = """\
. "$1"
SY_SCHEDULERS+=(toy) SY_SCHEDULER=toy SY_OUTSIDE=$2/outside SY_EXEC_LIMIT_S=1
sy_toy_is_command() { [[ $1 == answer || $1 == linger ]]; }
sy_toy_command() { "$@"; }
answer() { printf 'o\\0 %s' "$2"; printf 'e' >&2; return "$1"; }
linger() { sleep 97; }
sy_exec_make_helper "$SY_OUTSIDE"
ask() { sy_exec_request "$SY_OUTSIDE" "$@"; }
"""
SERVE = 'sy_exec_serve "$SY_OUTSIDE" sy_exec_run_scheduler & helper=$!\n'
HELPER = "SY_EXEC_LIMIT_S=60; " + SERVE  # it answers, on a busy machine late
END = "\nsy_signal_tree TERM $helper"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "steelyard.sh"
    path.write_text(registry.library(), encoding="utf-8")
    return path


def bash(library: Path, script: str) -> subprocess.CompletedProcess[bytes]:
    """Within 20 s, or the test is red."""
    return subprocess.run(
        ["bash", "-c", TOY + script, "-", library, library.parent],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        timeout=90,
    )


def left(library: Path) -> list[str]:
    """Folders of requests that were not removed."""
    return [path.name for path in (library.parent / "outside").iterdir() if path.is_dir()]


def test_output_errors_and_exit_code_come_through_the_helper(library: Path) -> None:
    done = bash(library, HELPER + "ask answer 7 'a  b'; echo $?" + END)
    assert (done.stdout, done.stderr) == (b"o\0 a  b7\n", b"e")
    assert left(library) == []


def test_what_is_no_command_of_the_scheduler_is_not_executed(library: Path) -> None:
    done = bash(library, HELPER + "ask touch $SY_OUTSIDE/made; echo $?" + END)
    assert (done.stdout, done.stderr) == (b"1\n", b"")
    assert not (library.parent / "outside" / "made").exists()


def test_no_helper_is_an_error_and_no_wait_for_ever(library: Path) -> None:
    done = bash(library, "ask answer 0; echo $?")
    folder = library.parent / "outside"
    said = f"steelyard: no exec helper answers in {folder}: the client, or the container there, has ended\n"
    assert (done.stdout, done.stderr.decode()) == (b"1\n", said)
    assert left(library) == []


def test_a_helper_that_is_killed_is_not_waited_for(library: Path) -> None:
    done = bash(
        library,
        # As long for a request to be taken; but not for the code of one that will have none.
        HELPER + "{ until [[ -n $(pgrep -f '^sleep 97' -s 0) ]]; do sleep 0.05; done\n"
        "  sy_signal_tree KILL $helper; } &\n"
        'eval "usual_$(declare -f sy_exec_read_state)"\n'
        "sy_exec_read_state() { usual_sy_exec_read_state; local done=$?; SY_EXEC_LIMIT_S=1; return $done; }\n"
        "ask linger; echo $?",
    )
    assert done.stdout == b"1\n"
    assert left(library) == []


def test_an_answer_that_nobody_waits_for_any_more_ends(library: Path) -> None:
    """As when the container was killed between its request and opening the FIFOs."""
    done = bash(
        library,
        "folder=$SY_OUTSIDE/gone; mkdir $folder; mkfifo $folder/{out,err,alive,state}\n"
        "printf '%s\\0' linger >$folder/argv\n"
        "sy_exec_run_request $folder sy_exec_run_scheduler; echo $?",
    )
    assert done.stdout == b"0\n"


def test_the_users_environment_is_for_the_user_alone(library: Path) -> None:
    """It is in the study's folder until a program has been started on another node."""
    script = (
        "SY_ATTEMPT_DIR=$2 SY_LAUNCHER_SCRIPT=run.sh SY_PEERS=$2 SY_THIS_NODE=n1; umask 022\n"
        "echo 'n2 n2 127.0.0.2/8 /0' >$SY_PEERS/list\n"
        'sy_scheduler() { stat -c "%a" "$SY_ATTEMPT_DIR"/request.* "$SY_ATTEMPT_DIR"/request.*/env; }\n'
        "sy_on_node n2 true"
    )
    done = bash(library, script)
    assert (done.stdout, done.stderr) == (b"700\n600\n", b"")
