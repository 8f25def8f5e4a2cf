"""Writes the input files: ROOT trees by uproot, with a basket of each branch per block of events.

A recipe is a dictionary of plain values that identifies a file. `write` makes the file and returns
what a reader must find in it. Structures:

flat      40 numbers per event, each in its own branch, like the members of a split record
many      400 numbers per event
jagged    collision events with varying numbers of particles (events.py)
unsplit   the numbers of flat in one branch: an array of 40
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from steelyard.jobscripts.hep.events import JAGGED, Array, Events, Pairs, reckon, short

Recipe = Mapping[str, Any]  # structure, compression, events, cluster, seed

TREE = "Events"
LEVELS = {"zlib": 1, "lz4": 4, "zstd": 5, "lzma": 7}  # ROOT's defaults, core/zip/inc/Compression.h
WIDTH = {"flat": 40, "many": 400, "unsplit": 40}


class Digests:
    """Computes one SHA-256 of all values, independent of how they are divided."""

    def __init__(self) -> None:
        self.columns: dict[str, hashlib._Hash] = {}

    def add(self, name: str, values: Array) -> None:
        """Add the next values of a column; jagged ones are flat."""
        little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        self.columns.setdefault(name, hashlib.sha256()).update(little.data)

    def result(self) -> str:
        """Return the digest of the columns' names and of their own SHA-256s."""
        lines = [f"{name} {self.columns[name].hexdigest()}\n" for name in sorted(self.columns)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def blocks(recipe: Recipe) -> Iterator[dict[str, Array]]:
    """Yield the flat columns of each basket's events."""
    events, cluster = int(recipe["events"]), int(recipe["cluster"])
    source = Events(int(recipe["seed"]))
    for number, first in enumerate(range(0, events, cluster)):
        count = min(cluster, events - first)
        if recipe["structure"] == "jagged":
            yield source.block(number, first, count)
        else:
            yield record(recipe, number, count)


def record(recipe: Recipe, number: int, count: int) -> dict[str, Array]:
    """Return `WIDTH` numbers per event: every second one a float, the others small integers."""
    rng = np.random.default_rng([int(recipe["seed"]), number])
    columns: dict[str, Array] = {}
    for i in range(WIDTH[recipe["structure"]]):
        values = short(rng.normal(0.0, 1.0 + i, count))
        columns[f"x{i:03}"] = values if i % 2 == 0 else np.rint(values).astype(np.float32)
    if recipe["structure"] == "unsplit":
        return {"x": np.stack(list(columns.values()), axis=1)}
    return columns


def write(path: Path, recipe: Recipe) -> dict[str, Any]:
    """Make the file; return `raw_bytes`, `content_sha256`, and for jagged ones `pairs`."""
    import uproot

    structure = str(recipe["structure"])
    pairs, digests, raw_bytes, tree = Pairs(), Digests(), 0, None
    with uproot.recreate(path, compression=compression(str(recipe["compression"]))) as file:
        for columns in blocks(recipe):
            if structure == "jagged":
                reckon(columns, pairs)
            raw_bytes += sum(column.nbytes for column in columns.values())
            for name, column in columns.items():
                digests.add(name, column)
            arrays = written(columns, structure)
            tree = file.mktree(TREE, types_of(arrays)) if tree is None else tree
            tree.extend(arrays)
    found: dict[str, Any] = {"raw_bytes": raw_bytes, "content_sha256": digests.result()}
    return {**found, "pairs": pairs.result()} if structure == "jagged" else found


def compression(name: str) -> Any:
    """Return uproot's object for a compression's name."""
    import uproot

    if name == "none":
        return None
    return getattr(uproot, name.upper())(LEVELS[name])


def written(columns: Mapping[str, Array], structure: str) -> dict[str, Any]:
    """Return the columns in uproot's form: jagged ones are grouped by their prefix."""
    import awkward as ak

    if structure != "jagged":
        return dict(columns)
    arrays: dict[str, Any] = {}
    for name, column in columns.items():
        prefix = name.partition("_")[0]
        if prefix not in JAGGED and name.removeprefix("n") not in JAGGED:
            arrays[name] = column
    for prefix in JAGGED:
        members = {n.partition("_")[2]: c for n, c in columns.items() if n.startswith(f"{prefix}_")}
        arrays[prefix] = ak.unflatten(ak.zip(members), columns[f"n{prefix}"])
    return arrays


def types_of(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the branch types for `mktree`."""
    return {
        name: (array.dtype, array.shape[1:]) if isinstance(array, np.ndarray) else array.type
        for name, array in arrays.items()
    }
