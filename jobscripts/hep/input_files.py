"""Input files that are made once: FILE.root, and FILE.root.json, a note that describes it.

Two runs that need the same file at the same time wait for each other with a lock on FILE.root.lock.
A file is reused only if its SHA-256 is the one that the note recorded.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.jobscripts import registry
from steelyard.jobscripts.parameters import Value

if TYPE_CHECKING:
    from steelyard.jobscripts.hep.tree_writer import Recipe

FORMAT, VERSION = "steelyard-hep-data", 1
PIECE = 4 << 20
# Bytes of the values of an event, before compression; jagged ones vary.
EVENT_BYTES = {"flat": 160, "many": 1600, "jagged": 140, "unsplit": 160}


class DataError(Exception):
    """An input file cannot be made or must not be used; the message is one line."""


def file_name(recipe: Recipe) -> str:
    """Return a name that contains the recipe."""
    keys = ("structure", "compression", "events", "cluster", "seed")
    return "-".join(str(recipe[key]) for key in keys) + ".root"


def keep_file(folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Return the note of this recipe's file in `folder`; make the file if it is missing.

    Keys: `file` (its name), `bytes`, `sha256`, `recipe`, and those of `tree_writer.write`. Raises
    DataError.
    """
    path = folder / file_name(recipe)
    try:
        if is_read_only(folder):
            return existing(path, recipe)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(path.with_name(path.name + ".lock")):
            known = read_note(path, recipe)
            return make(path, recipe) if known is None else known
    except OSError as error:
        raise DataError(f"the input cannot be kept in {folder}: {error}") from error


def is_read_only(folder: Path) -> bool:
    """Whether a folder is on a read-only file system, such as a CVMFS repository."""
    return folder.is_dir() and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def existing(path: Path, recipe: Recipe) -> dict[str, Any]:
    """Return the note of a file on a read-only file system; raise DataError if it is missing."""
    known = read_note(path, recipe)
    if known is None:
        raise DataError(
            f"{path.parent} is read-only: expected {path.name} and {note_of(path).name} in it; make "
            "them in another folder with the same parameters, and copy both there"
        )
    return known


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock, also over NFS, where flock is a byte-range lock (flock(2))."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def note_of(path: Path) -> Path:
    """Return the path of a file's note."""
    return path.with_name(path.name + ".json")


def read_note(path: Path, recipe: Recipe) -> dict[str, Any] | None:
    """Return the note's content; None if it does not exist."""
    note = note_of(path)
    if not note.exists():
        return None
    known = check_note(note.read_text(encoding="utf-8"), str(note))
    if known["recipe"] != dict(recipe):
        raise DataError(f"{note} is of another recipe: remove it and {path.name}")
    return known


def check_note(text: str, where: str) -> dict[str, Any]:
    """Return a note's content; raise DataError if it is not valid."""
    try:
        known = json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is no JSON: {error}") from error
    if not isinstance(known, dict) or (known.get("format"), known.get("version")) != (
        FORMAT,
        VERSION,
    ):
        raise DataError(f"{where} is not version {VERSION} of a note about an input file")
    return known


def check_room(path: Path, recipe: Recipe) -> None:
    """Raise DataError if there is too little space, before a long file is begun.

    The size is that of the values, since compression only reduces it.
    """
    need = EVENT_BYTES[str(recipe["structure"])] * int(recipe["events"])
    status = os.statvfs(path.parent)
    free = status.f_bavail * status.f_frsize
    if free < need:
        raise DataError(
            f"the input needs at most {need / 1e6:.0f} MB in {path.parent}, where "
            f"{free / 1e6:.0f} MB are free: give events = less, or data = a folder with room"
        )


def make(path: Path, recipe: Recipe) -> dict[str, Any]:
    """Make file and note, each complete or not at all; the note last."""
    check_room(path, recipe)
    # Imported here, since numpy takes a second to import where system calls are slow.
    from steelyard.jobscripts.hep import tree_writer

    temporary = path.with_name(f".{path.name}.part")
    try:
        found = tree_writer.write(temporary, recipe)
        known = {"format": FORMAT, "version": VERSION, "file": path.name, "recipe": dict(recipe)}
        known |= {"bytes": temporary.stat().st_size, "sha256": sha256(temporary), **found}
        flush(temporary)
        temporary.rename(path)
        write_atomically(note_of(path), json.dumps(known, indent=1) + "\n")
    finally:
        temporary.unlink(missing_ok=True)
    return known


def flush(path: Path) -> None:
    """Write a file's data to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_atomically(path: Path, text: str) -> None:
    """Write a text atomically."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(text, encoding="utf-8")
    flush(temporary)
    temporary.rename(path)


def sha256(path: Path, copy: Path | None = None) -> str:
    """Return the SHA-256 of a file's content; with `copy`, the bytes are also written there."""
    digest = hashlib.sha256()
    with path.open("rb") as source, (copy or Path(os.devnull)).open("wb") as target:
        while piece := source.read(PIECE):
            digest.update(piece)
            target.write(piece)
    return digest.hexdigest()


def checked(path: Path, known: dict[str, Any], copy: Path | None = None) -> Path:
    """Return the file, or its copy; raise DataError if its SHA-256 is not the recorded one."""
    found = sha256(path, copy)
    if found != known["sha256"]:
        raise DataError(
            f"{path} is not the file that was made: its SHA-256 is {found} instead of "
            f"{known['sha256']}; remove it and {note_of(path).name}, and it will be made anew"
        )
    return copy or path


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
        raise DataError(
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
    known = keep_file(folder, recipe(parameters))
    path = folder / known["file"]
    if is_read_only(folder):
        return path, known
    try:
        path = checked(path, known, None if parameters["data"] else scratch / path.name)
    except OSError as error:
        raise DataError(f"the input {path} cannot be used: {error}") from error
    return path, known
