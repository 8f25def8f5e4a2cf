"""Reads fields/NAME.toml: the fields of a JSON document that users read, with type and meaning.

The tables of the pages are made from these files (docs/tables.py), and tests compare the documents
that programs write with them.

A row is `"PATH PATH …" = [TYPE, MEANING]`. In a path, `.` enters an object and `[]` each member of
a list. A type lists alternatives: `float or null`, `int, null or absent`. The keys of an `object of
text` are data. `document NAME` refers to another file of this folder; `includes` names a file whose
fields are added. `totals` adds those of quantities.def.
"""

from __future__ import annotations

import importlib.resources
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from steelyard.facts.quantities import TOTALS

# The Python types that the json module returns for each type.
KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "float": (float,),
    "number": (int, float),
    "bool": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "list": (list,),
}


@dataclass(frozen=True, slots=True)
class Row:
    """Fields that share a type and a meaning."""

    paths: tuple[str, ...]
    type: str
    meaning: str

    @property
    def alternatives(self) -> list[str]:
        """Return the types that a field can have; `absent`: the field is optional."""
        return re.split(", | or ", self.type)


@dataclass(frozen=True, slots=True)
class Document:
    """The declaration in fields/NAME.toml; `written_by`: the sources that write the document.

    `types` includes the fields of included files, and the totals.
    """

    rows: tuple[Row, ...]
    written_by: tuple[str, ...]
    types: Mapping[str, list[str]] = field(default_factory=dict)  # alternatives, by path


def read(name: str) -> Document:
    """Read the declaration of a document; raise OSError if it has none."""
    folder = importlib.resources.files(__package__).joinpath("fields")
    found = tomllib.loads(folder.joinpath(f"{name}.toml").read_text("utf-8"))
    rows = tuple(Row(tuple(key.split()), *cells) for key, cells in found["fields"].items())
    types = {path: row.alternatives for row in rows for path in row.paths}
    if "includes" in found:
        types |= read(found["includes"]).types
    if totals := found.get("totals"):
        types |= _types_of_totals(totals)
    return Document(rows, tuple(found["written_by"]), types)


def _types_of_totals(which: str) -> dict[str, list[str]]:
    """Return the types of the totals in quantities.def.

    `which` is "record" (all of them, by path) or "comment" (by name, each optional).
    """
    alternatives = {one.id: ["float" if one.is_real else "int", "null"] for one in TOTALS.values()}
    if which == "record":
        return {one.path: alternatives[one.id] for one in TOTALS.values()}
    return {
        one.name: [*alternatives[one.id], "absent"] for one in TOTALS.values() if one.in_comment
    }


def names() -> list[str]:
    """Return the names of the declared documents, sorted."""
    folder = importlib.resources.files(__package__).joinpath("fields")
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir())


def compare(name: str, value: object) -> list[str]:
    """Return where a document contradicts its declaration, one message each.

    Faults are fields without a row, missing fields, and other types.
    """
    faults = list(_compare(read(name).types, "", value))
    return [f"{name}: {fault}" for fault in dict.fromkeys(faults)]


def _compare(types: Mapping[str, list[str]], path: str, value: object) -> Iterator[str]:
    """Yield the faults below `path`, whose own type is checked already."""
    if isinstance(value, list):
        for member in value:
            yield from _compare(types, f"{path}[]", member)
    if not isinstance(value, dict):
        return
    prefix = f"{path}." if path else ""
    below = {one.removeprefix(prefix) for one in types if one.startswith(prefix)}
    for key in sorted({*value, *(re.split(r"\.|\[", one)[0] for one in below)}):
        inner = f"{prefix}{key}"
        expected = types.get(inner)
        if key in value:
            yield from _compare_value(types, inner, value[key])
        elif expected is not None and "absent" not in expected:
            yield f"{inner} is missing"


def _compare_value(types: Mapping[str, list[str]], path: str, value: object) -> Iterator[str]:
    """Yield the faults of a field's own type, then those of its content."""
    expected = types.get(path)
    has_members = any(one.startswith((f"{path}.", f"{path}[]")) for one in types)
    if expected is None and not (has_members and isinstance(value, dict)):
        yield f"{path} is not declared"
    elif expected and not any(_has_type(value, one) for one in expected):
        yield f"{path} is {str(value)[:40]!r}, not {' or '.join(expected)}"
    other = next(
        (one.rpartition("document ")[2] for one in expected or () if "document " in one), ""
    )
    if not other and has_members:
        yield from _compare(types, path, value)
    if not other:
        return
    members: list[object] = [value]
    if isinstance(value, list):
        members = value
    elif isinstance(value, dict) and any(one.startswith("object of ") for one in expected or ()):
        members = list(value.values())
    for member in members:
        if isinstance(member, dict):
            yield from (f"{path}: {fault}" for fault in compare(other, member))


def _has_type(value: object, expected: str) -> bool:
    """Whether a value has a type; a bool is not a number."""
    if expected.startswith(("list of ", "object of ")):
        kind, _, member = expected.partition(" of ")
        if isinstance(value, list) and kind == "list":
            members = value
        elif isinstance(value, dict) and kind == "object":
            members = list(value.values())
        else:
            return False
        member = member if member.startswith("document ") else member.removesuffix("s")
        return all(_has_type(one, member) for one in members)
    if expected.startswith("document "):
        return isinstance(value, dict)
    return type(value) in KINDS.get(expected, ())
