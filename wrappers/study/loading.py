"""A study file together with its folder, where it has one already."""

from __future__ import annotations

from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.wrappers.study import study
from steelyard.wrappers.study.folder import PLAN, folder_of
from steelyard.wrappers.study.levels import Drawn
from steelyard.wrappers.study.study import Study


def load(toml: Path, directory: Path | None = None) -> tuple[Study, Path]:
    """The checked study and its folder; files that its plan has drawn stay drawn."""
    if not toml.is_file():
        return study.load(toml), toml  # says what is wrong
    folder = folder_of(toml, directory)
    return study.load(toml, drawn_before(toml, folder)), folder


def drawn_before(toml: Path, folder: Path) -> Drawn:
    """What the plan says was drawn; a plan is large, and most studies draw nothing."""
    if b"files" not in toml.read_bytes() or not (folder / PLAN).is_file():
        return {}
    found = study_files.read_plan(folder).study.get("drawn")
    return found if isinstance(found, dict) else {}
