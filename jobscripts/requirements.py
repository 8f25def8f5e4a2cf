"""A benchmark's requirements on a node: programs and Python modules, depending on parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.jobscripts.toml_table import Description

Conditions = Mapping[str, tuple[object, ...]]


@dataclass(frozen=True)
class Program:
    """A required program, its Debian package ("": none), and why it is needed.

    `unless`: it is not needed if every parameter in it has one of its values; `when`: it is needed
    only then. In a list, "*" matches any value but "".
    """

    name: str
    debian: str
    why: str
    unless: Conditions = field(default_factory=dict)
    when: Conditions = field(default_factory=dict)

    def is_needed(self, parameters: Mapping[str, object]) -> bool:
        """Whether runs with these parameters execute it."""
        if self.unless and conditions_hold(self.unless, parameters):
            return False
        return conditions_hold(self.when, parameters)


@dataclass(frozen=True)
class Module:
    """A Python module that the benchmark's client imports, and why."""

    name: str
    why: str
    when: Conditions = field(default_factory=dict)

    def is_needed(self, parameters: Mapping[str, object]) -> bool:
        """Whether runs with these parameters import it."""
        return conditions_hold(self.when, parameters)


def conditions_hold(conditions: Conditions, parameters: Mapping[str, object]) -> bool:
    """Whether every parameter in `conditions` has one of its values."""
    return all(_matches(parameters[name], values) for name, values in conditions.items())


def _matches(value: object, values: tuple[object, ...]) -> bool:
    return value in values or ("*" in values and value != "")


def read_needs(doc: Description, parameters: Sequence[str]) -> tuple[list[Program], list[Module]]:
    """Read [needs] of a benchmark.toml whose parameters have these names."""
    section = doc.table("needs")
    section.only(("programs", "python"))
    programs, modules = [], []
    for item in section.tables("programs"):
        item.only(("name", "debian", "why", "unless", "when"))
        unless, when = (read_conditions(item, key, parameters) for key in ("unless", "when"))
        text = item.text("name"), item.text("debian", ""), item.text("why")
        programs.append(Program(*text, unless, when))
    for item in section.tables("python"):
        item.only(("module", "why", "when"))
        when = read_conditions(item, "when", parameters)
        modules.append(Module(item.text("module"), item.text("why"), when))
    return programs, modules


def read_conditions(item: Description, key: str, parameters: Sequence[str]) -> Conditions:
    """Read a table from parameter to values; {} if it is missing."""
    table = item.table(key)
    for name in table.data:
        if name not in parameters:
            table.fail(name, f"no parameter of this benchmark; there are: {', '.join(parameters)}")
    return {name: table.values(name) for name in table.data}
