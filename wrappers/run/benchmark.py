"""`steelyard run --benchmark NAME`: one benchmark alone on this machine, without study or
scheduler.

The run is the same as in a study, repeated as requested: `run.sh` with its library in a separate
folder, local attempts, the benchmark's own parser."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.analysis.stats.basics import CONFIDENCE, is_rate, mean_by_kind
from steelyard.jobscripts import parameters, registry
from steelyard.jobscripts.errors import BenchmarkError
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.launchers import launcher_grammar
from steelyard.wrappers.launchers.launcher_grammar import Launcher
from steelyard.wrappers.run import container_run as run_inside
from steelyard.wrappers.run import measurement
from steelyard.wrappers.submit import program_checks as submit_programs


@dataclass(frozen=True)
class Chosen:
    """A benchmark and all its parameters."""

    benchmark: registry.Benchmark
    values: Mapping[str, parameters.Value]
    launcher: Launcher

    def describe_figures(self) -> dict[str, registry.ResultSpec]:
        """Return the description of each figure, the primary one first."""
        specs = self.benchmark.specs(self.values)
        ordered = sorted(specs, key=lambda name: not specs[name].primary)
        return {name: specs[name] for name in ordered}


def choose_benchmark(name: str, given: Sequence[str], launcher: Launcher) -> Chosen:
    """Check the benchmark's name and NAME=VALUE texts, and that this machine has the programs it
    needs."""
    try:
        benchmark = registry.load(name)
        values = benchmark.check_parameters(
            dict(parse_parameter(benchmark, text) for text in given)
        )
    except BenchmarkError as error:
        raise UsageError(str(error)) from error
    if launcher.across and "mpirun" not in benchmark.parameters:
        raise UsageError(
            f"--in {launcher.text}: ranks=across puts one MPI program into all containers, and {name} "
            "starts none: leave it out"
        )
    needed = launcher.has_our_programs  # otherwise the image has to have them
    missing = submit_programs.find_missing_requirements([(benchmark, values)]) if needed else []
    if missing:
        raise MissingError(f"programs are missing on this machine: {'; '.join(missing)}")
    return Chosen(benchmark, values, launcher)


def parse_parameter(benchmark: registry.Benchmark, text: str) -> tuple[str, object]:
    """Parse NAME=VALUE; return the value in the parameter's type."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"-p {text}: allowed is NAME=VALUE", part=text)
    parameter = benchmark.parameters.get(name)
    if parameter is None:  # check_parameters then lists the known ones
        return name, value
    try:
        return name, parameters.from_text(parameter, value)
    except ValueError as error:
        raise UsageError(f"-p {text}: {error}", part=text) from error


def write_script(chosen: Chosen, options: measurement.Options, folder: Path) -> measurement.Options:
    """Write the benchmark's script to folder/benchmark, which receives its output; return options
    that execute it. Raises UsageError if the folder exists."""
    at = script_folder(folder)
    if at.exists():
        raise UsageError(f"{folder}: has runs in it already: name an empty folder", str(folder))
    tags = (*options.tags, f"benchmark={chosen.benchmark.name}")
    if not chosen.launcher.is_bare:
        tags = (*tags, f"launcher={chosen.launcher.text}")
    variables = submit_programs.program_variables([chosen.benchmark])
    command = run_inside.write_script(
        at, chosen.benchmark, chosen.values, chosen.launcher, variables, options.conditions.network
    )
    return replace(options, command=tuple(command), tags=tags, launcher=launcher_grammar.BARE)


def script_folder(folder: Path) -> Path:
    """Return the folder of the benchmark's script and output."""
    return folder / "benchmark"


def add_figures(
    chosen: Chosen, folder: Path, measured: measurement.Measurement, attempt_number: int
) -> measurement.Measurement:
    """Add the benchmark's figures to the run: means over its iterations and clients."""
    attempt = script_folder(folder) / "runs" / run_inside.RUN_ID / f"local.{attempt_number}"
    specs = chosen.describe_figures()
    found: dict[str, list[float]] = {}
    why: dict[str, str] = {}
    if not measured.failed:
        try:
            for client in range(chosen.launcher.clients_per_node):
                own = chosen.benchmark.own_figures(attempt, client, chosen.values)
                for result in (
                    *chosen.benchmark.parse(attempt, client, chosen.values),
                    *own.results,
                ):
                    found.setdefault(result.metric, []).append(result.value)
                why |= own.missing
        except (BenchmarkError, OSError) as error:
            print(f"steelyard run: run {measured.number}: {error}", file=sys.stderr)
            measured = replace(measured, exit_code=1)
    for reason in why.values():  # a study's reasons come from collect instead
        print(f"steelyard run: run {measured.number}: {reason}", file=sys.stderr)
    measured = use_client_times(chosen.launcher, run_inside.read_run(attempt), measured)
    found = {name: values for name, values in found.items() if name not in why}
    values = {
        name: mean_by_kind(found[name], is_rate(spec.unit, spec.better)) if name in found else None
        for name, spec in specs.items()
    }
    why = {name: why.get(name, "not measured in this run") for name in specs if name not in found}
    return replace(measured, values=measured.values | values, missing=measured.missing | why)


def use_client_times(
    launcher: Launcher, found: run_inside.ContainerRun, measured: measurement.Measurement
) -> measurement.Measurement:
    """Set `elapsed` (s) as a study does: from the clients' common start to the end of the last
    client."""
    values = measured.values | {"elapsed": found.elapsed_s}
    missing = dict(measured.missing)
    if found.elapsed_s is None:
        missing["elapsed"] = "a client left no end: it never started, or was killed"
    if launcher.is_bare:
        return replace(measured, values=values, missing=missing)
    values["start"] = run_inside.slowest_start(found.tags)
    missing["start"] = "a container did not say when it was ready"
    if not run_inside.measures_processes(found.tags):
        values |= dict.fromkeys(run_inside.OF_PROCESSES)
        missing |= dict.fromkeys(run_inside.OF_PROCESSES, run_inside.NOT_OURS)
    return replace(
        measured,
        values=values,
        missing=missing,
        of_whole_run=(
            *(total.run_name for total in run_inside.SHOWN),
            *run_inside.CPU_PARTS,
        ),
        containers=launcher.clients_per_node,
    )


def summarize_figures(
    chosen: Chosen, runs: Sequence[measurement.Measurement], confidence: float = CONFIDENCE
) -> list[measurement.Summary]:
    """Summarize the figures that any run has, the primary one first."""
    good = [entry for entry in runs if entry.counts]
    found = [
        measurement.summarize_metric(
            name,
            spec.unit,
            good,
            confidence,
            is_rate(spec.unit, spec.better),
            chosen.benchmark.name,
        )
        for name, spec in chosen.describe_figures().items()
    ]
    return [entry for entry in found if entry.n]
