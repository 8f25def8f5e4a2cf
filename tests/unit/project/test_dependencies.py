"""setup.cfg declares exactly what the packages import."""

from __future__ import annotations

import ast
import configparser
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOP = ("facts", "analysis", "jobscripts", "wrappers")
AT_RUN_TIME = ("hep", "man", "mpi", "notebook", "spark")  # of the extras
BROUGHT = {"markupsafe", "cramjam"}  # part of the interface of jinja2, and of uproot


def declared() -> set[str]:
    """Return the distributions that Steelyard requires, and optional ones."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    extras = parser["options.extras_require"]
    lists = [parser["options"]["install_requires"], *(extras[name] for name in AT_RUN_TIME)]
    names = [name for text in lists for name in re.findall(r"^([a-z0-9-]+)", text, re.MULTILINE)]
    return {name.replace("-", "_") for name in names}


def imported(tree: ast.AST) -> Iterator[str]:
    """Top-level modules that a file imports, in functions too, or looks for by a name in quotes."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module
            case ast.Call(
                func=ast.Attribute(attr="find_spec"), args=[ast.Constant(value=str(name))]
            ):
                yield name


def test_every_dependency_is_imported_and_every_import_is_declared() -> None:
    """PyPI's names are the modules' in small letters, for all that we have."""
    files = [path for top in TOP for path in (ROOT / top).rglob("*.py")]
    found = {
        name.partition(".")[0].lower()
        for path in files
        for name in imported(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found - sys.stdlib_module_names - {"steelyard"} == declared() | BROUGHT
