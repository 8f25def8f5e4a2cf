"""Fills the table of `steelyard calibrate`: `steelyard run` first, then jobs of Slurm or PBS."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import jobs, local_runs, network_link, second_energy_meter
from steelyard.wrappers.calibrate.job_system import JobSystem
from steelyard.wrappers.calibrate.local_runs import NotMeasuredError
from steelyard.wrappers.calibrate.pbs_jobs import PbsJobs
from steelyard.wrappers.calibrate.slurm_jobs import SlurmJobs
from steelyard.wrappers.calibrate.table import Table, Trouble

PROGRAM = "steelyard-load"
SYSTEMS: dict[str, type[JobSystem]] = {"slurm": SlurmJobs, "pbs": PbsJobs}
LOCAL = "local"
SCHEDULERS = (LOCAL, *SYSTEMS)


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    scheduler: str | None  # None: all that are installed here
    quick: bool
    only: str  # part of a launch method's name
    containers: list[str] | None
    options: tuple[str, ...]
    record_dirs: tuple[Path, ...]
    patience_s: float


def fill_table(
    request: Request, folder: Path, table: Table, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Measure everything requested until Ctrl-C; return facts about the machine and the time."""
    found = programs.find_program(PROGRAM)
    if found is None:
        raise MissingError(f"{PROGRAM} is missing: {programs.remedy(PROGRAM)}")
    program = folder / PROGRAM  # a folder that every node sees
    shutil.copy2(found, program)
    facts = {
        "when": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "host": platform.node(),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }
    try:
        if request.scheduler in (None, LOCAL):
            measure_local_runs(request, local_runs.Bench(folder / "run", program), table, progress)
        for name, kind in SYSTEMS.items():
            if request.scheduler in (None, name):
                system = kind(program, request.options)
                facts |= measure_jobs(request, system, folder / name, table, progress)
    except KeyboardInterrupt:
        table.interrupted = True
    progress("")
    return facts


def measure_local_runs(
    request: Request, bench: local_runs.Bench, table: Table, progress: Callable[[str], None]
) -> None:
    """Measure `steelyard run`, then the network link, then energy."""
    for name, run in (
        *local_runs.list_methods(bench, request.containers, request.quick),
        (network_link.METHOD, lambda: network_link.measure(bench)),
        (second_energy_meter.METHOD, lambda: second_energy_meter.measure(bench)),
    ):
        if request.only not in name:
            continue
        progress(f"{name} ({len(table.cells)} numbers so far)")
        try:
            table.add_outcome(run())
        except NotMeasuredError as error:
            table.troubles.append(Trouble(name, str(error), error.failed))


def measure_jobs(
    request: Request,
    system: JobSystem,
    folder: Path,
    table: Table,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Measure jobs and return facts about the batch system. It may be missing unless it was
    named."""
    try:
        facts = system.check()
    except MissingError as error:
        if request.scheduler is not None:
            raise
        table.troubles.append(Trouble(f"jobs of {system.title}", str(error)))
        return {}
    methods = [one for one in system.list_methods(request.quick) if request.only in one.name]
    progress(f"{system.title}: {len(methods)} launch methods, all at once")
    site = jobs.Site(system, folder, request.record_dirs, request.patience_s)
    jobs.measure(site, methods, table)
    return dict(facts)
