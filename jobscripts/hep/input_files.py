"""Input files that are made once and kept: FILE.root, and beside it FILE.root.json that knows it.

Two runs that want the same file at the same time wait for each other at FILE.root.lock. A file is
used again only when the SHA-256 of its content is the one that was noted when it was made.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.jobscripts.hep.tree_writer import Recipe

FORMAT, VERSION = "steelyard-hep-data", 1
PIECE = 4 << 20
# Of the values of an event, before compression; jagged ones vary.
EVENT_BYTES = {"flat": 160, "many": 1600, "jagged": 140, "unsplit": 160}


class DataError(Exception):
    """An input file that cannot be made or must not be used; one line."""


def file_name(recipe: Recipe) -> str:
    """A name that says what is inside."""
    keys = ("structure", "compression", "events", "cluster", "seed")
    return "-".join(str(recipe[key]) for key in keys) + ".root"


def keep_file(folder: Path, recipe: Recipe) -> dict[str, Any]:
    """What is known about the file of this recipe in `folder`; it is made when it is not there.

    Keys: `file` (its name), `bytes`, `sha256`, `recipe`, and what `tree_writer.write` returns.
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
    """Whether it is on a file system that cannot be written to, such as a CVMFS repository."""
    return folder.is_dir() and bool(os.statvfs(folder).f_flag & os.ST_RDONLY)


def existing(path: Path, recipe: Recipe) -> dict[str, Any]:
    """What is known about a file that cannot be made where it is."""
    known = read_note(path, recipe)
    if known is None:
        raise DataError(
            f"{path.parent} is read-only: expected {path.name} and {note_of(path).name} in it; make "
            "them in another folder with the same parameters, and copy both there"
        )
    return known


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Whoever else wants it waits; over NFS too (flock is a byte-range lock there: flock(2))."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def note_of(path: Path) -> Path:
    """The file that knows `path`."""
    return path.with_name(path.name + ".json")


def read_note(path: Path, recipe: Recipe) -> dict[str, Any] | None:
    """What was noted; None when there is no such file yet."""
    note = note_of(path)
    if not note.exists():
        return None
    known = check_note(note.read_text(encoding="utf-8"), str(note))
    if known["recipe"] != dict(recipe):
        raise DataError(f"{note} is of another recipe: remove it and {path.name}")
    return known


def check_note(text: str, where: str) -> dict[str, Any]:
    """A note's content; DataError for anything else."""
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
    """DataError before a file of hours is begun for which there is no room: as large as its values,
    which compression only makes smaller."""
    need = EVENT_BYTES[str(recipe["structure"])] * int(recipe["events"])
    there = os.statvfs(path.parent)
    free = there.f_bavail * there.f_frsize
    if free < need:
        raise DataError(
            f"the input needs at most {need / 1e6:.0f} MB in {path.parent}, where "
            f"{free / 1e6:.0f} MB are free: give events = less, or data = a folder with room"
        )


def make(path: Path, recipe: Recipe) -> dict[str, Any]:
    """Make file and note, each whole or not at all; the note last."""
    check_room(path, recipe)
    # Here, since numpy takes a second to import where system calls are slow.
    from steelyard.jobscripts.hep import tree_writer

    part = path.with_name(f".{path.name}.part")
    try:
        found = tree_writer.write(part, recipe)
        known = {"format": FORMAT, "version": VERSION, "file": path.name, "recipe": dict(recipe)}
        known |= {"bytes": part.stat().st_size, "sha256": sha256(part), **found}
        flush(part)
        part.rename(path)
        write_whole(note_of(path), json.dumps(known, indent=1) + "\n")
    finally:
        part.unlink(missing_ok=True)
    return known


def flush(path: Path) -> None:
    """Its bytes are on the disk afterwards."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_whole(path: Path, text: str) -> None:
    """A text under its name at once."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    flush(part)
    part.rename(path)


def sha256(path: Path, copy: Path | None = None) -> str:
    """SHA-256 of a file's content; with `copy` the same bytes are also written there."""
    digest = hashlib.sha256()
    with path.open("rb") as source, (copy or Path(os.devnull)).open("wb") as target:
        while piece := source.read(PIECE):
            digest.update(piece)
            target.write(piece)
    return digest.hexdigest()


def checked(path: Path, known: dict[str, Any], copy: Path | None = None) -> Path:
    """The file, or its copy, when it is the one that was made; DataError when it is not."""
    found = sha256(path, copy)
    if found != known["sha256"]:
        raise DataError(
            f"{path} is not the file that was made: its SHA-256 is {found} instead of "
            f"{known['sha256']}; remove it and {note_of(path).name}, and it will be made anew"
        )
    return copy or path
