"""The benchmarks, each of which is a folder next to this file (docs/formats.md, part 7).

`names()` lists them, `load(name)` reads one. An invalid description is a `DescriptionError`, which
names the file and the key. No parser is imported before `Benchmark.parse`.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from steelyard.jobscripts import user_figures_table
from steelyard.jobscripts.errors import (
    DescriptionError,
    FailedError,
    OutputError,
    ParameterError,
    UnknownBenchmarkError,
)
from steelyard.jobscripts.output import Note, collect_notes
from steelyard.jobscripts.parameters import (
    CONVERT,
    Parameter,
    Value,
    check_all,
    check_numbers,
    read_integer_rules,
)
from steelyard.jobscripts.requirements import (
    Conditions,
    Module,
    Program,
    conditions_hold,
    read_conditions,
    read_needs,
)
from steelyard.jobscripts.toml_table import Description

__all__ = [
    "Benchmark",
    "DescriptionError",
    "FailedError",
    "Module",
    "OutputError",
    "OwnFigures",
    "Parameter",
    "ParameterError",
    "Program",
    "Result",
    "ResultSpec",
    "UnknownBenchmarkError",
    "library",
    "load",
    "names",
]

FOLDER = Path(__file__).parent
LIBRARY = FOLDER / "lib"
NAME = re.compile(r"[a-z][a-z0-9_]*")
# The iterations of a run: successive repetitions, something else (pairs of nodes, sizes), or always
# only one.
ITERATIONS = ("time", "unordered", "single")
KEYS = (
    *("name", "summary", "span", "parameters", "results", "needs", "include"),
    *("iterations", "bulk", "program_tags", "program_choice"),
)


class OwnFigures(NamedTuple):
    """The study's own figures of one client, and the reason for each missing figure, by name."""

    results: list[Result]
    missing: dict[str, str]


class Result(NamedTuple):
    """One measured figure; `iteration` counts from 1 within a run."""

    metric: str
    value: float
    unit: str
    iteration: int


@dataclass(frozen=True)
class ResultSpec:
    """The description of a metric; `better` is `lower`, `higher` or None (neither)."""

    unit: str
    better: str | None
    help: str
    primary: bool
    is_elapsed: bool = False  # the time of the complete run: `elapsed_s` would repeat it


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as its folder describes it; `template` is the text of its job.sh.

    `span`: "node", a client works on its own node; "job", the only client has the complete job.
    `iterations`: one of ITERATIONS. `program_tags`: tags of its program and its use of the
    processor, in which compared runs should agree. `program_choice`: the parameter for external
    programs, and the one that selects Steelyard's own: a study that reproduces a paper sets one of
    them.
    """

    name: str
    summary: str
    parameters: Mapping[str, Parameter]
    results: Mapping[str, ResultSpec]
    needs: tuple[Program, ...]
    template: str
    modules: tuple[Module, ...] = ()
    span: str = "node"
    iterations: str = "time"
    bulk: Bulk | None = None
    program_tags: tuple[str, ...] = ()
    program_choice: tuple[str, ...] = ()

    @property
    def finds_own_figures(self) -> bool:
        """Whether the study defines the figures, which are unknown before it is read."""
        return any(one.type == "figures" for one in self.parameters.values())

    def defaults(self) -> dict[str, Value | None]:
        """Return the defaults of all parameters."""
        return {name: one.default for name, one in self.parameters.items()}

    def check_parameters(self, given: Mapping[str, object]) -> dict[str, Value]:
        """Return all parameters, with defaults, sizes in bytes; raise ParameterError for a fault.

        The result is itself a valid argument.
        """
        values = check_all(self.name, self.parameters, given)
        check_numbers(self.name, self.parameters, values)
        return values

    def specs(self, parameters: Mapping[str, object]) -> dict[str, ResultSpec]:
        """Return the specs of all metrics, including those that a parameter `figures` defines."""
        specs = dict(self.results)
        values = check_all(self.name, self.parameters, parameters)
        for name, parameter in self.parameters.items():
            if parameter.type == "figures":
                specs = _added(specs, user_figures_table.figures_of(str(values[name])))
        return specs

    def parse(
        self,
        folder: Path,
        client: int,
        parameters: Mapping[str, object],
        notes: list[Note] | None = None,
    ) -> list[Result]:
        """Return the figures in a client's output in the attempt's folder.

        Removed and unknown text of the output is appended to `notes`. Raises OutputError if the
        output has an unexpected form, FailedError if the benchmark reports that it failed,
        ParameterError if the parameters are invalid.
        """
        module = importlib.import_module(f"steelyard.jobscripts.{self.name}.parse")
        with collect_notes([] if notes is None else notes):
            values = check_all(self.name, self.parameters, parameters)
            found: list[Result] = module.parse(folder, client, values)
        specs = self.specs(parameters)
        for result in found:
            spec = specs.get(result.metric)
            if spec is None or spec.unit != result.unit:
                raise DescriptionError(
                    f"{FOLDER / self.name / 'benchmark.toml'}: results.{result.metric}: parse.py "
                    f"gives '{result.metric}' in {result.unit}, which is not described"
                )
        return found

    def own_figures(
        self,
        folder: Path,
        client: int,
        parameters: Mapping[str, object],
        notes: list[Note] | None = None,
    ) -> OwnFigures:
        """Return what a parameter `figures` finds in a client's output.

        A missing figure does not fail the run: the user can correct the pattern, which is applied
        to the same output again. Removed text of the output is appended to `notes`.
        """
        found = OwnFigures([], {})
        for name, parameter in self.parameters.items():
            figures = parameters.get(name, parameter.default)
            if parameter.type != "figures" or not (
                of := user_figures_table.figures_of(str(figures))
            ):
                continue
            module = importlib.import_module(f"steelyard.jobscripts.{self.name}.parse")
            with collect_notes([] if notes is None else notes):
                more: OwnFigures = module.own_figures(folder, client, of)
            found = OwnFigures(found.results + more.results, found.missing | more.missing)
        return found


def _added(
    specs: dict[str, ResultSpec], found: Mapping[str, user_figures_table.Figure]
) -> dict[str, ResultSpec]:
    """Return the specs with those of the study's own figures."""
    specs = dict(specs)
    for name, figure in found.items():
        better = None if figure.better == "none" else figure.better
        specs[name] = ResultSpec(figure.unit, better, f"found by {figure.pattern}", figure.primary)
    return specs


