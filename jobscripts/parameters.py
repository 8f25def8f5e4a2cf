"""Parameters of benchmarks: their types, rules for their integers (squares, powers of two), variables
for a command (a table NAME = "value", stored as canonical JSON), and the check of the values in a
study."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.jobscripts import user_figures_table
from steelyard.jobscripts.errors import ParameterError, did_you_mean
from steelyard.jobscripts.requirements import Conditions, conditions_hold, read_conditions
from steelyard.jobscripts.toml_table import Description

# By kind: the allowed numbers, in words, and the first of them.
KINDS = {
    "square": "a square (1, 4, 9, 16, 25 …)",
    "power of two": "a power of two (1, 2, 4, 8, 16 …)",
}


@dataclass(frozen=True)
class IntegerRule:
    """An allowed kind of number; it applies if other parameters have values of `when`."""

    kind: str
    when: Conditions

    def refusal(self, number: int, values: Mapping[str, object]) -> str | None:
        """Return why this number is not allowed with these parameters, or None."""
        if not conditions_hold(self.when, values) or is_of_kind(self.kind, number):
            return None
        conditions = ", ".join(f"{name} = {values[name]}" for name in self.when if values[name])
        return f"{conditions} takes {KINDS[self.kind]}"


def is_of_kind(kind: str, number: int) -> bool:
    """Whether a number (≥ 1) is of a kind."""
    if kind == "square":
        return math.isqrt(number) ** 2 == number
    return number & (number - 1) == 0


def read_integer_rules(section: Description, parameters: Sequence[str]) -> tuple[IntegerRule, ...]:
    """Read `numbers` of a parameter, a list of {kind, when}."""
    rules = []
    for item in section.tables("numbers"):
        item.only(("kind", "when"))
        when = read_conditions(item, "when", parameters)
        rules.append(IntegerRule(item.choice("kind", tuple(KINDS)), when))
    return tuple(rules)


VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Prefixes of the variables of the run's shell functions.
OURS = ("SY_", "STEELYARD_")


class EnvironmentTableError(ValueError):
    """A table of variables is invalid; the message is one sentence."""


def canonical_environment(value: object) -> str:
    """Return the canonical JSON of a table of variables, or of its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except (ValueError, RecursionError) as error:
            raise EnvironmentTableError('no JSON: a table NAME = "value" is needed') from error
    if not isinstance(value, Mapping):
        raise EnvironmentTableError('a table NAME = "value" is needed')
    return json.dumps(
        {name: checked_variable(name, value[name]) for name in sorted(value)}, sort_keys=True
    )


def checked_variable(name: object, value: object) -> str:
    """Return the value of a variable as text; flags are `true` and `false`."""
    if not isinstance(name, str) or not VARIABLE_NAME.fullmatch(name):
        raise EnvironmentTableError(f"{name!r}: a variable's name is letters, digits and '_'")
    if name.startswith(OURS):
        raise EnvironmentTableError(f"{name}: Steelyard's own variables are not for a study to set")
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value) if isinstance(value, str | int | float) else None
    if text is None or not text.isprintable():
        raise EnvironmentTableError(f"{name}: a text of one line is needed, found {value!r}")
    return text


def environment_words(text: str) -> str:
    """Return the variables as a shell reads them: `OMP_NUM_THREADS=4 X='a b'`."""
    table = json.loads(text) if text else {}
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in table.items())


Value = int | float | str | bool

SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT]?B|[KMGT]iB)?", re.ASCII)
UNITS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}
SEVERAL = ", or several different ones in one text with spaces between, all in one run"
ALLOWED = {
    "int": "a whole number",
    "float": "a number",
    "string": "a text of one line",
    "command": "a command line, in one line",
    "bool": "true or false",
    "size": "a size such as 256MiB, 1kB or a number of bytes",
    "figures": "tables NAME = {pattern, unit, better, primary, count}",
    "environment": 'a table NAME = "value"',
}


