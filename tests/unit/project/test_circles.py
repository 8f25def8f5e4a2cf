"""No two files need each other in a circle: C files of one folder, Python modules of all packages."""

from __future__ import annotations

import ast
import graphlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = ("facts", "jobscripts", "analysis", "wrappers")


def circle_of(needs: Mapping[str, set[str]]) -> list[str]:
    """The names along one circle; empty where there is none."""
    try:
        graphlib.TopologicalSorter(needs).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def folders_of_c(root: Path = ROOT) -> list[Path]:
    parts = ("plugins", "jobscripts")
    return sorted({path.parent for part in parts for path in (root / part).rglob("*.c")})


def defined_in(text: str) -> set[str]:
    """The functions of a C file that others can call."""
    return set(
        re.findall(r"^(?!(?:\w+ )?static)\w[\w\s*]*?(\w+)\([^;{}]*\)\s*\{", text, re.MULTILINE)
    )


def needs_of_c(folder: Path) -> dict[str, set[str]]:
    """NAME.c and NAME.h count as one; an include names a file of the folder, or ROOM/FILE."""
    needs: dict[str, set[str]] = defaultdict(set)
    for path in folder.glob("*.[ch]"):
        for name in re.findall(
            r'^\s*#\s*include\s*"([^"]+)"', path.read_text("utf-8"), re.MULTILINE
        ):
            included = Path(name)
            here = included.parent.name in {"", folder.name} and (folder / included.name).is_file()
            if here and included.stem != path.stem:
                needs[path.stem].add(included.stem)
    return needs


def calls_of_c(folder: Path) -> dict[str, set[str]]:
    """By C file, those that define what it calls: a room's one header may declare it."""
    texts = {path.stem: path.read_text("utf-8") for path in folder.glob("*.c")}
    home = {name: stem for stem, text in texts.items() for name in defined_in(text)}
    return {
        stem: {home[name] for name in {*re.findall(r"\w+(?=\()", text)} & home.keys()} - {stem}
        for stem, text in texts.items()
    }


def modules_of(root: Path = ROOT) -> dict[str, Path]:
    """Dotted name below the root (an __init__.py: its folder's) and file."""
    found = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            words = path.relative_to(root).with_suffix("").parts
            found[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return found


def imported_by(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                is_module = name.removeprefix("steelyard.") in modules
                yield name if is_module else node.module


def needs_of_python(root: Path = ROOT) -> dict[str, set[str]]:
    """What each module imports of ours: at its head, within a function, for annotations alone."""
    modules = modules_of(root)
    return {
        name: {
            found.removeprefix("steelyard.")
            for found in imported_by(path, modules)
            if found.removeprefix("steelyard.") in modules
        }
        - {name}
        for name, path in modules.items()
    }


@pytest.mark.parametrize("folder", folders_of_c(), ids=lambda path: str(path.relative_to(ROOT)))
def test_c_files_of_a_folder_need_each_other_in_no_circle(folder: Path) -> None:
    assert circle_of(needs_of_c(folder)) == []
    assert circle_of(calls_of_c(folder)) == []


def test_python_modules_need_each_other_in_no_circle() -> None:
    needs = needs_of_python()
    assert circle_of(needs) == []
    assert sum(map(len, needs.values())) > 1000


@pytest.mark.parametrize(("second", "seen"), [('#include "room/a.h"', True), ("", False)])
def test_a_planted_circle_of_c_is_seen(tmp_path: Path, second: str, seen: bool) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    for name, line in {"a.h": "", "b.h": second, "a.c": '#include "b.h"', "b.c": ""}.items():
        (folder / name).write_text(f"{line}\n", encoding="utf-8")
    assert sorted(set(circle_of(needs_of_c(folder)))) == (["a", "b"] if seen else [])


def test_a_planted_circle_of_calls_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    header = "void first(void);\nvoid second(int a,\n\t    int b);\n"
    for name, text in {
        "a.h": header,
        "a.c": '#include "a.h"\nvoid first(void)\n{\n\tsecond(1, 2);\n}\n',
        "b.c": '#include "a.h"\nvoid second(int a,\n\t    int b)\n{\n\tfirst();\n}\n',
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert sorted(set(circle_of(calls_of_c(folder)))) == ["a", "b"]


@pytest.mark.parametrize(
    ("second", "seen"),
    [
        ("def late():\n    from steelyard.analysis import first\n", True),
        ("from steelyard.analysis.first import name\n", True),
        ("if TYPE_CHECKING:\n    from steelyard.analysis.first import Name\n", True),
        ("from steelyard.facts import first\n", False),
    ],
)
def test_a_planted_circle_of_python_is_seen(tmp_path: Path, second: str, seen: bool) -> None:
    (tmp_path / "analysis").mkdir()
    first = "import steelyard.analysis.second\n"
    for name, text in {"first": first, "second": second}.items():
        (tmp_path / "analysis" / f"{name}.py").write_text(text, encoding="utf-8")
    circle = set(circle_of(needs_of_python(tmp_path)))
    assert circle == ({"analysis.first", "analysis.second"} if seen else set())
