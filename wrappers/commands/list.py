"""The benchmarks, one with its parameters and figures; example studies, and those in this
folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base import options

if TYPE_CHECKING:
    from steelyard.jobscripts.registry import Benchmark


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard list`."""
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        nargs="?",
        help="print this benchmark's parameters and figures",
    )
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Print the benchmarks, examples and studies."""
    from steelyard.jobscripts import registry
    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.study import folder as studydir

    try:
        names = [args.benchmark] if args.benchmark else registry.names()
        benchmarks = [registry.load(name) for name in names]
    except registry.UnknownBenchmarkError as error:
        raise errors.UsageError(str(error), part=args.benchmark) from error
    studies = [] if args.benchmark else studydir.list_studies(Path())
    if args.json:
        console.print_json(as_json(benchmarks, studies))
        return errors.DONE
    if args.benchmark:
        print_benchmark(benchmarks[0])
    else:
        print_overview(benchmarks)
        print_examples()
        print_studies(studies)
    return errors.DONE


def as_json(benchmarks: list[Benchmark], studies: list[Path]) -> dict[str, object]:
    """Return the document of --json."""
    from dataclasses import asdict

    from steelyard.jobscripts.example_studies import examples

    return {
        "benchmarks": [
            {key: value for key, value in asdict(benchmark).items() if key != "template"}
            for benchmark in benchmarks
        ],
        "examples": [{**one._asdict(), "path": str(one.path)} for one in examples()],
        "studies": [str(path.absolute()) for path in studies],
    }


def name_main_figures(names: list[str]) -> str:
    """Return at most two names, so that the last column stays wide enough for a sentence."""
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def print_overview(benchmarks: list[Benchmark]) -> None:
    """Print a line for each benchmark."""
    from steelyard.wrappers.base import console

    console.print_table(
        ("benchmark", "main figure", "what it is"),
        [
            (
                found.name,
                name_main_figures([n for n, spec in found.results.items() if spec.primary]),
                found.summary,
            )
            for found in benchmarks
        ],
    )
    print("'steelyard list BENCHMARK' prints its parameters and figures\n")


def print_examples() -> None:
    """Print a line for each example study, and their folder."""
    from steelyard.jobscripts.example_studies import FOLDER, examples
    from steelyard.wrappers.base import console

    console.print_table(
        ("example study", "what it asks"), [(one.name, one.summary) for one in examples()]
    )
    print(f"copy one from {FOLDER}, adapt it, and 'steelyard submit' it\n")


def print_benchmark(benchmark: Benchmark) -> None:
    """Print a benchmark as two tables."""
    from steelyard.analysis.base.level_names import format_level
    from steelyard.wrappers.base import console

    print(f"{benchmark.name}: {benchmark.summary}\n")
    console.print_table(
        ("parameter", "default", "unit", "allowed", "meaning"),
        [
            (
                name,
                "must be given" if found.required else format_level(found.default),
                found.unit,
                found.allowed(),
                found.help,
            )
            for name, found in benchmark.parameters.items()
        ],
    )
    console.print_table(
        ("result", "unit", "better", "meaning"),
        [
            (f"{name} *" if spec.primary else name, spec.unit, spec.better, spec.help)
            for name, spec in benchmark.results.items()
        ],
    )


def print_studies(studies: list[Path]) -> None:
    """Print the studies here, one per line."""
    if not studies:
        print("no studies in this folder")
    for path in studies:
        print(f"study: {path}")
