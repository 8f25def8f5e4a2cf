"""Reads rows of a .def file, which C includes: NAME(cell, cell, …), with identifiers or strings."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator

ROW = re.compile(r"^([A-Z]+)\((.*?)\)$", re.MULTILINE | re.DOTALL)
TEXT_CONTINUED = re.compile(r'"\s+"')
CELL = re.compile(r'"([^"]*)"|(\w+)')


def rows(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the cells of each row."""
    for name, row in ROW.findall(text):
        yield name, [quoted or bare for quoted, bare in CELL.findall(TEXT_CONTINUED.sub("", row))]


def text_of(name: str) -> str:
    """Return the text of a file of this folder."""
    return importlib.resources.files(__package__).joinpath(name).read_text("utf-8")
