"""Launch methods without a batch system: `steelyard run`, at several rates and in containers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import ConditionError, MissingError, UsageError
from steelyard.wrappers.calibrate import known_loads, limits, table, truth_comparison
from steelyard.wrappers.calibrate.known_loads import KnownLoad, Result
from steelyard.wrappers.calibrate.table import Cell, Limit, Quantity, Trouble
from steelyard.wrappers.launchers import launcher_checks as launcher_needs
from steelyard.wrappers.launchers import launcher_grammar
from steelyard.wrappers.schedulers import registry

TRIES = 3  # for times only: a busy machine makes them longer, never shorter
RUN_LIMIT_S, LIST_LIMIT_S = 120.0, 20.0
Outcome = Iterator[Cell | Trouble]
Method = tuple[str, Callable[[], Outcome]]  # its name, and the function that runs it


class NotMeasuredError(Exception):
    """A run without a record: `failed`, or not possible on this machine."""

    def __init__(self, why: str, failed: bool = False) -> None:
        super().__init__(why)
        self.failed = failed


@dataclass(frozen=True)
class Measurement:
    """One `steelyard run`: what its loads counted, its record, and the figures it printed."""

    results: Sequence[Result]
    record: dict[str, Any]
    printed: dict[str, Any]  # an entry of `runs` of --json


@dataclass(frozen=True)
class Bench:
    """The folder and the program of local loads."""

    folder: Path
    program: Path
    prefix: tuple[str, ...] = ()  # before the command, to enter a network namespace

    def measure(self, load: KnownLoad, *options: str) -> Measurement:
        """Measure the load by `steelyard run`. Raises NotMeasuredError with its last line if it
        fails."""
        folder = self.folder / f"run-{len(list(self.folder.glob('run-*'))):03}"
        folder.mkdir(parents=True)
        program = folder / self.program.name  # a container sees this folder, but not those above
        program.hardlink_to(self.program)
        argv = [*self.prefix, sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli"]
        argv += ["run", "--json", "-o", "measured", *options]
        argv += ["--", str(program), known_loads.RESULT, *load.actions]
        done = programs.run_quietly(argv, RUN_LIMIT_S, clean_environment(), folder)
        records = list(folder.glob("measured/run-001/*/*.json"))
        if done.returncode != 0 or not records:
            *_, last = ["without a word", *done.stderr.strip().splitlines()]
            raise NotMeasuredError(last.removeprefix("steelyard run: "), done.returncode != 3)
        (printed,) = json.loads(done.stdout)["commands"][0]["runs"]
        return Measurement(
            known_loads.read_results(folder), json.loads(records[0].read_bytes()), printed
        )


def clean_environment() -> dict[str, str]:
    """Return the environment without variables of any job."""
    jobs = tuple(prefix for one in registry.list_classes() for prefix in one.job_variables)
    return {key: value for key, value in os.environ.items() if not key.startswith(jobs)}


def list_methods(bench: Bench, containers: Sequence[str] | None, quick: bool) -> Iterator[Method]:
    """Yield the methods in the order of the table; `containers`: None for one of each kind
    available here."""
    for load in (known_loads.standard_load(), *known_loads.LOADS):
        yield f"run: {load.name}", partial(measure_plain, bench, "run", load)
    yield f"run: {known_loads.SLEEP.name}", partial(measure_elapsed, bench, "run")
    if shutil.which("mpirun"):
        yield "run: MPI", partial(measure_plain, bench, "run", known_loads.mpi_load(bench.program))
    for rate in known_loads.RATES_HZ:
        if not (quick and rate == 10):
            name, load = f"run, {rate} samples a second", known_loads.load_at_rate(rate)
            yield name, partial(measure_plain, bench, name, load, f"--sample-rate={rate}")
    for launcher, refusal in list_usable_launchers(containers):
        yield f"run --in {launcher}", partial(measure_in_container, bench, launcher, refusal)


def measure_plain(bench: Bench, method: str, load: KnownLoad, *options: str) -> Outcome:
    """Yield a cell for every quantity except time, which has its own load."""
    found = bench.measure(load, *options)
    for quantity in load.quantities:
        if quantity is not table.ELAPSED:
            limit = truth_comparison.load_limit(
                quantity, load, truth_comparison.count_missed_ends(found.record)
            )
            yield truth_comparison.record_cell(
                method, load, quantity, found.record, found.results, limit
            )


def measure_elapsed(bench: Bench, method: str, *options: str) -> Outcome:
    """Yield the printed elapsed time, which in a container is not the record's; the best of several
    tries counts."""
    load, quantity = known_loads.SLEEP, table.ELAPSED
    tries = [bench.measure(load, *options) for _ in range(TRIES)]
    found = [printed_cell(method, load, quantity, one, limits.START) for one in tries]
    yield min(found, key=lambda one: abs(one.error or 0))


def printed_cell(
    method: str, load: KnownLoad, quantity: Quantity, found: Measurement, limit: Limit
) -> Cell:
    """Return a cell for a figure that `steelyard run` prints."""
    name = PRINTED[quantity.name]
    return Cell(
        method,
        load.name,
        quantity.name,
        quantity.unit,
        where="printed",
        truth=known_loads.true_value(quantity, found.results),
        measured=found.printed["values"][name],
        limit=limit,
        reason=found.printed["missing"].get(name),
    )


PRINTED = {
    table.CPU.name: "cpu",
    table.READS.name: "rchar_bytes",
    table.WRITES.name: "wchar_bytes",
    table.FETCHED.name: "read_bytes",
    table.STORED.name: "write_bytes",
    table.MEMORY.name: "memory",
    table.ELAPSED.name: "elapsed",
}


def measure_in_container(bench: Bench, launcher: str, refusal: str | None) -> Outcome:
    """Measure a load in a container, after the container alone with no load in it."""
    if refusal is not None:
        raise NotMeasuredError(refusal)
    method, options = f"run --in {launcher}", (f"--in={launcher}", "--sample-rate=10")
    load = known_loads.standard_load()
    empty, found = bench.measure(known_loads.NOTHING, *options), bench.measure(load, *options)
    for quantity in load.quantities:
        if quantity is not table.ELAPSED:
            own = printed_cell(method, load, quantity, empty, Limit()).error or 0
            limit = limits.load_limit(quantity) + limits.container_limit(max(own, 0))
            yield printed_cell(method, load, quantity, found, limit)
    yield from measure_elapsed(bench, method, *options)


# Commands that list the names for a launcher, by kind.
LISTS = {
    "docker": ("docker", "images", "--format", "{{.Repository}}:{{.Tag}}"),
    "podman": ("podman", "images", "--format", "{{.Repository}}:{{.Tag}}"),
    "lxc": ("lxc-ls", "-1"),
}


def list_usable_launchers(requested: Sequence[str] | None) -> Iterator[tuple[str, str | None]]:
    """Yield launchers, each with the reason why it cannot start here or None: the requested ones,
    else the first usable one of each kind."""
    if requested is not None:
        yield from ((text, refusal_reason(text)) for text in requested)
        return
    for kind, what in launcher_grammar.NAMED.items():
        if kind == "bare":
            continue
        why = None
        for text in list_launcher_names(kind) if what else [kind]:
            if (why := refusal_reason(text)) is None:
                yield text, None
                break
        else:
            yield kind, why or f"no {what} is known here: name one: --in={kind}:{what}"


def list_launcher_names(kind: str) -> Iterator[str]:
    """Yield the launchers of the images or containers on this machine."""
    try:
        done = programs.run_quietly(LISTS[kind], LIST_LIMIT_S)
    except (KeyError, OSError, subprocess.TimeoutExpired):
        return
    yield from (f"{kind}:{name}" for name in done.stdout.split() if "<none>" not in name)


def refusal_reason(text: str) -> str | None:
    """Return why the launcher cannot be started here, or None."""
    try:
        launcher_needs.check_on_this_machine(launcher_grammar.parse(text))
    except (ConditionError, MissingError, UsageError) as error:
        return str(error)
    return None
