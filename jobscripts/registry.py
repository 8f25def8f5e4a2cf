"""The benchmarks: each a folder beside this file (docs/formats.md, part 7).

`names()` tells which there are, `load(name)` reads one. A description that breaks the contract is
a `DescriptionError` naming the file and the key; nothing is imported until `Benchmark.parse`.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from steelyard.jobscripts import description
from steelyard.jobscripts.errors import (
    DescriptionError,
    FailedError,
    OutputError,
    ParameterError,
    UnknownBenchmarkError,
)
from steelyard.jobscripts.parameters import Parameter, Value, check_all

__all__ = [
    "Benchmark",
    "DescriptionError",
    "FailedError",
    "OutputError",
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
LIBRARY = ("steelyard.sh", "steelyard_result.sh", "steelyard_client.sh")
NAME = re.compile(r"[a-z][a-z0-9_]*")


class Result(NamedTuple):
    """One measured figure; `iteration` counts from 1 inside a run."""

    metric: str
    value: float
    unit: str
    iteration: int


@dataclass(frozen=True)
class ResultSpec:
    """What a metric of a benchmark means; `better` is `lower`, `higher` or None (neither)."""

    unit: str
    better: str | None
    help: str
    primary: bool


@dataclass(frozen=True)
class Program:
    """A program that the benchmark needs, the Debian package that has it ("" = none), and why."""

    name: str
    debian: str
    why: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark as its folder describes it; `template` is the text of its job.sh."""

    name: str
    summary: str
    parameters: Mapping[str, Parameter]
    results: Mapping[str, ResultSpec]
    needs: tuple[Program, ...]
    template: str

    def check_parameters(self, given: Mapping[str, object]) -> dict[str, Value]:
        """All parameters, defaults filled in, sizes in bytes; ParameterError names what is wrong.

        What it returns it also accepts.
        """
        return check_all(self.name, self.parameters, given)

    def parse(self, folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
        """The figures in a client's output under the attempt folder.

        Raises OutputError for output that is not understood, FailedError for a benchmark that
        says it failed, ParameterError for parameters that were never valid.
        """
        module = importlib.import_module(f"steelyard.jobscripts.{self.name}.parse")
        found: list[Result] = module.parse(folder, client, self.check_parameters(parameters))
        for result in found:
            spec = self.results.get(result.metric)
            if spec is None or spec.unit != result.unit:
                raise DescriptionError(
                    FOLDER / self.name / "benchmark.toml",
                    f"results.{result.metric}",
                    f"parse.py gives '{result.metric}' in {result.unit}, which is not described",
                )
        return found


def names() -> list[str]:
    """The benchmarks there are, sorted."""
    return sorted(path.parent.name for path in FOLDER.glob("*/benchmark.toml"))


def load(name: str) -> Benchmark:
    """Read one benchmark's folder."""
    if not NAME.fullmatch(name) or name not in names():
        raise UnknownBenchmarkError(name, names())
    return read(FOLDER / name)


def library() -> str:
    """The shell functions of all runs, which submit freezes as STUDY/lib/steelyard.sh."""
    return "\n".join((FOLDER / part).read_text(encoding="utf-8") for part in LIBRARY)


def read(folder: Path) -> Benchmark:
    """A benchmark from any folder of the right shape."""
    path = folder / "benchmark.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DescriptionError(path, None, str(error)) from error
    doc = description.Reader(path, table)
    doc.only(("name", "summary", "parameters", "results", "needs"))
    name = doc.text("name")
    if name != folder.name:
        doc.fail("name", f"'{name}' is not the folder's name '{folder.name}'")
    return Benchmark(
        name=name,
        summary=doc.text("summary"),
        parameters={key: _parameter(doc, key) for key in doc.tables("parameters")},
        results=_results(doc),
        needs=_needs(doc),
        template=_template(folder),
    )


def _parameter(doc: description.Reader, name: str) -> Parameter:
    if not NAME.fullmatch(name):
        doc.fail(f"parameters.{name}", "a name is lower-case letters, digits and '_'")
    part = doc.table("parameters", name)
    part.only(("default", "type", "unit", "help", "choices", "minimum"))
    raw = Parameter(
        type=part.choice("type", ("int", "float", "string", "bool", "size")),
        default=None,
        unit=part.text("unit", ""),
        help=part.text("help"),
        choices=part.values("choices"),
        minimum=part.number("minimum"),
    )
    if "default" not in part.data:
        part.fail("default", "missing: every parameter needs one")
    try:
        return raw.with_default(part.data["default"])
    except ValueError as error:
        part.fail("default", str(error))


def _results(doc: description.Reader) -> dict[str, ResultSpec]:
    results = {}
    for name in doc.tables("results"):
        part = doc.table("results", name)
        part.only(("unit", "better", "help", "primary"))
        better = part.choice("better", ("lower", "higher", "none"))
        results[name] = ResultSpec(
            unit=part.text("unit"),
            better=None if better == "none" else better,
            help=part.text("help"),
            primary=part.flag("primary"),
        )
    if not any(spec.primary for spec in results.values()):
        doc.fail("results", "one of them must have primary = true")
    return results


def _needs(doc: description.Reader) -> tuple[Program, ...]:
    part = doc.table("needs")
    part.only(("programs",))
    programs = []
    for item in part.rows("programs"):
        item.only(("name", "debian", "why"))
        programs.append(Program(item.text("name"), item.text("debian", ""), item.text("why")))
    return tuple(programs)


def _template(folder: Path) -> str:
    try:
        return (folder / "job.sh").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptionError(folder / "job.sh", None, str(error)) from error
