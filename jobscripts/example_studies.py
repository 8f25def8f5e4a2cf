"""The example studies, jobscripts/studies/*.toml: published experiments, ready to be adapted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent / "studies"


class Example(NamedTuple):
    """A study file and its first line, a comment with the study's question."""

    name: str
    summary: str
    path: Path


def examples() -> list[Example]:
    """Return all examples, sorted by name."""
    return [Example(path.stem, summary(path), path) for path in sorted(FOLDER.glob("*.toml"))]


def summary(path: Path) -> str:
    """Return the comment on the first line, without its `#`."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip()
