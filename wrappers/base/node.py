"""Where the program steelyard-node is: the C part that probes, samples and records."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from steelyard.analysis.sources.native import BUILT, INSTALLED
from steelyard.wrappers.base.errors import MissingError

PROGRAM = "steelyard-node"


def find_node_program() -> Path:
    """The first of: $STEELYARD_NODE, the checkout's build/bin, PATH, libexec; else MissingError."""
    named = os.environ.get("STEELYARD_NODE")
    if named and not is_program(Path(named)):
        raise MissingError(f"STEELYARD_NODE={named}: no program that can be run")
    found = find_program(PROGRAM)
    if found is None:
        looked = ", ".join(str(folder) for folder in (built_programs(), *INSTALLED))
        raise MissingError(
            f"{PROGRAM} is missing (looked in PATH, {looked}): say `make all` in the checkout, "
            "or set STEELYARD_NODE to its path"
        )
    return found


def find_program(name: str) -> Path | None:
    """A program of ours by its variable, build/bin, PATH or libexec; any other one by PATH."""
    on_path = shutil.which(name)
    if not name.startswith("steelyard-"):
        return Path(on_path) if on_path else None
    named = os.environ.get(variable(name))
    places = [
        *([Path(named)] if named else []),
        built_programs() / name,
        *([Path(on_path)] if on_path else []),
        *(folder / name for folder in INSTALLED),
    ]
    return next((path for path in places if is_program(path)), None)


def variable(program: str) -> str:
    """The variable that leads to one of our programs: STEELYARD_NODE, STEELYARD_FSTEST."""
    return program.upper().replace("-", "_")


def built_programs() -> Path:
    """build/bin of the checkout that this package is imported from (there or not)."""
    return BUILT / "bin"


def is_program(path: Path) -> bool:
    """A file that may be executed."""
    return path.is_file() and os.access(path, os.X_OK)
