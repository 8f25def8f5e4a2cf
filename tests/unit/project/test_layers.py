"""The rooms of CONTRIBUTING.md's map: each is there, and imports only from rooms above it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What each package may import besides itself.
PACKAGES = {
    "jobscripts": {"facts"},
    "analysis": {"facts", "jobscripts"},
    "wrappers": {"facts", "jobscripts", "analysis"},
}


def mapped() -> list[str]:
    """Return the rooms in the map's order."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## The map")[2].partition("\n## ")[0]
    return re.findall(r"^\| ([a-z][\w./]*) \|", table, re.MULTILINE)[1:]  # but its head


def rooms_of(package: str, root: Path = ROOT) -> list[str]:
    """Return folders and files directly below a package that hold Python, without tests."""
    found = {
        path.relative_to(root / package).parts[0]
        for path in (root / package).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    return sorted(found - {"__init__.py"})


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Return line and dotted name of everything that is imported anywhere in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def upward(package: str, rooms: list[str], root: Path = ROOT) -> Iterator[str]:
    """Yield imports against the order, as FILE:LINE: NAME."""
    order = [room.removeprefix(f"{package}/").removesuffix(".py") for room in rooms]
    for path in sorted((root / package).rglob("*.py")):
        inside = path.relative_to(root / package)
        here = inside.parts[0].removesuffix(".py")
        for line, name in imports(path):
            words = name.split(".")
            if words[0] != "steelyard" or len(words) < 3 or here == "__init__":
                continue
            wrong = words[1] != package and words[1] not in PACKAGES[package]
            if words[1] == package and words[2] in order and here in order:
                wrong = order.index(words[2]) > order.index(here)
            if wrong:
                yield f"{path.relative_to(root)}:{line}: {name}"


@pytest.mark.parametrize("package", PACKAGES)
def test_a_room_imports_only_from_rooms_above_it(package: str) -> None:
    rooms = [room for room in mapped() if room.startswith(f"{package}/")]
    assert list(upward(package, rooms)) == []


@pytest.mark.parametrize("package", ["analysis", "wrappers"])
def test_every_room_is_in_the_map(package: str) -> None:
    rooms = [room for room in mapped() if room.startswith(f"{package}/")]
    assert sorted(room.removeprefix(f"{package}/") for room in rooms) == rooms_of(package)


def test_every_room_of_the_map_is_there() -> None:
    absent = [room for room in mapped() if not (ROOT / room).exists()]
    assert not absent
    assert len(mapped()) == len(set(mapped())) > 30


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("from steelyard.analysis.report import page\n", True),
        ("def late():\n    from steelyard.analysis.report.page import render\n", True),
        ("from steelyard.analysis import api\n", True),
        ("import steelyard.wrappers.base.errors\n", True),
        ("from steelyard.analysis.base import errors\n", False),
        ("from steelyard.jobscripts import registry\n", False),
    ],
)
def test_an_upward_import_is_seen(tmp_path: Path, text: str, seen: bool) -> None:
    file = tmp_path / "analysis" / "stats" / "planted.py"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    rooms = [room for room in mapped() if room.startswith("analysis/")]
    assert bool(list(upward("analysis", rooms, tmp_path))) == seen
