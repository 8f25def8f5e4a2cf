"""The programs that a study's benchmarks need: which of them this machine does not have."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence

from steelyard.jobscripts.registry import Benchmark, Module, Program
from steelyard.wrappers.base import node
from steelyard.wrappers.study.planned import Run
from steelyard.wrappers.study.study import Study

OURS = "steelyard-"
TIMER = "steelyard-time"


def missing(study: Study, runs: Sequence[Run]) -> list[str]:
    """One phrase for each thing that is not here: its name, why it is needed, where to get it."""
    benchmarks = study.benchmarks()
    return missing_of([(benchmarks[run.benchmark], run.parameters) for run in runs])


def missing_of(chosen: Sequence[tuple[Benchmark, Mapping[str, object]]]) -> list[str]:
    """The same for benchmarks with all their parameters."""
    programs: dict[str, Program] = {}
    modules: dict[str, Module] = {}
    for benchmark, values in chosen:
        programs |= {p.name: p for p in benchmark.needs if p.is_needed(values)}
        modules |= {m.name: m for m in benchmark.modules if m.is_needed(values)}
    return [
        *(
            f"{program.name} ({program.why}; {remedy(program)})"
            for program in programs.values()
            if node.find_program(program.name) is None
        ),
        *(
            f"the Python module {name} ({module.why}; {sys.executable} -m pip install {name})"
            for name, module in modules.items()
            if importlib.util.find_spec(name) is None
        ),
    ]


def remedy(program: Program) -> str:
    """What to do about a missing program."""
    if program.debian:
        return f"apt install {program.debian}"
    return node.remedy(program.name) if program.name.startswith(OURS) else "put it on PATH"


def environment(study: Study) -> dict[str, str]:
    """What run.sh is told beside its parameters: where our programs are, and [job]'s wishes."""
    return variables(list(study.benchmarks().values())) | study.job.quality()


def variables(benchmarks: Sequence[Benchmark]) -> dict[str, str]:
    """Where the programs of ours are which these benchmarks need, steelyard-time, which measures
    what they start (lib/usage.sh), and Python for their clients."""
    names = {program.name for benchmark in benchmarks for program in benchmark.needs} | {TIMER}
    paths = {name: node.find_program(name) for name in sorted(names) if name.startswith(OURS)}
    found = {node.variable(name): str(path) for name, path in paths.items() if path is not None}
    if any(benchmark.modules for benchmark in benchmarks):
        found["STEELYARD_PYTHON"] = sys.executable
    return found