def names() -> list[str]:
    """Return the names of the benchmarks, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob("*/benchmark.toml"))


def of_a_command() -> str:
    """Return the name of the benchmark that runs a user's own command."""
    (name,) = [
        name
        for name in names()
        if any(one.required and one.type == "command" for one in load(name).parameters.values())
    ]
    return name


def load(name: str) -> Benchmark:
    """Read one benchmark's folder."""
    if not NAME.fullmatch(name) or name not in names():
        raise UnknownBenchmarkError(name, names())
    return read(FOLDER / name)


def library() -> str:
    """Return the shell functions of all runs, which submit copies to STUDY/lib."""
    first = LIBRARY / "run_main.sh"
    rest = sorted(path for path in LIBRARY.rglob("*.sh") if path != first)
    return "\n".join(path.read_text(encoding="utf-8") for path in (first, *rest))


def read(folder: Path) -> Benchmark:
    """Read a benchmark from its folder; raise DescriptionError if it is invalid."""
    path = folder / "benchmark.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DescriptionError(f"{path}: {error}") from error
    doc = Description(path, _with_included(path, table))
    doc.only(KEYS)
    name = doc.text("name")
    if name != folder.name:
        doc.fail("name", f"'{name}' is not the folder's name '{folder.name}'")
    parameters = {key: _parameter(doc, key) for key in doc.table("parameters").data}
    programs, modules = read_needs(doc, list(parameters))
    results = _results(doc)
    units = {metric: spec.unit for metric, spec in results.items()}
    return Benchmark(
        name=name,
        summary=doc.text("summary"),
        parameters=parameters,
        results=results,
        needs=tuple(programs),
        template=_template(folder),
        modules=tuple(modules),
        span=doc.choice("span", ("node", "job")) if "span" in doc.data else "node",
        iterations=doc.choice("iterations", ITERATIONS),
        bulk=read_bulk(doc, list(parameters), units),
        program_tags=_program_tags(doc, name),
        program_choice=_program_choice(doc, parameters),
    )


def _program_choice(doc: Description, parameters: Mapping[str, Parameter]) -> tuple[str, ...]:
    keys = tuple(map(str, doc.values("program_choice")))
    if keys and (len(keys) != 2 or not set(keys) <= set(parameters)):
        doc.wrong(
            "program_choice",
            list(keys),
            "two parameters: of a path, and of whose programs are meant",
        )
    return keys


def _program_tags(doc: Description, name: str) -> tuple[str, ...]:
    tags = tuple(map(str, doc.values("program_tags")))
    for tag in tags:
        if not tag.startswith(f"{name}."):
            doc.wrong("program_tags", tag, f"{name}.WORD")
    return tags


