"""Names of a factor's levels in labels, tables and figures.

A study file may name levels: `network = { near = "delay=1ms", far = "delay=50ms" }`. Unnamed
network conditions, launchers and files are shown without what all levels of their factor have in
common: `delay=25ms` and `delay=50ms` for `rate=20mbit,delay=25ms` and `rate=20mbit,delay=50ms`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence

# Keys of a table that is a range or a file pattern, not names of levels.
RANGE = ("from", "to", "step", "factor")
FILES = ("files", "sample", "seed")
NODE = "node"  # a factor without a natural baseline: nodes are compared with their median
LISTS = ("network", "launcher")  # factors whose levels are lists of items separated by commas

Texts = Mapping[str, Mapping[str, str]]  # by factor and text of a level: the rendered name


def has_names(value: object) -> bool:
    """Whether the value in [factors] is a table from name to level."""
    return isinstance(value, dict) and bool(value) and not {*RANGE, *FILES} & value.keys()


def format_level(level: object) -> str:
    """Format a level for labels: `true`, `2`, `delay=50ms`."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def format_levels(factors: Mapping[str, Sequence[object]], toml: str) -> Texts:
    """Return the name of every level; `toml` is the study file, which may define names."""
    names = dict(read_names(toml))
    return {
        factor: names.get(factor) or dict(zip(map(format_level, levels), shortened, strict=True))
        for factor, levels in factors.items()
        for shortened in (remove_common_parts(factor, [format_level(level) for level in levels]),)
    }


def read_names(toml: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each factor with named levels, and {level's text: name}."""
    try:
        factors = tomllib.loads(toml).get("factors", {})
    except tomllib.TOMLDecodeError:
        return
    for factor, value in factors.items() if isinstance(factors, dict) else ():
        if has_names(value):
            yield factor, {format_level(level): name for name, level in value.items()}


def remove_common_parts(factor: str, levels: list[str]) -> list[str]:
    """Remove what all levels have in common, unless one would be empty or two would be equal."""
    if len(levels) < 2:
        return levels
    shortened = levels
    if factor in LISTS:
        items = [level.split(",") for level in levels]
        common = set(items[0]).intersection(*items[1:])
        shortened = [",".join(item for item in every if item not in common) for every in items]
    elif all(level.startswith("/") for level in levels):
        folder = os.path.commonpath(levels)
        shortened = (
            levels if folder == "/" else [os.path.relpath(level, folder) for level in levels]
        )
    return shortened if all(shortened) and len(set(shortened)) == len(levels) else levels
