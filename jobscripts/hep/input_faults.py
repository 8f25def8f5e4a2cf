"""Describes in one line what is wrong in an input file: no ROOT file, tree or branch, or damage."""

from __future__ import annotations

import lzma
import struct
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from steelyard.jobscripts.hep.counting_reader import ReadError

# Exceptions that uproot and the decompressors raise for damaged bytes. Those that uproot and
# cramjam define themselves are added below.
DAMAGE = (
    *(ArithmeticError, AssertionError, EOFError, LookupError, NotImplementedError, RuntimeError),
    *(TypeError, ValueError, lzma.LZMAError, struct.error, zlib.error),
)
MOST_NAMES = 8


def damage() -> tuple[type[Exception], ...]:
    """Return DAMAGE and the exceptions that uproot and its decompressor define."""
    import cramjam
    import uproot

    return (*DAMAGE, uproot.DeserializationError, cramjam.DecompressionError)


@contextmanager
def name_fault(where: str, what: str) -> Iterator[None]:
    """Turn exceptions for damaged bytes into a ReadError that names file and expectation."""
    try:
        yield
    except damage() as error:
        message = " ".join(str(error).split())[:200]
        kind = f"{type(error).__module__}.{type(error).__name__}".removeprefix("builtins.")
        raise ReadError(f"{where}: {what}; found: {kind}: {message}") from error


def tree_of(file: Any, where: str, name: str, branches: Sequence[str]) -> Any:
    """Return the tree; raise ReadError if it or one of these branches is missing."""
    with name_fault(where, f"expected a tree '{name}'"):
        kinds = file.classnames(recursive=False)
        if kinds.get(f"{name};1", kinds.get(name)) != "TTree" and name not in file:
            raise ReadError(f"{where}: expected a tree '{name}'; found: {list_names(kinds)}")
        tree = file[name]
        if not hasattr(tree, "num_entries"):
            raise ReadError(
                f"{where}: expected a tree '{name}'; found: a {file.classname_of(name)}"
            )
        found = tree.keys()
    missing = [branch for branch in branches if branch not in found]
    if missing:
        raise ReadError(
            f"{where}: the tree '{name}' has no branch {list_names(missing)}; expected: "
            f"{list_names(branches)}; found: {list_names(found)}"
        )
    return tree


def list_names(names: Any) -> str:
    """Return the first names, in quotes."""
    first = [f"'{name}'" for name in list(names)[:MOST_NAMES]]
    return ", ".join(first) + (", …" if len(names) > MOST_NAMES else "") if first else "nothing"


def arrays_of(
    tree: Any, where: str, names: Sequence[str], start: int, stop: int, library: str
) -> Any:
    """Return the arrays of these events; raise ReadError with the branch that cannot be read."""
    try:
        return tree.arrays(names, entry_start=start, entry_stop=stop, library=library)
    except damage():
        for name in names:
            what = (
                f"the branch '{name}' of the tree '{tree.name}' is damaged between the events "
                f"{start} and {stop}; expected: baskets as they were written"
            )
            with name_fault(where, what):
                tree.arrays([name], entry_start=start, entry_stop=stop, library=library)
        raise
