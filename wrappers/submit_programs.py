"""The programs that a study's benchmarks need: which of them this machine does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from steelyard.jobscripts.registry import Program
from steelyard.wrappers import node
from steelyard.wrappers.plan import Run
from steelyard.wrappers.study import Study

OURS = "steelyard-"

# (benchmark, program): with these parameters the benchmark does not need the program.
SPARED: dict[tuple[str, str], Callable[[Mapping[str, object]], bool]] = {
    ("hpl", "hpcc"): lambda given: bool(given["xhpl"]),
    ("hpl", "mpirun"): lambda given: given["p"] == given["q"] == 1,
    ("npb", "steelyard-npb"): lambda given: bool(given["folder"]),
    ("npb", "mpirun"): lambda given: given["ranks"] == 1,
}


def needed(study: Study, runs: Sequence[Run]) -> dict[str, Program]:
    """What these runs need, by the program's name."""
    benchmarks = study.benchmarks()
    programs: dict[str, Program] = {}
    for run in runs:
        for program in benchmarks[run.benchmark].needs:
            spared = SPARED.get((run.benchmark, program.name))
            if spared is None or not spared(run.parameters):
                programs[program.name] = program
    return programs


def missing(study: Study, runs: Sequence[Run]) -> list[str]:
    """One phrase for each program that is not here: its name, why it is needed, where to get it."""
    return [
        f"{program.name} ({program.why}; {remedy(program)})"
        for program in needed(study, runs).values()
        if node.find_program(program.name) is None
    ]


def remedy(program: Program) -> str:
    """What to do about a missing program."""
    if program.debian:
        return f"apt install {program.debian}"
    return "make all" if program.name.startswith(OURS) else "put it on PATH"


def environment(study: Study) -> dict[str, str]:
    """Variables that lead run.sh to the programs of ours which its benchmarks need."""
    names = {p.name for benchmark in study.benchmarks().values() for p in benchmark.needs}
    paths = {name: node.find_program(name) for name in sorted(names) if name.startswith(OURS)}
    return {node.variable(name): str(path) for name, path in paths.items() if path is not None}
