"""[factors], [baseline], [place] and [study] scaling of a study file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from steelyard.analysis.base.level_names import NODE, has_names
from steelyard.analysis.sources.study_files import SCALING_KINDS, Scaling
from steelyard.jobscripts import registry
from steelyard.jobscripts.registry import Benchmark
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import UsageError, did_you_mean
from steelyard.wrappers.launchers import launcher_grammar
from steelyard.wrappers.launchers.launcher_grammar import Launcher
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.study.job_settings import ALLOCATION, MOST_ALLOCATED, Job, split_options
from steelyard.wrappers.study.levels import EACH, Drawn, read_levels
from steelyard.wrappers.study.table_reader import Table

Level = str | int | float | bool

# Clients run at the same time, or each starts when the one before it has ended.
MODES = ("parallel", "sequential")
MEANT = (
    *("clients", "node", "node_type", "kernel_release", "network", "launcher", "cache", "mode"),
    *ALLOCATION,
)
# Factors whose levels select where a job runs, by [place.LEVEL].
PLACED = ("node_type", "kernel_release")
# One node's name in the scheduler's notation; not a list.
NODE_NAME = re.compile(r"(?=.*[A-Za-z])[A-Za-z0-9][A-Za-z0-9_.-]*")  # PBS takes digits for a count
NODE_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# A prefix of the output of uname -r, with at least one dot: 6.1, 6.1.0-18-amd64.
KERNEL_RELEASE = re.compile(r"[0-9]+\.[0-9]+[A-Za-z0-9._+~-]*")
MAX_CLIENTS = 100_000
WITHIN = "within"  # key of [baseline]


def read_factors(top: Table, seed: int, recorded_levels: Drawn) -> dict[str, tuple[Level, ...]]:
    """Read and check [factors]; for `drawn` see levels.read_levels."""
    table = top.table("factors")
    factors: dict[str, tuple[Level, ...]] = {}
    for name in table.data:
        if name == WITHIN:
            table.fail(name, "a key of [baseline] has this name: choose another one")
        found = read_levels(table, name, seed, recorded_levels)
        levels = tuple(level for level in found if isinstance(level, Level))
        check_levels(table, name, levels)
        factors[name] = levels
    return factors


def check_levels(table: Table, name: str, levels: tuple[Level, ...]) -> None:
    """Check the levels of a factor with a predefined meaning."""
    if name == "network":
        check_network(table, levels)
    if name == "launcher":
        check_launchers(table, levels)
    for level in levels:
        if name == "cache" and not netem.is_cache_level(level):
            check_cache(table, level)
        if name == "clients" and not (type(level) is int and 1 <= level <= MAX_CLIENTS):
            table.wrong(name, level, f"whole numbers from 1 to {MAX_CLIENTS}")
        if name in ALLOCATION and not (type(level) is int and 1 <= level <= MOST_ALLOCATED):
            table.wrong(name, level, f"whole numbers from 1 to {MOST_ALLOCATED}")
        if name == NODE and not (isinstance(level, str) and NODE_NAME.fullmatch(level)):
            table.wrong(name, level, 'the name of one node, as the scheduler has it, such as "n1"')
        if name == "node_type" and not (isinstance(level, str) and NODE_TYPE.fullmatch(level)):
            table.wrong(name, level, "letters, digits, '_' and '-'")
        if name == "kernel_release" and not is_release(level):
            table.wrong(name, level, 'the beginning of what uname -r says, such as "6.1"')


def is_release(level: Level) -> bool:
    """Return whether the level can be compared with a running kernel."""
    return isinstance(level, str) and KERNEL_RELEASE.fullmatch(level) is not None


def has_meaning(name: str, benchmarks: Iterable[Benchmark]) -> bool:
    """Return whether a factor is Steelyard's own, not a parameter of the benchmarks.

    A benchmark that is the only client of its job has its own parameters `clients` and `mode`."""
    if name in ("clients", "mode"):
        return not all(benchmark.span == "job" for benchmark in benchmarks)
    return name in MEANT


def check_clients(top: Table, job: Job, factors: Collection[str]) -> None:
    """Check that a job with the factor clients has a node for each client, and no other number of
    nodes."""
    allowed = "1 with the factor clients: a job has one node per client"
    if job.nodes != 1:
        top.table("job").wrong("nodes", job.nodes, allowed)
    if "nodes" in factors:
        top.table("factors").fail("nodes", f"leave it out, or clients: allowed is {allowed}")


def check_node(top: Table, job: Job, factors: Mapping[str, tuple[Level, ...]]) -> None:
    """Check that with the factor node every job has exactly the node of its level."""
    each = top.table("factors").data[NODE] == EACH
    apart = PLACED if each else ()  # the nodes of these factors' levels are not known
    more = next((name for name in ("clients", "nodes", *apart) if name in factors), None)
    if more is not None:
        remedy = ', or name the nodes instead of "each"' if more in apart else ""
        top.table("factors").fail(
            NODE, f"each run is on the one node of its level: leave out the factor {more}{remedy}"
        )
    if job.nodes != 1:
        top.table("job").wrong(
            "nodes", job.nodes, "1 with the factor node: each run is on one node"
        )


def check_mode(top: Table, levels: tuple[Level, ...], benchmarks: Iterable[Benchmark]) -> None:
    """Check the levels of the clients' mode, and that no benchmark of the study has its own
    mode."""
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
    """Check that network levels are specifications or "none"."""

    def canonical(level: str) -> str:
        return level if level == netem.NONE else netem.parse_specification(level).requested

    check_texts(
        table, "network", levels, 'a specification such as "delay=50ms", or "none"', canonical
    )


def check_launchers(table: Table, levels: tuple[Level, ...]) -> None:
    """Check that launcher levels follow the grammar of launchers."""

    def canonical(level: str) -> str:
        return launcher_grammar.parse(level).text

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
    """Check that no two texts have one meaning: they would be one condition under two names."""
    names: dict[str, Level] = {}
    for level in levels:
        if not isinstance(level, str):
            table.wrong(name, level, allowed)
        try:
            meaning = canonical(level)
        except UsageError as error:
            table.fail(name, f"{shown(level)}: {error}")
        if meaning in names:
            table.fail(
                name,
                f"{shown(level)} asks for the same as {shown(names[meaning])}: a level is named once",
            )
        names[meaning] = level


def check_span(
    top: Table, factors: dict[str, tuple[Level, ...]], benchmarks: Collection[Benchmark], nodes: int
) -> None:
    """Check what a launcher needs of the job: containers that communicate belong to one program,
    and network conditions apply to them."""
    wide = [benchmark.name for benchmark in benchmarks if benchmark.span == "job"]
    without_mpi = [one.name for one in benchmarks if not has_mpi(one)]
    one_of_many = nodes > 1 and not ("clients" in factors and has_meaning("clients", benchmarks))
    for level in factors.get("launcher", ()):
        launcher = launcher_grammar.parse(str(level))
        why = None
        if launcher.across and without_mpi:
            why = (
                f"ranks=across puts one MPI program into all containers, and {without_mpi[0]} starts "
                "none (those with a parameter mpirun do): leave it out"
            )
        elif not launcher.across and launcher.containers > 1 and (wide or one_of_many):
            who = f"the benchmark {wide[0]}" if wide else f"one client of {nodes} nodes"
            why = (
                f"{who} starts programs on all nodes of the job itself, and has one container on "
                "each: add ranks=across, which puts one MPI program into all containers of all "
                "nodes, or leave containers= out, or give the factor clients (a client per node) "
                "to a benchmark that can have it"
            )
        elif refused := find_refused_condition(launcher, factors.get("network", ())):
            why = refused
        elif not launcher.across and launcher.network != "host" and one_of_many:
            why = (
                f"containers on {nodes} nodes reach each other by the nodes' own network only: add "
                "ranks=across, which gives them one of their own, or leave network= out"
            )
        if why is not None:
            top.table("factors").fail("launcher", f"{shown(level)}: {why}")


def find_refused_condition(launcher: Launcher, conditions: tuple[Level, ...]) -> str | None:
    """Return why the first condition that cannot apply to the launcher's containers cannot; else
    None."""
    for condition in conditions:
        why = launcher_grammar.condition_conflict(launcher, str(condition))
        if why is not None:
            return f"network = {shown(condition)}: {why}"
    return None


def has_mpi(benchmark: Benchmark) -> bool:
    """Return whether the benchmark's job script starts MPI ranks (jobscripts/lib/mpi.sh)."""
    return "mpirun" in benchmark.parameters


