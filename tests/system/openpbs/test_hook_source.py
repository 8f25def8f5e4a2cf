"""The hook's own text: one file, the language of Python 3.6, what else must agree with it."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.system.openpbs.conftest import REPOSITORY, Mom, job

from steelyard.facts.netem_keys import VALUES

HERE = REPOSITORY / "plugins/openpbs"


def test_python_3_6_understands_it(hook: Path) -> None:
    tree = ast.parse(hook.read_text(), feature_version=(3, 6))
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Expr) and isinstance(n.value, ast.Call)]
    assert sum(n.col_offset == 0 for n in calls) == 1, "main() alone is called at the top"


@pytest.mark.parametrize("text", ["if (a := 1): pass", "def f(a, /): pass"])
def test_that_parser_knows_what_is_newer(text: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(text, feature_version=(3, 6))


def test_its_parts_import_only_what_stands_before_them(hook: Path) -> None:
    assert not re.search(r"^from (?!__future__)", hook.read_text(), re.MULTILINE)


def test_a_real_python_3_6_runs_it(mom: Mom) -> None:
    python = shutil.which("python3.6")
    if (
        not python
        or subprocess.run([python, "-V"], check=False, capture_output=True).returncode != 0
    ):
        pytest.skip("no python3.6 here: only its grammar is looked at")
    mom.python = python
    for event in ("QUEUEJOB", "EXECJOB_BEGIN", "EXECJOB_EPILOGUE", "EXECJOB_END"):
        told = mom.run({"event": event, "job": job(Resource_List={"steelyard": "tag=a%3Db"})})
        assert (told["accepted"], told["log"]) == (True, [])
    assert mom.record("41.vm")["incomplete_of"] == "processes"


def names(module: str, variable: str) -> list[str]:
    for node in ast.parse((HERE / f"{module}.py").read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == variable:
            return [n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant)]
    raise AssertionError(f"{module}.py has no {variable}")


def test_the_keys_are_those_of_the_grammar() -> None:
    assert names("request", "NETEM_KEYS") == sorted({v.key for v in VALUES if v.key.isidentifier()})


def test_the_server_is_told_of_every_event() -> None:
    said = re.search(r"^events=(.*)$", (HERE / "qmgr.sh").read_text(), re.MULTILINE)
    assert said is not None
    assert said[1].split(",") == [name.lower() for name in names("hook", "EVENTS")]


def test_what_is_printed_for_qmgr() -> None:
    done = subprocess.run(
        [HERE / "qmgr.sh", "print", "/folder"],
        capture_output=True, text=True, check=True, timeout=30, env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "qmgr -c 'create resource steelyard type=string,flag=m'"
    assert lines[1] == "qmgr -c 'create resource steelyard_used type=string,flag=h'"
    assert lines[2] == "qmgr -c 'create hook steelyard'"
    assert lines[-1] == "qmgr -c 'set hook steelyard enabled = True'"
    assert (
        sum("import hook steelyard application/x-python default /folder/" in x for x in lines) == 1
    )


def said_to_qmgr(folder: Path, there: bool) -> list[str]:
    """Return the output of `qmgr.sh run` for a server with or without resources and hook."""
    program = folder / "qmgr"
    answer = "exit 0" if there else "exit 1"
    program.write_text(
        f'#!/bin/sh\ncase $2 in list*) {answer} ;; esac\necho "$2" >>{folder}/said\n'
    )
    program.chmod(0o755)
    subprocess.run(
        [HERE / "qmgr.sh", "run", "/folder"],
        capture_output=True, check=True, timeout=30, env={"PATH": f"{folder}:/usr/bin:/bin"},
    )  # fmt: skip
    return (folder / "said").read_text().splitlines()


def test_an_upgrade_does_not_turn_the_hook_off(tmp_path: Path) -> None:
    """Jobs that began in that moment had no record (seen with two tasks of an array)."""
    said = said_to_qmgr(tmp_path, there=True)
    assert not [line for line in said if line.startswith("create") or "enabled = False" in line]
    assert said[-1] == "set hook steelyard enabled = True"


def test_a_new_hook_is_turned_on_when_it_is_whole(tmp_path: Path) -> None:
    said = said_to_qmgr(tmp_path, there=False)
    assert said.index("set hook steelyard enabled = False") == 3
    assert said[-1] == "set hook steelyard enabled = True"
