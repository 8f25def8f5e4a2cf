"""-L NAME=A,B,C: every value of every list in the place of {NAME}."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from steelyard.wrappers.base.errors import UsageError, did_you_mean

NAME = re.compile(r"[A-Za-z_]\w*")
COMMA = re.compile(r"(?<!\\),")
MOST_COMMANDS = 1000


def parse(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of each name; `\\,` is a comma in a value."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not (equals and NAME.fullmatch(name)):
            raise UsageError(f"-L {text}: expected NAME=VALUE,VALUE,…, as in threads=1,2,4", text)
        if name in found:
            raise UsageError(f"-L {text}: {name} is given twice", text)
        found[name] = tuple(value.replace("\\,", ",") for value in COMMA.split(values))
        if len(set(found[name])) < len(found[name]):
            raise UsageError(f"-L {text}: a value is there twice", text)
    return found


def combinations(lists: Mapping[str, Sequence[str]]) -> Iterator[dict[str, str]]:
    """The product, the last name changing fastest; without lists one that is empty."""
    for values in itertools.product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def fill(text: str, values: Mapping[str, str]) -> str:
    """{NAME} replaced; all other braces are the command's own."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), text)


def check_used(lists: Mapping[str, Sequence[str]], texts: Sequence[str]) -> None:
    """UsageError for a list that no command uses."""
    there = {name for text in texts for name in re.findall(r"\{(\w+)\}", text)}
    for name in lists:
        if name not in there:
            hint = did_you_mean(name, there)
            raise UsageError(f"-L {name}=…: no command has {{{name}}} in it{hint}", part=name)
