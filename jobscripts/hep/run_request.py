"""What a run asks for: its parameters, and the input file they mean."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steelyard.jobscripts import registry
from steelyard.jobscripts.hep import input_files
from steelyard.jobscripts.parameters import Value

CONVERT: dict[str, Callable[[str], Value]] = {
    "int": int,
    "size": int,
    "float": float,
    "string": str,
    "command": str,
    "bool": lambda text: text == "true",
}


def parameters(benchmark: str) -> dict[str, Value]:
    """The parameters in the environment of job.sh (SY_PARAM_NAME), each in its type."""
    known = registry.load(benchmark).parameters
    given = {
        name: CONVERT[item.type](os.environ[f"SY_PARAM_{name.upper()}"])
        for name, item in known.items()
    }
    return registry.load(benchmark).check_parameters(given)


def recipe(asked: Mapping[str, Value]) -> dict[str, Value]:
    """Of the input file; the benchmark xrootd always has collision events."""
    keys = ("compression", "events", "cluster", "seed")
    return {"structure": asked.get("structure", "jagged"), **{key: asked[key] for key in keys}}


def own_file(path: Path) -> Path:
    """A file that Steelyard has not made."""
    if not path.is_file() or not os.access(path, os.R_OK):
        raise input_files.DataError(
            f"file = {path}: expected a file that can be read on {os.uname().nodename}, the node "
            "with the server; found none"
        )
    return path


def place(asked: Mapping[str, Value], scratch: Path) -> tuple[Path, dict[str, Any] | None]:
    """The input's path on this node, checked, and what is known about it (input_files.keep_file).

    In the folder `data` when one is given; else it is kept in the study's folder and copied into
    `scratch`: the study may lie on a network file system that is not the one to be measured. A
    file of the user's own, `file`, is taken as it is; nothing is known about it. On a read-only file
    system the input is not read beforehand: CVMFS, for one, would have cached it. The values are
    checked in any case.
    """
    if asked.get("file"):
        return own_file(Path(str(asked["file"]))), None
    kept = Path(str(asked["data"]) or Path(os.environ["SY_STUDY_DIR"]) / "data")
    known = input_files.keep_file(kept, recipe(asked))
    path = kept / known["file"]
    if input_files.is_read_only(kept):
        return path, known
    try:
        path = input_files.checked(path, known, None if asked["data"] else scratch / path.name)
    except OSError as error:
        raise input_files.DataError(f"the input {path} cannot be used: {error}") from error
    return path, known
