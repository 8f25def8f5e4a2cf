"""Checks before submission for the programs that a study's benchmarks and commands start, on this
machine and in the launchers' images.

Runs start in an empty folder, so a program's name is an absolute path or is found in PATH."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.jobscripts.registry import Benchmark, Module, Program
from steelyard.wrappers.base import programs as base_programs
from steelyard.wrappers.base.programs import SHELL_ASSIGNMENT, SHELL_BUILT_IN, SHELL_SYNTAX
from steelyard.wrappers.launchers import image_contents, launcher_checks
from steelyard.wrappers.launchers.launcher_grammar import Launcher
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit.scheduler_checks import Problem

OURS = "steelyard-"
TIMER = "steelyard-time"


def find_missing_programs(study: Study, runs: Sequence[Run]) -> list[str]:
    """Return a phrase for each missing program or module: its name, why it is needed, and what to
    do."""
    benchmarks = study.benchmarks()
    return find_missing_requirements([(benchmarks[run.benchmark], run.parameters) for run in runs])


def find_missing_requirements(
    chosen: Sequence[tuple[Benchmark, Mapping[str, object]]],
) -> list[str]:
    """Return the same for benchmarks with all their parameters."""
    programs: dict[str, Program] = {}
    modules: dict[str, Module] = {}
    for benchmark, values in chosen:
        programs |= {p.name: p for p in benchmark.needs if p.is_needed(values)}
        modules |= {m.name: m for m in benchmark.modules if m.is_needed(values)}
    return [
        *(
            f"{program.name} ({program.why}; {suggest_package(program)})"
            for program in programs.values()
            if base_programs.find_program(program.name) is None
        ),
        *(
            f"the Python module {name} ({module.why}; {sys.executable} -m pip install {name})"
            for name, module in modules.items()
            if importlib.util.find_spec(name) is None
        ),
    ]


def suggest_package(program: Program) -> str:
    """Return how to get a missing program."""
    if program.debian:
        return f"apt install {program.debian}"
    return base_programs.remedy(program.name) if program.name.startswith(OURS) else "put it on PATH"


def make_environment(study: Study) -> dict[str, str]:
    """Return the variables of run.sh besides its parameters: the paths of our programs and [job]'s
    options."""
    return program_variables(list(study.benchmarks().values())) | study.job.script_variables()


def program_variables(benchmarks: Sequence[Benchmark]) -> dict[str, str]:
    """Return the paths of our programs that these benchmarks need, of steelyard-time, which
    measures what they start (lib/usage.sh), and of Python for their clients."""
    names = {program.name for benchmark in benchmarks for program in benchmark.needs} | {TIMER}
    paths = {
        name: base_programs.find_program(name) for name in sorted(names) if name.startswith(OURS)
    }
    found = {
        base_programs.variable(name): str(path) for name, path in paths.items() if path is not None
    }
    if any(benchmark.modules for benchmark in benchmarks):
        found["STEELYARD_PYTHON"] = sys.executable
    return found


BASH_ONLY = frozenset(
    ("[[", "((", "function", "select", "source", "time", "coproc", "declare", "local")
)


def check_commands(study: Study, runs: Sequence[Run], runs_here: bool) -> Iterator[Problem]:
    """Yield the problems with the first word of each command, each problem once."""
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
            problem = check_command(str(run.parameters[name]), has_own_path(run), runs_here)
            if problem is not None:
                found.setdefault(problem.text, problem)
    yield from found.values()


def has_own_path(run: Run) -> bool:
    """Return whether the study sets PATH for its command."""
    return "PATH" in json.loads(run.parameters.get("env") or "{}")


def check_command(command: str, has_path: bool, runs_here: bool) -> Problem | None:
    """Return None if the program is here, or cannot be derived from the line; else the problem."""
    program = find_first_program(command)
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


def find_first_program(command: str) -> str | None:
    """Return the word by which a shell starts a program; None if only a shell can determine it."""
    try:
        words = shlex.split(command, comments=True)
    except ValueError:
        return None
    word = next((one for one in words if not SHELL_ASSIGNMENT.match(one)), "")
    is_plain = word and not any(char in word for char in SHELL_SYNTAX + "{}~!'\"")
    return word if is_plain and word not in SHELL_BUILT_IN | BASH_ONLY else None


SYSTEM = ("bin", "sbin", "usr")  # of the image itself (sy_launcher_is_system_folder of jobscripts/)


def find_missing_in_images(
    benchmarks: Mapping[str, Benchmark], runs: Sequence[Run]
) -> Iterator[str]:
    """Yield a sentence for each image on this machine that misses programs; each image is started
    once."""
    of_images: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        of_images.setdefault((run.launcher.kind, run.launcher.name), []).append(run)
    for (_, name), of_one in of_images.items():
        launcher = of_one[0].launcher
        if name and can_enter(launcher):
            chosen = {repr((r.benchmark, sorted(r.parameters.items()))): r for r in of_one}
            problem = image_contents.find_missing(
                launcher, list_required_programs(benchmarks, list(chosen.values()))
            )
            if problem is not None:
                yield problem


def can_enter(launcher: Launcher) -> bool:
    """Return whether the launcher's image is here and this user may start it."""
    return (
        launcher_checks.refusal_reason(launcher, os.geteuid()) is None
        and launcher_checks.find_missing(launcher) is None
    )


def list_required_programs(
    benchmarks: Mapping[str, Benchmark], runs: Sequence[Run]
) -> image_contents.RequiredPrograms:
    """Return what runs start inside: the benchmarks' programs, including ours, and programs in
    parameters."""
    commands: dict[str, str] = {}
    paths: dict[Path, None] = {}
    for run in runs:
        for program in benchmarks[run.benchmark].needs:
            if not program.is_needed(run.parameters):
                continue
            if program.name.startswith(OURS):
                paths |= dict.fromkeys(list_own_programs(program.name, run.parameters))
            else:
                commands[program.name] = program.debian
        for path in list_user_programs(run.parameters):
            if path.parts[1] in SYSTEM:
                commands.setdefault(str(path), "")
            else:
                paths[path] = None
    return image_contents.RequiredPrograms(commands, image_contents.list_linked(paths))


def list_own_programs(name: str, parameters: Mapping[str, object]) -> Iterator[Path]:
    """Yield the paths of one of our programs: itself, for npb the kernel's, for a profiler its
    preloaded library."""
    path = base_programs.find_program(name)
    if path is not None:
        short = name.removeprefix(OURS)
        yield path
        yield path.parent / f"{short}-{parameters.get('kernel')}"
        yield path.parent.parent / "lib" / f"lib{name}.so"


def list_user_programs(parameters: Mapping[str, object]) -> Iterator[Path]:
    """Yield the user's programs: absolute paths in a command line, or a folder of programs."""
    for key, value in parameters.items():
        if not isinstance(value, str) or "/" not in value:
            continue
        try:
            words = shlex.split(value)
        except ValueError:
            continue
        for word in words:
            path = Path(word)
            if path.is_absolute() and (path.is_file() or (key == "folder" and path.is_dir())):
                yield path
