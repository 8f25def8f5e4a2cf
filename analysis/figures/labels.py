"""Names that fit into figures: cut or wrapped there; tables and the figures' CSV have them whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from steelyard.analysis.summary.rows import Group
    from steelyard.analysis.summary.summary import Summary

BETWEEN = " · "  # the levels of a condition
LABEL = 44  # letters that take up half of a figure's width
LEAST = 8  # letters that a level keeps
TITLE = 92  # letters of a title across the figure
HALF_LEGEND, WHOLE_LEGEND = 38, 84  # letters of an entry, two beside each other or one
LEGEND_LINE_IN = 0.18
BREAKS = "=,;/:~- "  # a name is broken behind these
ITEM = re.compile(r",[^, ]+")  # of a level that is a list, the first left out: it names the level


def shorten_name(name: str, most: int) -> str:
    """A name of at most `most` letters, its middle left out: `podman:doc…n:12-slim`."""
    if len(name) <= most:
        return name
    tail = (most - 1) // 2
    return f"{name[: most - 1 - tail]}…{name[len(name) - tail :]}"


def remove_common_parts(names: Sequence[str]) -> list[str]:
    """Of `delay=2ms,to=10.0.0.8/29` and its likes only what differs: `delay=2ms,…`.

    Names that are no lists, such as headings, have no say in it.
    """
    parts = [found for name in names if (found := ITEM.findall(name))]
    common = set(parts[0]).intersection(*parts[1:]) if len(parts) > 1 else set()
    return [ITEM.sub(lambda item: ",…" if item[0] in common else item[0], name) for name in names]


def shorten_names(names: Sequence[str], most: int) -> dict[str, str]:
    """What stands for each name; of those that would look alike the later ones get a number."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    too_long = len(names) > 1 and max(map(len, names)) > most
    for name, told in zip(names, remove_common_parts(names) if too_long else names, strict=True):
        words, number = shorten_name(told, most), 2
        while words in taken:
            words = f"{shorten_name(told, most - len(str(number)) - 1)}#{number}"
            number += 1
        found[name] = words
        taken.add(words)
    return found


def format_short_labels(
    summary: Summary, groups: Sequence[Group], most: int = LABEL
) -> tuple[list[str], str]:
    """The levels of the factors that vary, at most `most` letters together, and what they are of.

    Each level keeps LEAST letters, so that many factors may need more.
    """
    names = [name for name in summary.data.meta.factors if len(format_levels(groups, name)) > 1]
    if not names:
        return [shorten_name(group.label, most) or "all runs" for group in groups], ""
    labels: list[str] = []
    for each in range(most, LEAST - 1, -1):
        words = {name: shorten_names(format_levels(groups, name), each) for name in names}
        labels = [BETWEEN.join(words[n][format_level(group, n)] for n in names) for group in groups]
        if max(map(len, labels)) <= most:
            break
    return labels, BETWEEN.join(names)


def format_level(group: Group, factor: str) -> str:
    return group.levels.get(factor, "–")


def format_levels(groups: Sequence[Group], factor: str) -> list[str]:
    return list(dict.fromkeys(format_level(group, factor) for group in groups))


def wrap_label(label: str, most: int) -> str:
    """Lines of at most `most` letters: a level begins one, longer ones go on in the next."""
    lines = []
    for rest in label.split(BETWEEN):
        while len(rest) > most:
            at = max(rest.rfind(mark, 0, most) for mark in BREAKS) + 1
            at = at if 2 * at >= most else most
            lines.append(rest[:at].rstrip())
            rest = rest[at:]
        lines.append(rest)
    return "\n".join(lines)


def wrap_titles(titles: Sequence[str], most: int) -> list[str]:
    """Conditions, `a=1, b=2`, on lines of at most `most` letters; other levels look other."""
    words = shorten_names(
        list(dict.fromkeys(part for t in titles for part in t.split(", "))), most - 1
    )
    found = []
    for title in titles:
        lines = [""]
        for part in title.split(", "):
            joined = f"{lines[-1]}, {words[part]}" if lines[-1] else words[part]
            fits = not lines[-1] or len(joined) < most
            lines[-1:] = [joined] if fits else [f"{lines[-1]},", words[part]]
        found.append("\n".join(lines))
    return found


def set_title(figure: Figure, text: str) -> None:
    """Above all panels, from the figure's left edge, so that wide labels leave it its room."""
    figure.suptitle(shorten_name(text, TITLE), x=0.01, ha="left", fontsize=9.5)


@dataclass(frozen=True, slots=True)
class Legend:
    """Entries below a figure, so many beside each other, and the height that all of them take."""

    words: list[str]
    columns: int
    height_in: float


def make_legend(entries: Sequence[str]) -> Legend:
    columns = 2 if max(map(len, entries), default=0) <= HALF_LEGEND else 1
    words = shorten_names(list(dict.fromkeys(entries)), WHOLE_LEGEND)
    lines = -(-len(entries) // columns) if len(entries) > 1 else 0
    return Legend([words[entry] for entry in entries], columns, LEGEND_LINE_IN * lines)
