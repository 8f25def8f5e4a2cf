"""The tables of a benchmark.toml: what benchmarks' descriptions have, and studies have not."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.jobscripts.errors import DescriptionError
from steelyard.jobscripts.toml_table import TomlTable


class Description(TomlTable):
    """A table of a benchmark.toml; what is wrong with it is a DescriptionError."""

    def fault(self, key: str, text: str) -> DescriptionError:
        """See TomlTable.fault."""
        return DescriptionError(text)

    def text(self, key: str, default: str | None = None) -> str:
        """A text; without a default it must be there and not be empty."""
        value = self.data.get(key, default)
        if value is None:
            self.fail(key, "missing: a text is needed")
        if not isinstance(value, str) or (default is None and not value):
            self.wrong(key, value, "a text")
        return value

    def choice(self, key: str, allowed: Sequence[str]) -> str:
        """One of some words."""
        value = self.text(key)
        if value not in allowed:
            self.wrong(key, value, f"one of {', '.join(allowed)}")
        return value

    def number(self, key: str) -> float | None:
        """A number, or None when absent."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            self.wrong(key, value, "a number")
        return value

    def values(self, key: str) -> tuple[int | float | str, ...]:
        """A list of numbers or texts; empty when absent."""
        value = self.data.get(key, [])
        if not isinstance(value, list):
            self.wrong(key, value, "a list of numbers or texts")
        found = tuple(item for item in value if isinstance(item, int | float | str))
        if len(found) != len(value):
            self.wrong(key, value, "a list of numbers or texts")
        return found
