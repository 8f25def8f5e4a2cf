"""Ways without a scheduler: `steelyard run`, at several rates and in each launcher that is here."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.wrappers.base import programs
from steelyard.wrappers.calibrate import limits, loads, table, ways
from steelyard.wrappers.calibrate.loads import Load, Result
from steelyard.wrappers.calibrate.table import Cell, Limit, Quantity, Trouble
from steelyard.wrappers.schedulers import known

TRIES = 3  # for times only: a busy machine makes them longer, never shorter
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Weighing:
    """One `steelyard run`: what its loads counted, its record, and the figures it printed."""

    results: Sequence[Result]
    record: dict[str, Any]
    printed: dict[str, Any]  # one of `runs` of --json


@dataclass(frozen=True)
class Bench:
    """Where loads are run."""

    folder: Path
    program: Path
    prefix: tuple[str, ...] = ()  # before the command, to enter a network namespace

    def weigh(self, load: Load, *options: str) -> Weighing | Trouble:
        """`steelyard run` around the load; Trouble with its last words when it fails."""
        place = self.folder / f"run-{len(list(self.folder.glob('run-*'))):03}"
        place.mkdir(parents=True)
        program = place / self.program.name  # a container has this folder, and not those above
        program.hardlink_to(self.program)
        argv = [*self.prefix, sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli"]
        argv += ["run", "--json", "-o", "weighed", *options]
        argv += ["--", str(program), ways.RESULT, *load.actions]
        done = programs.answer(argv, PATIENCE_S, environment(), place)
        paths = list(place.glob("weighed/run-001/*/*.json"))
        if done.returncode != 0 or not paths:
            words = done.stderr.strip().splitlines() or ["without a word"]
            return Trouble("", words[-1].removeprefix("steelyard run: "), done.returncode != 3)
        record = json.loads(paths[0].read_bytes())
        return Weighing(
            loads.results(place), record, json.loads(done.stdout)["commands"][0]["runs"][0]
        )


def environment() -> dict[str, str]:
    """Ours, as outside any job."""
    jobs = tuple(prefix for one in known.kinds() for prefix in one.job_variables)
    return {key: value for key, value in os.environ.items() if not key.startswith(jobs)}


Outcome = Iterator[Cell | Trouble]


def every(
    bench: Bench, launchers: Sequence[str], quick: bool
) -> Iterator[tuple[str, Callable[[], Outcome]]]:
    """Ways by name, in the order of the table; each is run when it is called."""
    for load in (loads.standard(), *loads.LOADS):
        yield f"run: {load.name}", partial(plain, bench, "run", load)
    yield f"run: {loads.SLEEP.name}", partial(elapsed, bench)
    if shutil.which("mpirun"):
        yield "run: MPI", partial(plain, bench, "run", ways.mpi(bench.program))
    for rate in (0, 1, 100) if quick else (0, 1, 10, 100):
        load = loads.standard(2.2 if rate == 1 else loads.HELD_S)
        way = f"run, {rate} samples a second"
        yield way, partial(plain, bench, way, load, f"--sample-rate={rate}")
    for launcher in launchers:
        yield f"run --in {launcher}", partial(contained, bench, launcher)


def plain(bench: Bench, way: str, load: Load, *options: str) -> Outcome:
    """Every quantity but time, which has a load of its own."""
    found = bench.weigh(load, *options)
    if isinstance(found, Trouble):
        yield Trouble(f"{way}: {load.name}", found.why, found.broken)
        return
    for quantity in load.quantities:
        if quantity is not table.ELAPSED:
            yield cell(way, load, quantity, found, limits.of_run(quantity))


def cell(way: str, load: Load, quantity: Quantity, found: Weighing, limit: Limit) -> Cell:
    """From the record."""
    return Cell(
        way=way,
        load=load.name,
        quantity=quantity.name,
        unit=quantity.unit,
        where=table.RECORD,
        truth=loads.truth(quantity, found.results),
        weighed=table.number_at(found.record, quantity.path),
        limit=limit,
        reason=table.reason_at(found.record, quantity.path)
        or table.incomplete_reason(found.record)
        or table.unseen_reason(found.record, load.unwaited),
    )


def elapsed(bench: Bench, way: str = "run", *options: str) -> Outcome:
    """The figure that `steelyard run` prints; the best of some tries."""
    tries = [bench.weigh(loads.SLEEP, *options) for _ in range(TRIES)]
    good = [found for found in tries if isinstance(found, Weighing)]
    if not good:
        (first, *_) = tries
        assert isinstance(first, Trouble)
        yield Trouble(f"{way}: {loads.SLEEP.name}", first.why, first.broken)
        return
    yield min((elapsed_cell(way, found) for found in good), key=lambda one: abs(one.error or 0))


def elapsed_cell(way: str, found: Weighing) -> Cell:
    """What was printed, which in a container is not the record's."""
    return Cell(
        way=way,
        load=loads.SLEEP.name,
        quantity=table.ELAPSED.name,
        unit="s",
        where="printed",
        truth=loads.truth(table.ELAPSED, found.results),
        weighed=found.printed["values"]["elapsed"],
        limit=limits.START,
        reason=found.printed["missing"].get("elapsed"),
    )


PRINTED = {
    table.CPU.name: "cpu",
    table.READS.name: "read calls",
    table.WRITES.name: "write calls",
    table.FETCHED.name: "from storage",
    table.STORED.name: "to storage",
    table.MEMORY.name: "memory",
}


def contained(bench: Bench, launcher: str) -> Outcome:
    """In a container; what it takes to start one is weighed first, with no load in it."""
    way, options = f"run --in {launcher}", (f"--in={launcher}", ways.RATE)
    load = loads.standard()
    tare, found = bench.weigh(loads.NOTHING, *options), bench.weigh(load, *options)
    for one in (tare, found):
        if isinstance(one, Trouble):
            yield Trouble(way, one.why, one.broken)
            return
    assert isinstance(tare, Weighing)
    assert isinstance(found, Weighing)
    for quantity in load.quantities:
        if quantity is not table.ELAPSED:
            yield contained_cell(way, load, quantity, tare, found)
    yield from elapsed(bench, way, *options)


def contained_cell(
    way: str, load: Load, quantity: Quantity, tare: Weighing, found: Weighing
) -> Cell:
    """What `steelyard run` prints."""
    name = PRINTED[quantity.name]
    own = (tare.printed["values"][name] or 0) - loads.truth(quantity, tare.results)
    return Cell(
        way=way,
        load=load.name,
        quantity=quantity.name,
        unit=quantity.unit,
        where="printed",
        truth=loads.truth(quantity, found.results),
        weighed=found.printed["values"][name],
        limit=limits.of_run(quantity) + limits.of_container(max(own, 0)),
        reason=found.printed["missing"].get(name),
    )