@dataclass(frozen=True)
class Parameter:
    """A parameter in benchmark.toml.

    A `size` is in bytes; `figures` and `environment` are JSON text. A `command` and an
    `environment` may contain names of factors (placeholders.py).

    `pattern`: a regular expression for the complete text; `form` describes it in words. `required`:
    a study must give it, and not as an empty text. `level`: its values are meant to be compared.
    `several`: a text of several values, separated by blanks, is one value; one run uses all of
    them. `only_with`: choices that need another parameter, by its name. `numbers`: the integers
    that are allowed with certain values of other parameters. `noted`: describes what to note of a
    run, and does not change what is executed.
    """

    type: str
    default: Value | None
    unit: str
    help: str
    choices: tuple[Value, ...] = ()
    minimum: float | None = None
    pattern: str = ""
    form: str = ""
    required: bool = False
    level: bool = False
    several: bool = False
    noted: bool = False
    only_with: Mapping[str, str] = dataclasses.field(default_factory=dict)
    numbers: tuple[IntegerRule, ...] = ()

    @property
    def is_executed(self) -> bool:
        """Whether it affects the execution: figures are read from the stored output afterwards."""
        return not self.noted and self.type != "figures"

    def with_default(self, default: object) -> Parameter:
        """Return the parameter with another default; raise ValueError if that is not allowed."""
        return dataclasses.replace(self, default=self.check(default))

    def check(self, value: object) -> Value:
        """Return the value in its type, sizes in bytes; raise ValueError if it is not allowed."""
        values = value.split() if self.several and isinstance(value, str) else []
        if len(values) > 1:
            return self._check_several(value, values)
        found = CONVERT[self.type](value)
        if found is None or not self._allows(found):
            raise ValueError(f"{value!r} is not allowed: {self.allowed()}")
        return found

    def _check_several(self, value: object, values: list[str]) -> str:
        single = dataclasses.replace(self, several=False)
        try:
            found = [shell_text(from_text(single, word)) for word in values]
        except ValueError:
            found = []
        if not found or len(set(found)) < len(found):
            raise ValueError(f"{value!r} is not allowed: {self.allowed()}")
        return " ".join(found)

    def _allows(self, value: Value) -> bool:
        if self.choices and value not in self.choices:
            return False
        if isinstance(value, str):
            return not self.pattern or re.fullmatch(self.pattern, value) is not None
        if self.minimum is None:
            return True
        return value >= self.minimum

    def allowed(self) -> str:
        """Describe the allowed values."""
        if self.form:
            return self.form
        least = "" if self.minimum is None else f", at least {self.minimum:g}"
        one = ALLOWED[self.type] + least
        if self.choices:
            one = "one of " + ", ".join(str(choice) for choice in self.choices)
        return one + (SEVERAL if self.several else "")


def parse_size(text: str) -> int | None:
    """Return the bytes of `256MiB` (powers of 1024), `1kB` (powers of 1000), `4096`; else None.

    A fraction must be an integer number of bytes: `1.5kB` is one, `0.1B` is not.
    """
    match = SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, unit = match[1], match[2] or "B"
    step = 1024 if unit.endswith("iB") else 1000
    integer, _, fraction = number.partition(".")
    scaled = int(integer + fraction) * step ** UNITS[unit[:-2] if step == 1024 else unit[:-1]]
    bytes_, rest = divmod(scaled, 10 ** len(fraction))
    return None if rest else bytes_


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _string(value: object) -> str | None:
    # A line break or NUL would be damaged in a job script's environment.
    return value if isinstance(value, str) and value.isprintable() else None


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _size(value: object) -> int | None:
    size = parse_size(value) if isinstance(value, str) else _int(value)
    return size if size is not None and 0 <= size < 2**63 else None


CONVERT = {
    "int": _int,
    "float": _float,
    "string": _string,
    "command": _string,
    "bool": _bool,
    "size": _size,
    "figures": user_figures_table.canonical,
    "environment": canonical_environment,
}


def shell_text(value: Value) -> str:
    """Return a value as job.sh reads it: numbers in digits, bools as true and false."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def from_text(parameter: Parameter, text: str) -> Value:
    """Return the value of a command line's text; raise ValueError with the allowed values."""
    value: object = {"true": True, "false": False}.get(text, text)
    if parameter.type in ("int", "float"):
        try:
            value = float(text) if parameter.type == "float" else int(text)
        except ValueError:
            value = text
    return parameter.check(text if parameter.type in ("string", "command") else value)


def check_all(
    benchmark: str, known: Mapping[str, Parameter], given: Mapping[str, object]
) -> dict[str, Value]:
    """Return every known parameter with its value; raise ParameterError for the first fault."""
    for name in given:
        if name not in known:
            listed = f"{', '.join(known)}{did_you_mean(name, known)}"
            raise ParameterError(f"{benchmark} has no parameter '{name}'; known: {listed}", name)
    values: dict[str, Value] = {}
    for name, parameter in known.items():
        try:
            values[name] = parameter.check(given.get(name, parameter.default))
        except ValueError as error:
            raise ParameterError(f"{benchmark}: {name} = {error}", name) from error
    for name, parameter in known.items():
        if parameter.required and values[name] == "":
            raise ParameterError(f"{benchmark} needs {name}: {parameter.help}", name)
        other = parameter.only_with.get(shell_text(values[name]))
        if other and not values[other]:
            message = f"{benchmark}: {name} = {values[name]!r} needs {other}: {known[other].help}"
            raise ParameterError(message, name)
    return values


def check_numbers(
    benchmark: str, known: Mapping[str, Parameter], values: Mapping[str, Value]
) -> None:
    """Raise ParameterError if a rule excludes an integer."""
    for name, parameter in known.items():
        number = values[name]
        for rule in parameter.numbers if isinstance(number, int) else ():
            if why := rule.refusal(int(number), values):
                raise ParameterError(f"{benchmark}: {name} = {number}: {why}", name)
