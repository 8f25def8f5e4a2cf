"""Finds programs of a study's benchmarks that are missing from its launchers' images."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.base import programs as base_programs
from steelyard.wrappers.launchers import image_contents, launcher_checks
from steelyard.wrappers.launchers.launcher_grammar import Launcher
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit.program_checks import OURS

SYSTEM = ("bin", "sbin", "usr")  # of the image itself (sy_launcher_is_system_folder of jobscripts/)


def find_missing_programs(
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
