"""Fills the table of `steelyard calibrate`: `steelyard run` first, then jobs of Slurm or PBS."""

from __future__ import annotations

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.analysis.sources.pbs import programs
from steelyard.wrappers.base import node
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import slurm as calibrate_slurm
from steelyard.wrappers.calibrate import ways as calibrate_ways
from steelyard.wrappers.calibrate.table import Cell, Table, Trouble

PROGRAM = "steelyard-load"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """The options of the command."""

    schedulers: tuple[str, ...]
    insists: bool  # the scheduler was named: it must be there
    quick: bool
    only: str  # in a way's name
    launchers: list[str] | None
    options: tuple[str, ...]
    record_dirs: tuple[Path, ...]
    patience_s: float


def fill(asked: Asked, place: Path, table: Table, progress: Progress) -> dict[str, Any]:
    """All that is asked for, until Ctrl-C; facts about where and when."""
    program = copied_program(place)
    meta = facts()
    try:
        for name in sorted(asked.schedulers, key=list(WAYS).index):
            meta |= WAYS[name](asked, place, program, table, progress)
    except KeyboardInterrupt:
        table.interrupted = True
    progress("")
    return meta


def copied_program(place: Path) -> Path:
    """Our load, where every node sees it; MissingError where it was not built."""
    found = node.find_program(PROGRAM)
    if found is None:
        raise MissingError(f"{PROGRAM} is missing: {node.remedy(PROGRAM)}")
    shutil.copy2(found, place / PROGRAM)
    return place / PROGRAM


def facts() -> dict[str, Any]:
    """Of this machine."""
    return {
        "when": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "host": platform.node(),
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 1),
    }


def local(
    asked: Asked, place: Path, program: Path, table: Table, progress: Progress
) -> dict[str, Any]:
    """`steelyard run`, then the wire; facts there are none."""
    from steelyard.wrappers.calibrate import energy as calibrate_energy
    from steelyard.wrappers.calibrate import launchers as calibrate_launchers
    from steelyard.wrappers.calibrate import local as calibrate_run
    from steelyard.wrappers.calibrate import wire

    launchers = calibrate_launchers.here(asked.launchers)
    bench = calibrate_run.Bench(place / "run", program)
    ways: list[tuple[str, Callable[[], calibrate_run.Outcome]]] = [
        *calibrate_run.every(bench, launchers.usable, asked.quick),
        ("run: TCP over a wire, conditions", partial(wire.every, bench)),
        ("run: joules", partial(calibrate_energy.every, bench)),
    ]
    for name, start in ways:
        if asked.only not in name:
            continue
        progress(f"{name} ({len(table.cells)} numbers so far)")
        for found in start():
            add(table, found)
    for trouble in launchers.lacking:
        if asked.only in trouble.way:
            add(table, trouble)
    return {}


def slurm(
    asked: Asked, place: Path, program: Path, table: Table, progress: Progress
) -> dict[str, Any]:
    """Jobs; facts about the cluster. Where Slurm was not named, it need not be there."""
    try:
        config = slurm_config()
        calibrate_slurm.check_plugin()
    except MissingError as error:
        if asked.insists:
            raise
        add(table, Trouble("jobs of Slurm", str(error)))
        return {}
    make = calibrate_ways.Maker(program, asked.options)
    ways = [way for way in calibrate_ways.every(make, asked.quick) if asked.only in way.name]
    progress(f"Slurm: {len(ways)} ways, all at once")
    site = calibrate_slurm.Site(place, asked.record_dirs, asked.options, asked.patience_s)
    calibrate_slurm.weigh(site, ways, table)
    return config


def slurm_config() -> dict[str, Any]:
    """What bears on the weighing."""
    from steelyard.wrappers.schedulers.slurm import Slurm

    config = Slurm(Path(), patient=False).config
    return {
        "slurm": config.get("SLURM_VERSION"),
        "proctrack": config.get("ProctrackType"),
        "gather": f"{config.get('JobAcctGatherType')} every {config.get('JobAcctGatherFrequency')} s",
    }


def pbs(
    asked: Asked, place: Path, program: Path, table: Table, progress: Progress
) -> dict[str, Any]:
    """Jobs of Torque or OpenPBS, as above."""
    from steelyard.wrappers.calibrate import pbs as calibrate_pbs
    from steelyard.wrappers.calibrate import pbs_ways
    from steelyard.wrappers.schedulers.pbs import Pbs

    try:
        here = Pbs(place, patient=False)
        cluster = here.cluster()
        calibrate_pbs.check_node_part(here)
    except MissingError as error:
        if asked.insists:
            raise
        add(table, Trouble("jobs of PBS", str(error)))
        return {}
    make = pbs_ways.Maker(program, here.dialect, calibrate_pbs.request_of(here), asked.options)
    ways = [way for way in pbs_ways.every(make, asked.quick) if asked.only in way.name]
    progress(f"{here.dialect.title}: {len(ways)} ways, all at once")
    site = calibrate_slurm.Site(place, asked.record_dirs, asked.options, asked.patience_s)
    calibrate_pbs.weigh(site, ways, table)
    return {"pbs": f"{here.dialect.title} {programs.version()}", "server": cluster}


def add(table: Table, found: Cell | Trouble) -> None:
    """Where it belongs."""
    if isinstance(found, Cell):
        table.cells.append(found)
    else:
        table.troubles.append(found)


# By scheduler, in this order: how its jobs are weighed.
WAYS = {"local": local, "slurm": slurm, "pbs": pbs}
