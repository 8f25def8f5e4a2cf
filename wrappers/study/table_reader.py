"""A reader for the tables of a study file: values that benchmarks' descriptions do not have."""

from __future__ import annotations

import re

from steelyard.jobscripts.toml_table import TomlTable, shown
from steelyard.wrappers.base.errors import UsageError


class Table(TomlTable):
    """A table of the study file; its faults are UsageErrors."""

    def fault(self, key: str, text: str) -> UsageError:
        """See TomlTable.fault."""
        return UsageError(text, part=key)

    def integer(self, key: str, default: int | None, least: int, most: int) -> int | None:
        """Return a whole number between two limits; the default when absent."""
        value = self.data.get(key, default)
        if value is not None and not (type(value) is int and least <= value <= most):
            self.wrong(key, value, f"a whole number from {least} to {most}")
        return value

    def count(self, key: str, default: int, least: int = 1, most: int = 1_000_000) -> int:
        """Return a whole number between two limits; the default, which is one, when absent."""
        value = self.integer(key, default, least, most)
        return default if value is None else value

    def word(self, key: str, pattern: str, allowed: str) -> str | None:
        """Return a text of a given form; None when absent."""
        value = self.data.get(key)
        if value is not None and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            self.wrong(key, value, allowed)
        return value

    def words(self, key: str, pattern: str, allowed: str) -> tuple[str, ...]:
        """Return a list of texts of a given form; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, value, f"a list; each member: {allowed}")
        for item in value:
            if not (isinstance(item, str) and re.fullmatch(pattern, item)):
                self.wrong(key, item, allowed)
        return tuple(value)

    def levels(self, key: str) -> tuple[object, ...]:
        """Return the levels of a factor: a list of different numbers, texts or flags."""
        value = self.data[key]
        if not isinstance(value, list) or not value:
            self.wrong(key, value, "a list of levels, at least one")
        for number, item in enumerate(value):
            if not isinstance(item, str | int | float):
                self.wrong(key, item, "a text, a number, true or false")
            if any(item == other and type(item) is type(other) for other in value[:number]):
                self.fail(key, f"{shown(item)} is listed twice: a level is named once")
        return tuple(value)