def check_cache(table: Table, level: Level) -> NoReturn:
    """Raise UsageError for a level of `cache` that cannot be applied to a node."""
    if level == "direct":
        table.fail(
            "cache",
            '"direct": going around the cache is up to the benchmark, not to the node: '
            f"give direct = true to {', '.join(benchmarks_with('direct'))}",
        )
    table.wrong(
        "cache", level, '"cold", "warm", or "cold:cvmfs=300" (MB that CVMFS\' cache may have)'
    )


def benchmarks_with(parameter: str) -> list[str]:
    """Return the names of the benchmarks with that parameter."""
    return [name for name in registry.names() if parameter in registry.load(name).parameters]


def read_baseline(top: Table, factors: dict[str, tuple[Level, ...]]) -> dict[str, Level]:
    """Read [baseline]: levels by name or value; a factor that is not in it has its first level.

    Factors of `within` are omitted: each of their levels has its own baseline. `node` is omitted
    unless [baseline] names it: nodes are compared with their median."""
    table = top.table("baseline")
    table.only((*factors, WITHIN) if factors else ())
    within = read_within(table, factors)
    baseline: dict[str, Level] = {}
    for name, levels in factors.items():
        if name in within or (name == NODE and name not in table.data):
            continue
        wanted = table.data.get(name, levels[0])
        names = top.table("factors").data.get(name)
        if isinstance(names, dict) and has_names(names) and isinstance(wanted, str):
            wanted = names.get(wanted, wanted)
        same = [level for level in levels if level == wanted and type(level) is type(wanted)]
        if not same and name == NODE and levels == (EACH,):
            continue  # checked when the nodes are drawn
        if not same:
            listed = ", ".join(shown(level) for level in levels)
            table.wrong(name, wanted, f"one of the factor's levels: {listed}")
        baseline[name] = same[0]
    return baseline


