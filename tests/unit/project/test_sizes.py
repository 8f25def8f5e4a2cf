"""Files have at most 600 lines, functions at most 60 (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FILE_LINES, FUNCTION_LINES = 600, 60
DEFINITION = re.compile(r"( *)(?:async def |def |class |@)")
NOT_SOURCES = {"build", "steelyard.egg-info"}


@functools.cache
def files() -> list[Path]:
    """Return all files of the project except recorded data."""
    tops = [path for path in ROOT.iterdir() if path.is_dir() and path.name not in NOT_SOURCES]
    paths = (path for top in tops if not top.name.startswith(".") for path in top.rglob("*.*"))
    return [path for path in paths if not path.is_relative_to(ROOT / "tests/data")]


def sources(*suffixes: str) -> list[Path]:
    """Return the files of these suffixes."""
    return [path for path in files() if path.suffix in suffixes and path.is_file()]


def python_functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield (name, lines) of each function in a Python file, its docstring included."""
    text = path.read_text(encoding="utf-8")
    if not may_be_long(text):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def may_be_long(text: str) -> bool:
    """Whether a definition is far from the next one that is not inside of it.

    It spares most files the parser, which takes seconds for all of them.
    """
    lines = text.splitlines()
    starts = [
        (n, len(found[1])) for n, line in enumerate(lines) if (found := DEFINITION.match(line))
    ]
    for place, (start, indent) in enumerate(starts):
        later = (n for n, other in starts[place + 1 :] if other <= indent)
        if next(later, len(lines)) - start > FUNCTION_LINES:
            return True
    return False


def c_functions(path: Path) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function in a C file: from a `{` in column one to its `}`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start, name = 0, ""
    for number, line in enumerate(lines):
        if line == "{":
            start = number
            heading = " ".join(lines[max(0, number - 4) : number])
            name = (re.findall(r"(\w+)\(", heading) or ["?"])[-1]
        elif line == "}" and start:
            yield name, number - start + 1
            start = 0


def test_files_are_small() -> None:
    """One can read a file in one sitting."""
    long = {
        f"{path.relative_to(ROOT)}: {count}"
        for path in sources(".py", ".c", ".h", ".sh", ".bats", ".sql", ".j2", ".css")
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > FILE_LINES
    }
    assert not long


def test_functions_are_small() -> None:
    """One can see what a function does at a glance."""
    long = {
        f"{path.relative_to(ROOT)}: {name} {lines}"
        for suffix, functions in ((".py", python_functions), (".c", c_functions))
        for path in sources(suffix)
        for name, lines in functions(path)
        if lines > FUNCTION_LINES
    }
    assert not long


def test_the_counter_counts(tmp_path: Path) -> None:
    """A function of more lines than allowed is found."""
    file = tmp_path / "long.c"
    file.write_text("int f(int a)\n{\n" + "\ta++;\n" * 60 + "}\n", encoding="utf-8")
    assert list(c_functions(file)) == [("f", 62)]
    file.write_text("class A:\n    def f(self):\n" + "        pass\n" * 61 + "def g(): pass\n")
    assert dict(python_functions(file)) == {"f": 62, "g": 1}
