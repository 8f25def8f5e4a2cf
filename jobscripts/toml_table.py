"""Reads tables of a TOML file key by key; an error is one line: file, key, value, allowed.

Keys are dotted, and members of a list count from 1: `benchmark[1].kernel`. Each kind of file has a
class, whose `fault` makes its kind of error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from steelyard.jobscripts.errors import DescriptionError, did_you_mean

SHOWN_CHARACTERS = 80


def shown(value: object) -> str:
    """Return a value in TOML, short enough for one line."""
    text = as_toml(value)
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 3] + "..."


def as_toml(value: object) -> str:
    """Return a value as a user would write it in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {as_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return str(value)


@dataclass(frozen=True)
class TomlTable:
    """A table of a file; `prefix` is its dotted key with a final dot, or ""."""

    file: Path
    data: Mapping[str, object]
    prefix: str = ""

    def fault(self, key: str, text: str) -> Exception:
        """Return the error of this kind of file; `key` is dotted from the top, `text` the complete
        line.
        """
        raise NotImplementedError

    def fail(self, key: str, message: str) -> NoReturn:
        """Raise the error about a key of this table."""
        dotted = (self.prefix + key).rstrip(".")
        raise self.fault(dotted, f"{self.file}: {dotted}: {message}")

    def wrong(self, key: str, value: object, allowed: str) -> NoReturn:
        """Raise the error about a value: the value and what is allowed."""
        dotted = self.prefix + key
        raise self.fault(dotted, f"{self.file}: {dotted} = {shown(value)}: allowed is {allowed}")

    def only(self, known: Iterable[str]) -> None:
        """Reject all other keys."""
        names = list(known)
        for key in self.data:
            if key not in names:
                listed = f"known: {', '.join(names) or 'none'}{did_you_mean(key, names)}"
                self.fail(key, f"unknown key; {listed}")

    def table(self, key: str) -> Self:
        """Return the table of a key; an empty one if it is missing."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, value, f"a table: [{self.prefix}{key}]")
        return type(self)(self.file, value, f"{self.prefix}{key}.")

    def tables(self, key: str) -> list[Self]:
        """Return the tables of a list, [[key]]; [] if it is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, value, f"a list of tables: [[{self.prefix}{key}]]")
        return [
            type(self)(self.file, item, f"{self.prefix}{key}[{number}].")
            for number, item in enumerate(value, start=1)
        ]

    def flag(self, key: str, default: bool) -> bool:
        """Return a bool, or the default if it is missing."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, value, "true or false")
        return value


class Description(TomlTable):
    """A table of a benchmark.toml; its errors are DescriptionErrors."""

    def fault(self, key: str, text: str) -> DescriptionError:
        """Return a DescriptionError (TomlTable.fault)."""
        return DescriptionError(text)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; without a default, it must exist and not be empty."""
        value = self.data.get(key, default)
        if value is None:
            self.fail(key, "missing: a text is needed")
        if not isinstance(value, str) or (default is None and not value):
            self.wrong(key, value, "a text")
        return value

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """Return one of the allowed texts."""
        value = self.text(key)
        if value not in allowed:
            self.wrong(key, value, f"one of {', '.join(allowed)}")
        return value

    def number(self, key: str) -> float | None:
        """Return a number, or None if it is missing."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            self.wrong(key, value, "a number")
        return value

    def values(self, key: str) -> tuple[int | float | str, ...]:
        """Return a list of numbers or texts; () if it is missing."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, value, "a list of numbers or texts")
        found = tuple(item for item in value if isinstance(item, int | float | str))
        if len(found) != len(value):
            self.wrong(key, value, "a list of numbers or texts")
        return found
