"""[factors], [baseline] and [place] of a study file."""

from __future__ import annotations

import re

from steelyard.wrappers.study_job import split_options
from steelyard.wrappers.study_reader import Table, shown

Level = str | int | float | bool

# Factors that change the job in a way this version cannot: only their neutral level is there.
RESERVED = {"network": "none", "launcher": "bare", "cache": "warm", "mode": "none"}
MEANT = ("clients", "node_type", *RESERVED)
NODE_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
MAX_CLIENTS = 100_000
PLACE_KEYS = ("slurm", "pbs")


def read_factors(top: Table) -> dict[str, tuple[Level, ...]]:
    """Check [factors]; a factor without a meaning of its own must be a benchmark's parameter."""
    table = top.table("factors")
    factors: dict[str, tuple[Level, ...]] = {}
    for name in table.data:
        levels = tuple(level for level in table.levels(name) if isinstance(level, Level))
        check_levels(table, name, levels)
        factors[name] = levels
    return factors


def check_levels(table: Table, name: str, levels: tuple[Level, ...]) -> None:
    """What a factor with a meaning allows."""
    for level in levels:
        if name in RESERVED and level != RESERVED[name]:
            table.fail(
                name,
                f"{shown(level)}: this version cannot apply {name} conditions; "
                f'the only level it has is "{RESERVED[name]}"',
            )
        if name == "clients" and not (type(level) is int and 1 <= level <= MAX_CLIENTS):
            table.wrong(name, level, f"whole numbers from 1 to {MAX_CLIENTS}")
        if name == "node_type" and not (isinstance(level, str) and NODE_TYPE.fullmatch(level)):
            table.wrong(name, level, "letters, digits, '_' and '-'")


def read_baseline(top: Table, factors: dict[str, tuple[Level, ...]]) -> dict[str, Level]:
    """[baseline]; a factor that it does not name stands at its first level."""
    table = top.table("baseline")
    table.only(factors)
    baseline: dict[str, Level] = {}
    for name, levels in factors.items():
        wanted = table.data.get(name, levels[0])
        same = [level for level in levels if level == wanted and type(level) is type(wanted)]
        if not same:
            listed = ", ".join(shown(level) for level in levels)
            table.wrong(name, wanted, f"one of the factor's levels: {listed}")
        baseline[name] = same[0]
    return baseline


def read_place(top: Table, factors: dict[str, tuple[Level, ...]]) -> dict[str, tuple[str, ...]]:
    """[place.LEVEL]: the options of sbatch for each level of node_type."""
    table = top.table("place")
    levels = [str(level) for level in factors.get("node_type", ())]
    if table.data and not levels:
        table.fail("", "levels of the factor node_type go here, and [factors] has no node_type")
    table.only(levels)
    place: dict[str, tuple[str, ...]] = {level: (f"--constraint={level}",) for level in levels}
    for level in table.data:
        entry = table.table(level)
        entry.only(PLACE_KEYS)
        if "slurm" in entry.data:
            place[level] = split_options(entry, "slurm")
    return place
