"""[factors], [baseline] and [place] of a study file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import Benchmark
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.study.job import split_options
from steelyard.wrappers.study.reader import Table

Level = str | int | float | bool

# Clients side by side, or each when the one before it has ended.
MODES = ("parallel", "sequential")
MEANT = ("clients", "node_type", "network", "launcher", "cache", "mode")
NODE_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
MAX_CLIENTS = 100_000


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
    if name == "network":
        check_network(table, levels)
    if name == "launcher":
        check_launchers(table, levels)
    for level in levels:
        if name == "cache" and level not in netem.CACHES:
            check_cache(table, level)
        if name == "clients" and not (type(level) is int and 1 <= level <= MAX_CLIENTS):
            table.wrong(name, level, f"whole numbers from 1 to {MAX_CLIENTS}")
        if name == "node_type" and not (isinstance(level, str) and NODE_TYPE.fullmatch(level)):
            table.wrong(name, level, "letters, digits, '_' and '-'")


def has_meaning(name: str, benchmarks: Iterable[Benchmark]) -> bool:
    """Whether a factor is Steelyard's own, not a parameter of the benchmarks.

    `mode` is about clients: a benchmark that is the one client of its job has a `mode` of its own.
    """
    if name == "mode":
        return not all(benchmark.span == "job" for benchmark in benchmarks)
    return name in MEANT


def check_mode(top: Table, levels: tuple[Level, ...], benchmarks: Iterable[Benchmark]) -> None:
    """The clients' mode, which no benchmark of the study may have otherwise."""
    table = top.table("factors")
    for level in levels:
        if level not in MODES:
            table.wrong("mode", level, '"parallel" or "sequential"')
    wide = sorted({benchmark.name for benchmark in benchmarks if benchmark.span == "job"})
    if wide:
        table.fail(
            "mode",
            f"{', '.join(wide)} works on all nodes of a job at once and has a mode of its own: "
            "give it a study of its own",
        )


def check_network(table: Table, levels: tuple[Level, ...]) -> None:
    """Specifications or "none"."""

    def canonical(level: str) -> str:
        return level if level == netem.NONE else netem.parse(level).requested

    check_texts(
        table, "network", levels, 'a specification such as "delay=50ms", or "none"', canonical
    )


def check_launchers(table: Table, levels: tuple[Level, ...]) -> None:
    """Launchers by their grammar."""

    def canonical(level: str) -> str:
        return launchers.parse(level).text

    check_texts(
        table, "launcher", levels, '"bare", or a launcher such as "podman:debian:12"', canonical
    )


def check_texts(
    table: Table,
    name: str,
    levels: tuple[Level, ...],
    allowed: str,
    canonical: Callable[[str], str],
) -> None:
    """Two texts of one meaning would be one condition under two names."""
    seen: dict[str, Level] = {}
    for level in levels:
        if not isinstance(level, str):
            table.wrong(name, level, allowed)
        try:
            meaning = canonical(level)
        except UsageError as error:
            table.fail(name, f"{shown(level)}: {error}")
        if meaning in seen:
            table.fail(
                name,
                f"{shown(level)} asks for the same as {shown(seen[meaning])}: a level is named once",
            )
        seen[meaning] = level


def check_span(
    top: Table, factors: dict[str, tuple[Level, ...]], benchmarks: Iterable[Benchmark], nodes: int
) -> None:
    """One client of several nodes has one container on each, which meet on the nodes' network."""
    wide = [benchmark.name for benchmark in benchmarks if benchmark.span == "job"]
    one_of_many = nodes > 1 and "clients" not in factors
    for level in factors.get("launcher", ()):
        launcher = launchers.parse(str(level))
        if launcher.containers > 1 and (wide or one_of_many):
            who = f"the benchmark {wide[0]}" if wide else f"one client of {nodes} nodes"
            top.table("factors").fail(
                "launcher",
                f"{shown(level)}: {who} starts programs on all nodes of the job itself, and has "
                "one container on each: leave containers= out, or give the factor clients "
                "(a client per node) to a benchmark that can have it",
            )
        if launcher.network != "host" and one_of_many:
            top.table("factors").fail(
                "launcher",
                f"{shown(level)}: containers on {nodes} nodes reach each other by the nodes' own "
                "network only: leave network= out, or [job] nodes = 1",
            )


def check_cache(table: Table, level: Level) -> NoReturn:
    """Only what can be done to a node is a level."""
    if level == "direct":
        table.fail(
            "cache",
            '"direct": going around the cache is up to the benchmark, not to the node: '
            f"give direct = true to {', '.join(having('direct'))}",
        )
    table.wrong("cache", level, '"cold" or "warm"')


def having(parameter: str) -> list[str]:
    """The benchmarks with that parameter."""
    return [name for name in registry.names() if parameter in registry.load(name).parameters]


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


def read_place(
    top: Table, factors: dict[str, tuple[Level, ...]]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """[place.LEVEL]: for each level of node_type the options, by the scheduler whose they are."""
    table = top.table("place")
    levels = [str(level) for level in factors.get("node_type", ())]
    if table.data and not levels:
        table.fail("", "levels of the factor node_type go here, and [factors] has no node_type")
    table.only(levels)
    entries = {level: table.table(level) for level in levels}
    return {
        level: {scheduler: split_options(entry, scheduler) for scheduler in entry.data}
        for level, entry in entries.items()
    }
