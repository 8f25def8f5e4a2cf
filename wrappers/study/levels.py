"""The notations for a factor's levels: a list, a range of numbers, files by a pattern, each
node."""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from steelyard.analysis.base.level_names import FILES, NODE, RANGE, format_level, has_names
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.study.table_reader import Table

MOST_LEVELS = 10_000
ALLOWED = (
    "a list of levels, at least one; a range { from = 1, to = 8 }, with step or factor; "
    '{ files = "data/*.root" }, with sample; or names, { near = "delay=1ms", far = "delay=50ms" }'
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}")

EACH = "each"  # node = "each": the nodes that are up at the first submission

# For factors that are files or each node: what was requested, and the levels drawn for it.
Drawn = dict[str, dict[str, Any]]


def read_levels(table: Table, name: str, seed: int, recorded_levels: Drawn) -> tuple[object, ...]:
    """Return the levels of a factor. Files are searched once: an entry of `drawn` with the same
    request is reused, and a new result is added to `drawn`."""
    value = table.data[name]
    if name == NODE and isinstance(value, str):
        return tuple(read_nodes(table, recorded_levels))
    if not (isinstance(value, dict) and "files" in value):
        recorded_levels.pop(name, None)  # an entry of an earlier study file
    if not isinstance(value, dict):
        if not isinstance(value, list) or not value:
            table.wrong(name, value, ALLOWED)
        if name == NODE and EACH in value:
            table.fail(name, f'{shown(EACH)} in a list: write node = "each", or name the nodes')
        return table.levels(name)
    entry = table.table(name)
    if "files" in value:
        return tuple(read_files(entry, seed, name, recorded_levels))
    if not value:
        table.wrong(name, value, ALLOWED)
    return read_named_levels(entry) if has_names(value) else tuple(read_range(entry))


def read_nodes(table: Table, recorded_levels: Drawn) -> list[str]:
    """Return the drawn nodes of `node = "each"`. Until a scheduler has been queried
    (submit.each_node_levels), EACH is the only level, and the entry in `drawn` has none."""
    if table.data[NODE] != EACH:
        table.wrong(NODE, table.data[NODE], 'a list of nodes such as ["n1", "n2"], or "each"')
    if recorded_levels.get(NODE, {}).get("nodes") != EACH:
        recorded_levels[NODE] = {"nodes": EACH, "of": 0, "levels": []}
    return list(recorded_levels[NODE]["levels"]) or [EACH]


def read_named_levels(entry: Table) -> tuple[object, ...]:
    """Return the levels of a table from name to level."""
    found: dict[str, str] = {}
    for name, level in entry.data.items():
        if not NAME.fullmatch(name):
            entry.fail(
                name,
                "a level's name has at most 32 letters, digits, '_', '.', '+' and '-', a letter or "
                "digit first",
            )
        if not isinstance(level, str | int | float):
            entry.wrong(name, level, "a text, a number, true or false")
        if format_level(level) in found:
            entry.fail(name, f"{shown(level)} is the level {found[format_level(level)]} already")
        found[format_level(level)] = name
    for text, name in found.items():
        if found.get(name, name) != name:
            entry.fail(name, f"is the level of {found[name]}, too: choose another name for {text}")
    return tuple(entry.data.values())


def read_range(entry: Table) -> Iterator[int | float]:
    """Yield `from` and the numbers after it, by `step` or times `factor`, up to `to`."""
    entry.only((*RANGE, *FILES))
    if "step" in entry.data and "factor" in entry.data:
        entry.fail("factor", "step is given, too: a range has one of them")
    for key in ("from", "to"):
        if key not in entry.data:
            entry.fail(key, "missing: a range has from and to")
    first, last = read_number(entry, "from"), read_number(entry, "to")
    by = read_number(entry, "factor") if "factor" in entry.data else None
    step = read_number(entry, "step") if "step" in entry.data else Decimal(1)
    if last < first:
        entry.wrong("to", entry.data["to"], f"not less than from = {first}")
    if by is not None and (by <= 1 or first <= 0):
        key = "factor" if by <= 1 else "from"
        entry.wrong(key, entry.data[key], "above 1" if by <= 1 else "above 0 with a factor")
    if step <= 0:
        entry.wrong("step", entry.data["step"], "above 0")
    is_integer = all(isinstance(entry.data.get(key, 1), int) for key in ("from", "step", "factor"))
    for count, level in enumerate(list_steps(first, last, step, by)):
        if count >= MOST_LEVELS:
            entry.fail("to", f"more than {MOST_LEVELS} levels")
        yield int(level) if is_integer else float(level)


def list_steps(
    first: Decimal, last: Decimal, step: Decimal, by: Decimal | None
) -> Iterator[Decimal]:
    """Yield a range's numbers as decimals, so that 0.1 + 0.2 is 0.3."""
    level = first
    while level <= last:
        yield level
        level = level + step if by is None else level * by


def read_number(entry: Table, key: str) -> Decimal:
    """Return a number in the decimal notation of the file."""
    value = entry.data[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        entry.wrong(key, value, "a number")
    found = Decimal(str(value))
    if not found.is_finite():
        entry.wrong(key, value, "a number")
    return found


def read_files(entry: Table, seed: int, name: str, recorded_levels: Drawn) -> list[str]:
    """Return files that match a pattern, all of them or a random sample. The same request returns
    the files in `drawn`."""
    entry.only(FILES)
    pattern = entry.data["files"]
    if not isinstance(pattern, str) or not pattern:
        entry.wrong("files", pattern, 'a pattern such as "data/*.root", from the study file on')
    sample = entry.integer("sample", None, 1, MOST_LEVELS)
    own_seed = entry.count("seed", seed, least=0, most=2**63 - 1)
    request: dict[str, Any] = {"files": pattern, "sample": sample, "seed": own_seed}
    before = recorded_levels.get(name)
    if isinstance(before, Mapping) and all(before.get(key) == request[key] for key in request):
        return list(before["levels"])
    found = sorted(str(path) for path in find_files(entry.file, pattern))
    if not found or (sample is not None and len(found) < sample):
        what = counted(len(found), "file") if found else "no file"
        least = f"at least sample = {counted(sample, 'file')}" if sample else "at least one file"
        entry.fail("files", f"{pattern}: {what} there, expected {least} (from {entry.file.parent})")
    if len(found) > MOST_LEVELS and sample is None:
        entry.fail("files", f"{pattern}: {len(found)} files: give sample = N")
    for path in found:
        if not path.isprintable():
            entry.fail("files", f"{path!r}: a file's name must be printable, in one line")
    chosen = sorted(shuffle_files(found, own_seed, entry.file.absolute().parent)[:sample])
    recorded_levels[name] = {**request, "of": len(found), "levels": chosen}
    return chosen


def find_files(file: Path, pattern: str) -> Iterator[Path]:
    """Yield regular files by absolute path: each run has its own working folder."""
    base = file.absolute().parent
    # Path.glob takes no absolute pattern.
    for path in glob.iglob(pattern, root_dir=base, recursive=True):  # noqa: PTH207
        if (base / path).is_file():
            yield base / path


def shuffle_files(paths: list[str], seed: int, base: Path) -> list[str]:
    """Sort the files by a hash of seed and name, so that a larger sample contains the smaller
    one."""

    def key(path: str) -> bytes:
        name = os.path.relpath(path, base)  # the same wherever the study's folder is
        return hashlib.sha256(f"{seed}:{name}".encode("utf-8", "surrogateescape")).digest()

    return sorted(paths, key=key)