def read_within(table: Table, factors: dict[str, tuple[Level, ...]]) -> tuple[str, ...]:
    """Read [baseline] within: factors whose levels are each compared only inside themselves."""
    within = table.words(WITHIN, ".+", "the name of a factor")
    for name in within:
        if name not in factors:
            table.fail(WITHIN, f"{name} is no factor{did_you_mean(name, factors)}")
        if name in table.data:
            table.fail(WITHIN, f"{name} has a level in [baseline], too: leave one of the two out")
    if within and all(name in within for name, levels in factors.items() if len(levels) > 1):
        table.fail(
            WITHIN,
            "no other factor has several levels, so that nothing is compared: leave a factor out",
        )
    return within


def read_place(
    top: Table, factors: dict[str, tuple[Level, ...]]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Read [place.LEVEL]: for each level of node_type and kernel_release its options, by
    scheduler."""
    table = top.table("place")
    levels = [str(level) for name in PLACED for level in factors.get(name, ())]
    if table.data and not levels:
        table.fail(
            "",
            "levels of the factors node_type and kernel_release go here, and [factors] has neither",
        )
    table.only(levels)
    entries = {level: table.table(level) for level in levels}
    return {
        level: {scheduler: split_options(entry, scheduler) for scheduler in entry.data}
        for level, entry in entries.items()
    }


Factors = Mapping[str, tuple[Level, ...]]
SCALINGS = '"strong", "weak", or { kind = "strong", over = ["threads"] }'


def read_scaling(head: Table, factors: Factors) -> Scaling | None:
    """Check `scaling` of [study]; return None when absent.

    A condition's scale is the product of its levels of the factors `over`: by default those of
    nodes, tasks_per_node and cpus_per_task that the study has."""
    value = head.data.get("scaling")
    if value is None:
        return None
    if not isinstance(value, str | dict):
        head.wrong("scaling", value, SCALINGS)
    table = Table(head.file, {"kind": value}, head.prefix + "scaling.")
    if isinstance(value, dict):
        table = head.table("scaling")
    table.only(("kind", "over"))
    kind = table.data.get("kind")
    if kind not in SCALING_KINDS:
        head.wrong("scaling", value, SCALINGS)
    over = default_factors(head, factors) if "over" not in table.data else read_factor_names(table)
    check_scaling_levels(head, over, factors)
    return Scaling(str(kind), over)


def default_factors(head: Table, factors: Factors) -> tuple[str, ...]:
    """Return the study's factors that change a job's allocation."""
    found = tuple(name for name in ALLOCATION if name in factors)
    if not found:
        head.fail(
            "scaling",
            f"[factors] has none of {', '.join(ALLOCATION)}: name the factors whose product is the "
            'scale, such as { kind = "strong", over = ["threads"] }',
        )
    return found


def read_factor_names(table: Table) -> tuple[str, ...]:
    """Return the factors that `over` names."""
    over = table.data["over"]
    names = [over] if isinstance(over, str) else over
    if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
        table.wrong("over", over, 'a factor or a list of them, such as ["threads"]')
    if len(set(names)) < len(names):
        table.wrong("over", over, "each factor once")
    return tuple(names)


def check_scaling_levels(head: Table, over: Sequence[str], factors: Factors) -> None:
    """Check that levels are whole numbers and that the study has several scales."""
    for name in over:
        if name not in factors:
            head.fail("scaling", f"{name} is no factor{did_you_mean(name, factors)}")
        for level in factors[name]:
            if type(level) is not int or level < 1:
                head.fail(
                    "scaling",
                    f"the factor {name} has the level {shown(level)}: expected whole numbers from "
                    "1, of which a scale is made",
                )
    if math.prod(len(factors[name]) for name in over) < 2:
        head.fail("scaling", f"{', '.join(over)}: one level only; expected two scales at least")
