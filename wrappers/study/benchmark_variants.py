"""A variant of a benchmark: its parameters, and the factors over which it is swept.

A factor applies if it has a predefined meaning, is a parameter, or is `{name}` in a command or its
variables. A variant is measured once for all factors that do not apply, and not compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steelyard.jobscripts import placeholders, registry
from steelyard.wrappers.base.errors import UsageError, did_you_mean
from steelyard.wrappers.study.allocation_parameters import job_parameters
from steelyard.wrappers.study.factors import MEANT, Level, has_meaning
from steelyard.wrappers.study.job_settings import Job

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
