"""The tables of docs/benchmarks.md, from the descriptions.

`python -m steelyard.jobscripts.docs docs/benchmarks.md` writes them anew between the two marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from steelyard.jobscripts import registry
from steelyard.jobscripts.parameters import Parameter

BEGIN = "<!-- from the descriptions: python -m steelyard.jobscripts.docs docs/benchmarks.md -->"
END = "<!-- end of what is from the descriptions -->"


def tables() -> str:
    """One section per benchmark: parameters, results, programs."""
    return "\n".join(section(registry.load(name)) for name in registry.names())


def section(benchmark: registry.Benchmark) -> str:
    """A benchmark in Markdown."""
    lines = [f"### {benchmark.name}", "", f"{benchmark.summary}.".replace("..", "."), ""]
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


def default_of(item: Parameter) -> str:
    """A default as a study would write it."""
    if item.required:
        return "must be given"
    if item.type == "size":
        return size_text(int(item.default or 0))
    return f'`"{item.default}"`' if item.type == "string" else f"{item.default}"


def size_text(size: int) -> str:
    """268435456 as 256MiB."""
    for unit, step in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % step == 0:
            return f"{size // step}{unit}"
    return f"{size}B"


def allowed_of(item: Parameter) -> str:
    """Choices or the least value."""
    if item.choices:
        return ", ".join(f"`{choice}`" for choice in item.choices)
    return "" if item.minimum is None else f"≥ {item.minimum:g}"


def cells(row: list[str]) -> str:
    """A line of a table; `|` would end a cell."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def renewed(page: str) -> str:
    """The page with fresh tables; ValueError without the marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has not both marks: {BEGIN} and {END}")
    return f"{head}{BEGIN}\n{tables()}{END}{tail}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")
