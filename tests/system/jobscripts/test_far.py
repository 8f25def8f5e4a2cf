"""The door of a container: a command of the scheduler's is asked for inside and executed outside."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry

# A scheduler with three commands; what is behind the door knows nothing else of it.
TOY = """\
. "$1"
SY_SCHEDULERS+=(toy) SY_SCHEDULER=toy SY_FAR_DOOR=$2 SY_FAR_LIMIT_S=1
sy_toy_is_command() { [[ $1 == answer || $1 == linger ]]; }
sy_toy_command() { "$@"; }
answer() { printf 'o\\0 %s' "$2"; printf 'e' >&2; return "$1"; }
linger() { sleep 97; }
mkfifo "$SY_FAR_DOOR/door"
"""

KEEPER = "SY_FAR_LIMIT_S=60; sy_far_keep & keeper=$!\n"  # it answers, on a busy machine late
# As long for a request to be taken; but not for the code of one that will have none.
TAKEN_LATE = """\
eval "usual_$(declare -f sy_far_is_taken)"
sy_far_is_taken() { SY_FAR_LIMIT_S=60 usual_sy_far_is_taken "$@"; }
sy_far_keep & keeper=$!
"""
END = "\nsy_signal_below TERM $keeper"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "steelyard.sh"
    path.write_text(registry.library(), encoding="utf-8")
    (tmp_path / "door").mkdir()
    return path


def bash(library: Path, script: str) -> subprocess.CompletedProcess[bytes]:
    """Within 20 s, or the test is red."""
    return subprocess.run(
        ["bash", "-c", TOY + script, "-", library, library.parent / "door"],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=False,
        timeout=90,
    )


def left(library: Path) -> list[str]:
    """Folders of requests that were not removed."""
    return [path.name for path in (library.parent / "door").iterdir() if path.is_dir()]


def test_output_errors_and_exit_code_come_through_the_door(library: Path) -> None:
    done = bash(library, KEEPER + "sy_far_ask answer 7 'a  b'; echo $?" + END)
    assert (done.stdout, done.stderr) == (b"o\0 a  b7\n", b"e")
    assert left(library) == []


def test_what_is_no_command_of_the_scheduler_is_not_executed(library: Path) -> None:
    done = bash(library, KEEPER + "sy_far_ask touch $SY_FAR_DOOR/made; echo $?" + END)
    assert (done.stdout, done.stderr) == (b"1\n", b"")
    assert not (library.parent / "door" / "made").exists()


def test_nobody_behind_the_door_is_an_error_and_no_wait_for_ever(library: Path) -> None:
    done = bash(library, "sy_far_ask answer 0; echo $?")
    said = b"steelyard: nobody outside of the container answers: the client there is gone\n"
    assert (done.stdout, done.stderr) == (b"1\n", said)
    assert left(library) == []


def test_who_is_killed_behind_the_door_is_not_waited_for(library: Path) -> None:
    done = bash(
        library,
        TAKEN_LATE + "{ until [[ -n $(pgrep -f '^sleep 97' -s 0) ]]; do sleep 0.05; done\n"
        "  sy_signal_below KILL $keeper; } &\n"
        "sy_far_ask linger; echo $?",
    )
    assert done.stdout == b"1\n"
    assert left(library) == []


def test_an_answer_that_nobody_waits_for_any_more_ends(library: Path) -> None:
    """As when the container was killed between its request and opening the FIFOs."""
    done = bash(
        library,
        "folder=$SY_FAR_DOOR/gone; mkdir $folder; mkfifo $folder/{out,err,alive,code}\n"
        "printf '%s\\0' linger >$folder/argv; sy_far_answer $folder; echo $?",
    )
    assert done.stdout == b"0\n"


def test_the_users_environment_is_for_the_user_alone(library: Path) -> None:
    """It lies in the study's folder while a program runs on another node."""
    script = (
        "SY_ATTEMPT_DIR=${2%/*} SY_LAUNCHER_SCRIPT=run.sh; umask 022\n"
        'sy_scheduler() { stat -c "%a" "$SY_ATTEMPT_DIR"/far.*; }\n'
        "sy_far_on_node n2 true"
    )
    done = bash(library, script)
    assert (done.stdout, done.stderr) == (b"600\n600\n", b"")
