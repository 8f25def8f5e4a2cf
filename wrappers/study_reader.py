"""Reads a study file's tables key by key; whatever is wrong is one line: file, key, value, allowed.

Keys are written dotted, members of a list counted from 1: `benchmark[1].kernel`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from steelyard.wrappers.errors import UsageError, did_you_mean


def shown(value: object) -> str:
    """A value as it may stand in TOML, short enough for one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class Table:
    """A table of the study file; `prefix` is its dotted key with a dot behind, or nothing."""

    file: Path
    data: Mapping[str, object]
    prefix: str = ""

    def fail(self, key: str, message: str) -> NoReturn:
        """Raise the error about a key of this table."""
        dotted = (self.prefix + key).rstrip(".")
        raise UsageError(f"{self.file}: {dotted}: {message}", part=dotted)

    def wrong(self, key: str, value: object, allowed: str) -> NoReturn:
        """Raise the error about a value: what it is and what is allowed."""
        dotted = self.prefix + key
        raise UsageError(
            f"{self.file}: {dotted} = {shown(value)}: allowed is {allowed}", part=dotted
        )

    def only(self, known: Iterable[str]) -> None:
        """Refuse every key but these."""
        names = list(known)
        for key in self.data:
            if key not in names:
                listed = f"known: {', '.join(names) or 'none'}{did_you_mean(key, names)}"
                self.fail(key, f"unknown key; {listed}")

    def table(self, key: str) -> Table:
        """The table below a key; an empty one when absent."""
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            self.wrong(key, value, f"a table: [{self.prefix}{key}]")
        return Table(self.file, value, f"{self.prefix}{key}.")

    def tables(self, key: str) -> list[Table]:
        """The tables of a list, [[key]]; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            self.wrong(key, value, f"a list of tables: [[{self.prefix}{key}]]")
        return [
            Table(self.file, item, f"{self.prefix}{key}[{number}].")
            for number, item in enumerate(value, start=1)
        ]

    def integer(self, key: str, default: int | None, least: int, most: int) -> int | None:
        """A whole number between two limits; the default when absent."""
        value = self.data.get(key, default)
        if value is not None and not (type(value) is int and least <= value <= most):
            self.wrong(key, value, f"a whole number from {least} to {most}")
        return value

    def count(self, key: str, default: int, least: int = 1, most: int = 1_000_000) -> int:
        """A whole number that is always there."""
        value = self.integer(key, default, least, most)
        return default if value is None else value

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self.data.get(key, default)
        if not isinstance(value, bool):
            self.wrong(key, value, "true or false")
        return value

    def word(self, key: str, pattern: str, allowed: str) -> str | None:
        """A text of a given form; None when absent."""
        value = self.data.get(key)
        if value is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            self.wrong(key, value, allowed)
        return value

    def words(self, key: str, pattern: str, allowed: str) -> tuple[str, ...]:
        """A list of texts of a given form; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, value, f"a list; each member: {allowed}")
        for item in value:
            if not (isinstance(item, str) and re.fullmatch(pattern, item)):
                self.wrong(key, item, allowed)
        return tuple(value)

    def levels(self, key: str) -> tuple[object, ...]:
        """The levels of a factor: a list of different numbers, texts or flags."""
        value = self.data[key]
        if not isinstance(value, list) or not value:
            self.wrong(key, value, "a list of levels, at least one")
        for number, item in enumerate(value):
            if not isinstance(item, str | int | float):
                self.wrong(key, item, "a text, a number, true or false")
            if any(item == other and type(item) is type(other) for other in value[:number]):
                self.fail(key, f"{shown(item)} stands there twice: a level is named once")
        return tuple(value)
