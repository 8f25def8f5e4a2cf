"""Renders the site's page of all benchmarks, and writes marked parts of pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from steelyard.jobscripts import registry
from steelyard.jobscripts.parameters import Parameter

ITERATIONS = {
    "time": "A run's iterations follow each other: a warm-up among them is looked for.",
    "unordered": "A run's iterations are in no order of time: no warm-up is looked for among them.",
    "single": "A run reports each figure once.",
}


def tables() -> str:
    """Return one section per benchmark: description, parameters, results, programs."""
    return "\n".join(section(registry.load(name)) for name in registry.names())


def section(benchmark: registry.Benchmark) -> str:
    """Return a benchmark's section in Markdown."""
    lines = [f"## {benchmark.name}", "", *sentences(benchmark), ""]
    lines += [
        "| parameter | type | default | allowed | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, item in benchmark.parameters.items():
        row = [f"`{name}`", item.type, default_of(item), allowed_of(item), item.help]
        lines.append(cells(row))
    lines += ["", "| result | unit | better | meaning |", "| --- | --- | --- | --- |"]
    for name, spec in benchmark.results.items():
        primary = " (primary)" if spec.primary else ""
        lines.append(cells([f"`{name}`{primary}", spec.unit, spec.better or "neither", spec.help]))
    lines += ["", "| program | Debian package | why |", "| --- | --- | --- |"]
    for program in benchmark.needs:
        ours = "(ours)" if program.name.startswith("steelyard-") else "–"
        lines.append(cells([f"`{program.name}`", program.debian or ours, program.why]))
    return "\n".join([*lines, ""])


def sentences(benchmark: registry.Benchmark) -> Iterator[str]:
    """Yield sentences: what the benchmark measures, and its traits for studies and reports."""
    yield f"{benchmark.summary}.".replace("..", ".")
    if benchmark.span == "job":
        yield "It has the whole job: the factor `clients` is not for it."
    yield ITERATIONS[benchmark.iterations]
    if benchmark.bulk is not None:
        given = " and ".join(
            f"`{name} = {' or '.join(map(json.dumps, values))}`"
            for name, values in benchmark.bulk.when.items()
        )
        yield (
            f"With {given} its `{benchmark.bulk.metric}` is the throughput of bulk transfers "
            "(report.md, “Latency and throughput”)."
        )


def default_of(item: Parameter) -> str:
    """Return a parameter's default as a study would write it."""
    if item.required:
        return "must be given"
    if item.type == "size":
        return size_text(int(item.default or 0))
    return f'`"{item.default}"`' if item.type in ("string", "command") else f"{item.default}"


def size_text(size: int) -> str:
    """Return a size in bytes in its largest exact unit: 268435456 as `256MiB`."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % step == 0:
            return f"{size // step}{unit}"
    return f"{size}B"


def allowed_of(item: Parameter) -> str:
    """Return the allowed values: choices, or the least value."""
    found = "" if item.minimum is None else f"≥ {item.minimum:g}"
    if item.choices:
        found = ", ".join(f"`{choice}`" for choice in item.choices)
    return f"{found}; several, with spaces between, in one run" if item.several else found


def cells(row: list[str]) -> str:
    """Return a row of a table; `|` is escaped, as it would end a cell."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def between(page: str, begin: str, end: str, text: str) -> str:
    """Replace the text between two marks of a page; raise ValueError if one is missing."""
    head, found_begin, rest = page.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"the page has not both marks: {begin} and {end}")
    return f"{head}{begin}\n{text}{end}{tail}"


def rewrite(path: Path, renew: Callable[[str], str]) -> None:
    """Rewrite a file with `renew` applied to its text."""
    path.write_text(renew(path.read_text(encoding="utf-8")), encoding="utf-8")