def _with_included(path: Path, table: dict[str, object]) -> dict[str, object]:
    """Return the table, with parameters and results of the files in `include` after its own."""
    joined = dict(table)
    doc = Description(path, table)
    for name in doc.values("include"):
        included = FOLDER / f"{name}.toml"
        if not NAME.fullmatch(str(name)) or not included.is_file():
            doc.fail("include", f"there is no {included.name} beside the benchmarks")
        shared = tomllib.loads(included.read_text(encoding="utf-8"))
        for section in ("parameters", "results"):
            own = joined.get(section, {})
            if isinstance(own, dict):
                joined[section] = {**own, **shared.get(section, {})}
    return joined


def _parameter(doc: Description, name: str) -> Parameter:
    if not NAME.fullmatch(name):
        doc.fail(f"parameters.{name}", "a name is lower-case letters, digits and '_'")
    section = doc.table("parameters").table(name)
    section.only(
        (
            *("default", "type", "unit", "help", "choices", "minimum", "pattern", "form"),
            *("required", "level", "several", "only_with", "noted", "numbers"),
        )
    )
    raw = Parameter(
        type=section.choice("type", tuple(CONVERT)),
        default=None,
        unit=section.text("unit", ""),
        help=section.text("help"),
        choices=section.values("choices"),
        minimum=section.number("minimum"),
        pattern=section.text("pattern", ""),
        form=section.text("form", ""),
        required=section.data.get("required") is True,
        level=section.flag("level", False),
        several=section.flag("several", False),
        noted=section.flag("noted", False),
        only_with=_only_with(doc, section),
        numbers=read_integer_rules(section, list(doc.table("parameters").data)),
    )
    if "default" not in section.data:
        section.fail("default", "missing: every parameter needs one")
    try:
        return raw.with_default(section.data["default"])
    except ValueError as error:
        section.fail("default", str(error))


def _results(doc: Description) -> dict[str, ResultSpec]:
    found, results = {}, doc.table("results")
    for name in results.data:
        section = results.table(name)
        section.only(("unit", "better", "help", "primary", "is_elapsed"))
        better = section.choice("better", ("lower", "higher", "none"))
        found[name] = ResultSpec(
            unit=section.text("unit"),
            better=None if better == "none" else better,
            help=section.text("help"),
            primary=section.flag("primary", False),
            is_elapsed=section.flag("is_elapsed", False),
        )
    if not any(spec.primary for spec in found.values()):
        doc.fail("results", "one of them must have primary = true")
    return found


def _only_with(doc: Description, section: Description) -> dict[str, str]:
    """Return CHOICE = "PARAMETER" for choices that need another parameter."""
    found = {}
    table = section.data.get("only_with")
    for choice, other in table.items() if isinstance(table, dict) else ():
        if (
            choice not in map(str, section.values("choices"))
            or other not in doc.table("parameters").data
        ):
            section.wrong("only_with", {choice: other}, 'a choice = "another parameter"')
        found[choice] = str(other)
    return found


def _template(folder: Path) -> str:
    try:
        return (folder / "job.sh").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(f"{folder / 'job.sh'}: {error}") from error


BYTES = {"bytes_per_s": 1.0, "bit/s": 1 / 8}  # per unit of the metric
KINDS = ("file", "timed")  # files first: they are the usual transfers of data
SECONDS, OMIT = "seconds", "omit"


@dataclass(frozen=True)
class Bulk:
    """Transfers whose throughput, in bytes per second, is `metric` × `factor`.

    `kind`: "file", a transfer ends with its file; "timed", it takes the parameter `seconds`, and
    its first `omit` seconds, if that parameter exists, are not counted. `when`: only runs with
    these parameters are such transfers.
    """

    metric: str
    kind: str
    factor: float
    when: Conditions

    def is_measured(self, parameters: Mapping[str, object]) -> bool:
        """Whether runs with these complete parameters are such transfers."""
        return conditions_hold(self.when, parameters)

    def times_s(self, parameters: Mapping[str, object]) -> tuple[float, float]:
        """Return the seconds of a "timed" transfer, and how many of them are not counted."""
        return float(str(parameters[SECONDS])), float(str(parameters.get(OMIT, 0)))


def read_bulk(doc: Description, parameters: list[str], units: Mapping[str, str]) -> Bulk | None:
    """Read [bulk]; None if it is missing. `units` are those of the results."""
    if "bulk" not in doc.data:
        return None
    section = doc.table("bulk")
    section.only(("metric", "kind", "when"))
    metric, kind = section.choice("metric", tuple(units)), section.choice("kind", KINDS)
    if units[metric] not in BYTES:
        section.wrong("metric", metric, f"a result in {' or '.join(BYTES)}")
    if kind == "timed" and SECONDS not in parameters:
        section.wrong("kind", kind, f'"timed" only with a parameter {SECONDS}')
    return Bulk(metric, kind, BYTES[units[metric]], read_conditions(section, "when", parameters))
