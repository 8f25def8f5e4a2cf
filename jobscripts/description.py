"""Reads benchmark.toml piece by piece; whatever is wrong is told with its file and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from steelyard.jobscripts.errors import DescriptionError


@dataclass(frozen=True)
class Reader:
    """A table of the file at `path`; `prefix` is its dotted key with a dot behind, or nothing."""

    path: Path
    data: Mapping[str, object]
    prefix: str = ""

    def fail(self, key: str, message: str) -> NoReturn:
        """Raise the error for a key of this table."""
        raise DescriptionError(self.path, self.prefix + key, message)

    def only(self, known: Sequence[str]) -> None:
        """No key but these."""
        for key in self.data:
            if key not in known:
                self.fail(key, f"unknown key; known: {', '.join(known)}")

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default it must be there and not be empty."""
        value = self.data.get(key, default)
        if not isinstance(value, str) or (default is None and not value):
            self.fail(key, f"a text is needed, found {value!r}")
        return value

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """One of some words."""
        value = self.text(key)
        if value not in allowed:
            self.fail(key, f"'{value}' is none of {', '.join(allowed)}")
        return value

    def flag(self, key: str) -> bool:
        """true or false; false when absent."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.fail(key, f"true or false is needed, found {value!r}")
        return value

    def number(self, key: str) -> float | None:
        """A number, or None when absent."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            self.fail(key, f"a number is needed, found {value!r}")
        return value

    def values(self, key: str) -> tuple[int | float | str, ...]:
        """A list of numbers or texts; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.fail(key, f"a list is needed, found {value!r}")
        found = tuple(item for item in value if isinstance(item, int | float | str))
        if len(found) != len(value):
            self.fail(key, "numbers and texts only")
        return found

    def table(self, *keys: str) -> Reader:
        """A table below this one; empty when absent."""
        data: object = self.data
        for key in keys:
            data = data.get(key, {}) if isinstance(data, dict) else None
        if not isinstance(data, dict):
            self.fail(".".join(keys), "a table is needed")
        return Reader(self.path, data, f"{self.prefix}{'.'.join(keys)}.")

    def tables(self, key: str) -> list[str]:
        """The names of the tables below a key."""
        return list(self.table(key).data)

    def rows(self, key: str) -> list[Reader]:
        """A list of tables; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.fail(key, "a list of tables is needed")
        return [
            Reader(self.path, item, f"{self.prefix}{key}[{i}].") for i, item in enumerate(value)
        ]
