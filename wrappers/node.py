"""Where the program steelyard-node is: the C part that probes, samples and records."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from steelyard.wrappers.errors import MissingError

PROGRAM = "steelyard-node"
INSTALLED = (Path("/usr/local/libexec/steelyard"), Path("/usr/libexec/steelyard"))


def find_node_program() -> Path:
    """The first of: $STEELYARD_NODE, the checkout's build/bin, PATH, libexec; else MissingError."""
    named = os.environ.get("STEELYARD_NODE")
    if named:
        if is_program(Path(named)):
            return Path(named)
        raise MissingError(f"STEELYARD_NODE={named}: no program that can be run")
    for path in candidates():
        if is_program(path):
            return path
    looked = ", ".join(str(folder) for folder in (built_programs(), *INSTALLED))
    raise MissingError(
        f"{PROGRAM} is missing (looked in PATH, {looked}): say `make all` in the checkout, "
        "or set STEELYARD_NODE to its path"
    )


def built_programs() -> Path:
    """build/bin of the checkout that this package is imported from (there or not)."""
    return Path(__file__).resolve().parent.parent / "build" / "bin"


def candidates() -> list[Path]:
    """All places to look in, in order."""
    on_path = shutil.which(PROGRAM)
    return [
        built_programs() / PROGRAM,
        *([Path(on_path)] if on_path else []),
        *(folder / PROGRAM for folder in INSTALLED),
    ]


def is_program(path: Path) -> bool:
    """A file that may be executed."""
    return path.is_file() and os.access(path, os.X_OK)
