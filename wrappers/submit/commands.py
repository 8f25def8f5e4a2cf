"""The programs that commands of a study begin with: which of them no run could start.

Runs begin in an empty folder, so a program's name is an absolute path or stands in PATH.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.wrappers.base.shell_words import ASSIGNMENT, BUILT_IN, SYNTAX
from steelyard.wrappers.study.planned import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit.preflight import Problem

BASH_ONLY = frozenset(
    ("[[", "((", "function", "select", "source", "time", "coproc", "declare", "local")
)


def faults(study: Study, runs: Sequence[Run], runs_here: bool) -> Iterator[Problem]:
    """What is wrong with the first word of each command, each thing once."""
    found: dict[str, Problem] = {}
    commands = {
        benchmark.name: [
            name
            for name, parameter in benchmark.parameters.items()
            if parameter.type == "command" and parameter.required
        ]
        for benchmark in study.benchmarks().values()
    }
    for run in runs:
        for name in commands[run.benchmark]:
            if not run.launcher.has_our_programs:
                continue  # its image has them
            problem = fault(str(run.parameters[name]), has_own_path(run), runs_here)
            if problem is not None:
                found.setdefault(problem.text, problem)
    yield from found.values()


def has_own_path(run: Run) -> bool:
    """Whether the study sets PATH for its command."""
    return "PATH" in json.loads(run.parameters.get("env") or "{}")


def fault(command: str, has_path: bool, runs_here: bool) -> Problem | None:
    """None: its program is here, or cannot be told from the line."""
    program = first_program(command)
    if program is None:
        return None
    where = "" if runs_here else ", and maybe not on the nodes"
    path = Path(program)
    if "/" not in program:
        if has_path or shutil.which(program) is not None:
            return None
        beside = f": give its absolute path, {path.absolute()}" if path.is_file() else ""
        return Problem(f"{program} is no program in PATH on this machine{where}{beside}", runs_here)
    if not path.is_absolute():
        return Problem(
            f"{program}: runs begin in an empty folder: give its absolute path, {path.absolute()}",
            sure=True,
        )
    if not path.is_file():
        return Problem(f"{program} is not on this machine{where}", runs_here)
    if not os.access(path, os.X_OK):
        return Problem(f"{program} may not be executed: chmod +x {shlex.quote(program)}", runs_here)
    return None


def first_program(command: str) -> str | None:
    """The word by which a shell starts a program; None where that takes a shell to tell."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return None
    word = next((one for one in words if not ASSIGNMENT.match(one)), "")
    is_plain = word and not any(char in word for char in SYNTAX + "{}~!'\"")
    return word if is_plain and word not in BUILT_IN | BASH_ONLY else None
