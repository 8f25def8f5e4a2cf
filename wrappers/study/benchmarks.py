"""[[benchmark]] of a study file: expands lists of parameters into variants.

A factor applies to a variant if it has a predefined meaning, is a parameter, or is `{name}` in a
command or its variables. A variant is measured once for all factors that do not apply, and not
compared. A study that makes `nodes`, `tasks_per_node` or `cpus_per_task` a factor changes the job,
and with it the number of MPI ranks, HPL's grid of processes and the threads of each rank."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.base.level_names import format_level
from steelyard.jobscripts import placeholders, registry
from steelyard.jobscripts.registry import Benchmark
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import UsageError, did_you_mean
from steelyard.wrappers.study.factors import MEANT, Level, check_mode, has_meaning
from steelyard.wrappers.study.job_settings import ALLOCATION, Job
from steelyard.wrappers.study.table_reader import Table

GRID = ("p", "q")  # HPL's rows and columns of processes


def job_parameters(
    benchmark: Benchmark, job: Job, levels: Mapping[str, object], given: Collection[str]
) -> dict[str, int]:
    """Return the parameters that follow from the job of a run with these levels, without those in
    `given`.

    ranks (or p × q): nodes × tasks_per_node, where one of ALLOCATION is a factor. threads:
    cpus_per_task, where it is known."""
    own = job.apply_levels(levels)
    found = {} if own.cpus_per_task is None else {"threads": own.cpus_per_task}
    if any(name in levels for name in ALLOCATION):
        ranks = own.nodes * (own.tasks_per_node or 1)
        found["ranks"] = ranks
        if not any(name in given for name in GRID):
            found |= dict(zip(GRID, find_squarest_grid(ranks), strict=True))
    return {
        name: value
        for name, value in found.items()
        if name in benchmark.parameters and name not in given
    }


def find_squarest_grid(ranks: int) -> tuple[int, int]:
    """Return the rows × columns of the most square grid with no more rows than columns, which HPL's
    authors advise (netlib.org/benchmark/hpl/faqs.html: "P and Q approximately equal, Q slightly
    larger")."""
    rows = next(rows for rows in range(math.isqrt(ranks), 0, -1) if ranks % rows == 0)
    return rows, ranks // rows


Factors = Mapping[str, tuple[Level, ...]]


@dataclass(frozen=True)
class Variant:
    """A benchmark with one value of each parameter that the study gives, as it writes them."""

    benchmark: registry.Benchmark
    given: tuple[tuple[str, Level], ...]
    label: str  # `filesystem test=large_file_copy`: what distinguishes it
    job: Job  # [job], whose size decides parameters that the study omits
    factors: tuple[str, ...] = ()  # factors that apply to it
    first: tuple[tuple[str, Level], ...] = ()  # their first levels

    def values(self) -> dict[str, Level]:
        """Return all parameters under the first level of every factor."""
        return self.values_for_levels(dict(self.first))

    def values_for_levels(self, levels: Mapping[str, Level]) -> dict[str, Level]:
        """Return all parameters with defaults, sizes in bytes. Raises UsageError in one line."""
        known = self.benchmark.parameters
        free = {name: level for name, level in levels.items() if self.has_parameter(name)}
        given = {**dict(self.given), **free}
        by_job = job_parameters(self.benchmark, self.job, levels, given)
        try:
            checked = self.benchmark.check_parameters({**by_job, **given})
            return {
                name: placeholders.fill(known[name], value, levels)
                for name, value in checked.items()
            }
        except registry.ParameterError as error:
            raise UsageError(str(error), part=error.parameter) from error
        except ValueError as error:
            raise UsageError(f"{self.label}: {error}") from error

    def has_parameter(self, factor: str) -> bool:
        """Return whether a factor's levels are values of a parameter."""
        return factor in self.benchmark.parameters and not has_meaning(factor, [self.benchmark])

    def list_placeholders(self, factors: Factors) -> set[str]:
        """Return the names in braces in its values and in the levels of its parameters."""
        return {
            name
            for key, parameter in self.benchmark.parameters.items()
            for value in (*factors.get(key, ()), *(v for k, v in self.given if k == key))
            for name in placeholders.names_in(parameter, value)
        }


def list_applicable_factors(
    variant: Variant, factors: Factors, used: Iterable[registry.Benchmark]
) -> list[str]:
    """Return the factors that apply to this variant, in their order."""
    used = list(used)
    braces = variant.list_placeholders(factors)
    return [
        name
        for name in factors
        if has_meaning(name, used) or variant.has_parameter(name) or name in braces
    ]


def variants_without_factor(factors: Factors, variants: Sequence[Variant]) -> dict[str, list[str]]:
    """Return, for each factor that does not apply to all variants, the variants without it."""
    found = {name: [one.label for one in variants if name not in one.factors] for name in factors}
    return {name: labels for name, labels in found.items() if labels}


def explain_unused_factor(name: str, factors: Factors, variants: Sequence[Variant]) -> str:
    """Explain why a factor applies to nothing, and suggest a likely name."""
    benchmarks = {one.benchmark.name: one.benchmark for one in variants}
    braces = set().union(*(one.list_placeholders(factors) for one in variants)) - set(factors)
    known = [*MEANT, *(key for one in benchmarks.values() for key in one.parameters), *braces]
    commands = [
        name
        for name, one in benchmarks.items()
        if any(parameter.type in placeholders.KINDS for parameter in one.parameters.values())
    ]
    where = f", and {{{name}}} stands in no command or env of {', '.join(commands)}"
    to_do = (
        f": write {{{name}}} where its level belongs"
        if commands
        else f"; `steelyard list {next(iter(benchmarks))}` has its parameters"
    )
    return (
        f"no factor with a meaning ({', '.join(MEANT)}) and no parameter of "
        f"{', '.join(benchmarks)}{where if commands else ''}{did_you_mean(name, known) or to_do}"
    )


TABLES = ("figures", "environment")  # parameter types that are tables, stored as JSON text


def read_variants(top: Table, factors: Factors, job: Job) -> tuple[Variant, ...]:
    """Check [[benchmark]] and expand its lists. Raises UsageError for equal variants."""
    tables = top.tables("benchmark")
    if not tables:
        top.fail(
            "benchmark",
            f"missing: give at least one [[benchmark]] with use = {format_benchmark_names()}",
        )
    variants: dict[str, Variant] = {}
    found = [(table, one) for table in tables for one in read_benchmark(table, factors, job)]
    used = list({one.benchmark.name: one.benchmark for _, one in found}.values())
    for table, bare in found:
        variant = add_factors(top, table, bare, factors, used)
        # Figures are read from the output of the same run, so they do not make a variant different.
        known = variant.benchmark.parameters
        values = {k: v for k, v in variant.values().items() if known[k].is_executed}
        key = f"{variant.benchmark.name} {sorted(values.items())}"
        if variants.setdefault(key, variant) is not variant:
            table.fail("use", f"'{variant.label}' is in the study twice: leave one out")
    check_span(top, factors, list(variants.values()))
    check_free_factors(top, factors, list(variants.values()))
    for table, bare in found:
        check_braces(table, bare, factors)
    return tuple(add_label(variant, list(variants.values())) for variant in variants.values())


def add_label(variant: Variant, variants: list[Variant]) -> Variant:
    """Add a label with only those parameters that differ between variants of the benchmark."""
    fellows = [other.values() for other in variants if other.benchmark == variant.benchmark]
    own, written = variant.values(), dict(variant.given)
    values = [
        f"{key}={format_level(written.get(key, value))}"
        for key, value in own.items()
        if any(other[key] != value for other in fellows) and not is_hidden(variant, key, fellows)
    ]
    return replace(variant, label=" ".join([variant.benchmark.name, *values]))


def is_hidden(variant: Variant, key: str, fellows: list[dict[str, Level]]) -> bool:
    """Return whether a label omits a parameter: one that is only noted, or a table, which is too
    long where other parameters distinguish the variants."""
    if variant.benchmark.parameters[key].noted:
        return True
    if variant.benchmark.parameters[key].type not in TABLES:
        return False
    rest = [{name: value for name, value in each.items() if name != key} for each in fellows]
    return all(one not in rest[:i] for i, one in enumerate(rest))


def format_benchmark_names() -> str:
    """Return the names of all benchmarks, as text."""
    return " or ".join(shown(name) for name in registry.names())


def read_benchmark(table: Table, factors: Factors, job: Job) -> list[Variant]:
    """Read one [[benchmark]] and return its variants."""
    name = table.data.get("use")
    if name is None:
        table.fail("use", f"missing: allowed is {format_benchmark_names()}")
    if not isinstance(name, str) or name not in registry.names():
        hint = did_you_mean(name, registry.names()) if isinstance(name, str) else ""
        table.wrong("use", name, format_benchmark_names() + hint)
    benchmark = registry.load(name)
    table.only(["use", *benchmark.parameters])
    given = {key: value for key, value in table.data.items() if key != "use"}
    for key in given:
        if key in factors:
            table.fail(key, "is a factor too: give it in one place only")
    check_required(table, benchmark, factors)
    choices = [[(key, level) for level in read_values(table, benchmark, key)] for key in given]
    return [
        Variant(
            benchmark,
            chosen,
            " ".join([name, *(f"{key}={format_level(v)}" for key, v in chosen)]),
            job,
        )
        for chosen in itertools.product(*choices)
    ]


def check_required(table: Table, benchmark: registry.Benchmark, factors: Factors) -> None:
    """Check that required parameters are in the table or are factors."""
    for name, parameter in benchmark.parameters.items():
        if parameter.required and name not in factors and table.data.get(name, "") == "":
            table.fail(
                name,
                f"missing: {benchmark.name} needs it here, or a list of them in [factors]: "
                f"{parameter.help}",
            )


def add_factors(
    top: Table, table: Table, variant: Variant, factors: Factors, used: list[registry.Benchmark]
) -> Variant:
    """Return the variant with the factors that apply to it, after checking each of their levels."""
    names = list_applicable_factors(variant, factors, used)
    for name in filter(variant.has_parameter, names):
        for level in factors[name]:
            check_value(top.table("factors"), variant.benchmark, name, level)
    first = tuple((name, factors[name][0]) for name in names)
    found = replace(variant, factors=tuple(names), first=first)
    try:
        found.values()
    except UsageError as error:
        table.fail(error.part or "use", str(error))
    check_allocations(top, found, factors)
    return found


def check_allocations(top: Table, variant: Variant, factors: Factors) -> None:
    """Check that each combination of nodes, tasks and processors gives the benchmark allowed
    numbers, together with each level that decides which numbers are allowed."""
    known = variant.benchmark.parameters
    linked = {
        name
        for key, parameter in known.items()
        for rule in parameter.numbers
        for name in (key, *rule.when)
    }
    names = [name for name in variant.factors if name in ALLOCATION or name in linked]
    for levels in itertools.product(*(factors[name] for name in names)):
        own = dict(zip(names, levels, strict=True))
        try:
            variant.values_for_levels({**dict(variant.first), **own})
        except UsageError as error:
            assignment = ", ".join(f"{name} = {level}" for name, level in own.items())
            top.table("factors").fail(names[0], f"with {assignment}: {error}")


def check_braces(table: Table, variant: Variant, factors: Factors) -> None:
    """Check that each name in braces in a user's command is a factor: otherwise each run would get
    the braces literally."""
    given = dict(variant.given)
    for key, parameter in variant.benchmark.parameters.items():
        if parameter.type != "command" or not parameter.required:
            continue
        for command in (*factors.get(key, ()), given.get(key, "")):
            unknown = placeholders.unknown_names(str(command), factors)
            if unknown:
                name = unknown[0]
                table.fail(
                    key,
                    f"{{{name}}} is the level of no factor: add {name} = […] to [factors], or write "
                    f"'{{{name}}}' if the program is to get it{did_you_mean(name, list(factors))}",
                )


def read_values(table: Table, benchmark: registry.Benchmark, key: str) -> tuple[Level, ...]:
    """Return the checked values of a parameter, which is a single value or a list."""
    value = table.data[key]
    values = table.levels(key) if isinstance(value, list) else (value,)
    return tuple(check_value(table, benchmark, key, one) for one in values)


def check_value(table: Table, benchmark: registry.Benchmark, key: str, value: object) -> Level:
    """Return the value as written, a table as JSON text. Raises UsageError if it is not allowed."""
    parameter = benchmark.parameters[key]
    try:
        checked = parameter.check(value)
    except ValueError as error:
        if parameter.type in TABLES:
            table.fail(key, str(error))
        table.wrong(key, value, parameter.allowed())
    return value if isinstance(value, Level) else checked


def check_span(top: Table, factors: Factors, variants: list[Variant]) -> None:
    """Raise UsageError for the factor clients with a benchmark that uses all nodes of its job."""
    whole_job = sorted({v.benchmark.name for v in variants if v.benchmark.span == "job"})
    ours = has_meaning("clients", [variant.benchmark for variant in variants])
    if "clients" in factors and whole_job and ours:
        top.table("factors").fail(
            "clients",
            f"{', '.join(whole_job)} works on all nodes of a job at once: leave clients out, or give "
            "such benchmarks a study of their own, with [job] nodes",
        )


def check_free_factors(top: Table, factors: Factors, variants: list[Variant]) -> None:
    """Raise UsageError for a factor that applies to no benchmark."""
    table = top.table("factors")
    benchmarks = {variant.benchmark.name: variant.benchmark for variant in variants}
    for name in factors:
        if name == "mode" and has_meaning(name, benchmarks.values()):
            check_mode(top, factors[name], benchmarks.values())
        if not any(name in variant.factors for variant in variants):
            table.fail(name, explain_unused_factor(name, factors, variants))


def list_uncompared(variants: Iterable[Variant]) -> list[str]:
    """Return the labels, such as `roottree structure`, of level parameters with several values:
    variants do not compare them."""
    levels_by_name: dict[str, set[Level]] = {}
    for variant in variants:
        for name, value in variant.values().items():
            if variant.benchmark.parameters[name].level:
                levels_by_name.setdefault(f"{variant.benchmark.name} {name}", set()).add(value)
    return [key for key, values in levels_by_name.items() if len(values) > 1]
