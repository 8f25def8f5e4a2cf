"""Reads a run's parameters, and prepares its input file."""

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
    """Return the parameters from job.sh's environment (SY_PARAM_NAME), converted to their types."""
    known = registry.load(benchmark).parameters
    given = {
        name: CONVERT[item.type](os.environ[f"SY_PARAM_{name.upper()}"])
        for name, item in known.items()
    }
    return registry.load(benchmark).check_parameters(given)


def recipe(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the input file's recipe; the benchmark xrootd always has collision events."""
    keys = ("compression", "events", "cluster", "seed")
    return {
        "structure": parameters.get("structure", "jagged"),
        **{key: parameters[key] for key in keys},
    }


def own_file(path: Path) -> Path:
    """Return the path of the user's own file; raise DataError if it cannot be read."""
    if not path.is_file() or not os.access(path, os.R_OK):
        raise input_files.DataError(
            f"file = {path}: expected a file that can be read on {os.uname().nodename}, the node "
            "with the server; found none"
        )
    return path


def prepare_input(
    parameters: Mapping[str, Value], scratch: Path
) -> tuple[Path, dict[str, Any] | None]:
    """Return the input's checked path on this node, and its note (input_files.keep_file).

    The input is in the folder `data` if one is given. Otherwise it is stored in the study's folder
    and copied into `scratch`, since the study may be on a network file system that is not to be
    measured. A user's own `file` is used as it is, without a note. On a read-only file system the
    input is not checked beforehand, since that would put it into CVMFS' cache. The values are
    checked in any case.
    """
    if parameters.get("file"):
        return own_file(Path(str(parameters["file"]))), None
    folder = Path(str(parameters["data"]) or Path(os.environ["SY_STUDY_DIR"]) / "data")
    known = input_files.keep_file(folder, recipe(parameters))
    path = folder / known["file"]
    if input_files.is_read_only(folder):
        return path, known
    try:
        path = input_files.checked(path, known, None if parameters["data"] else scratch / path.name)
    except OSError as error:
        raise input_files.DataError(f"the input {path} cannot be used: {error}") from error
    return path, known
