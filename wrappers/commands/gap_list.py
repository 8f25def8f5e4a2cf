"""The gaps that `collect` prints: each distinct reason once, with its number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

SHOWN = 3  # reasons of a kind, and places of a reason; --json has all
# Removed from reasons, because equal reasons differ in NODE.START.json or the path of its samples.
FILE_NAME = re.compile(r"^\S+\.(?:json|csv)(?:: | was )")


def format_kinds(
    found: Iterable[tuple[str, str, str]], kinds: Mapping[str, tuple[str, str]], indent: str
) -> Iterator[str]:
    """Yield each kind of gap once with its number and what to do, then its reasons; `found`: kind,
    place and reason of each gap, `kinds`: description and advice, in the order of the lines. A kind
    that is not among them comes last, by its own name."""
    by_kind = defaultdict(list)
    for kind, path, reason in found:
        by_kind[kind].append((path, reason))
    for kind in (*kinds, *sorted(by_kind.keys() - kinds.keys())):
        title, advice = kinds.get(kind, (kind, "look at the reasons"))
        if kind in by_kind:
            yield f"{indent}{len(by_kind[kind])} × {title}: {advice}"
            yield from format_gaps(by_kind[kind], f"{indent}  ")


def format_gaps(found: Iterable[tuple[str, str]], indent: str) -> Iterator[str]:
    """Yield lines for the gaps of one kind, each `(place, reason)`: a run with its attempt, and
    why.

    A reason of one gap is `place: reason`; that of several is `12 × reason`, with the first places
    below it."""
    by_reason = defaultdict(list)
    for path, reason in found:
        by_reason[FILE_NAME.sub("", reason)].append((path, reason))
    groups = sorted(by_reason.items(), key=lambda group: -len(group[1]))
    for message, gaps in groups[:SHOWN]:
        if len(gaps) == 1:
            path, reason = gaps[0]
            yield f"{indent}{path}{': ' if path else ''}{reason}"
            continue
        yield f"{indent}{len(gaps)} × {message}"
        if places := list(dict.fromkeys(path for path, _ in gaps if path)):
            more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
            yield f"{indent}  {', '.join(places[:SHOWN])}{more}"
    if rest := sum(len(gaps) for _, gaps in groups[SHOWN:]):
        yield f"{indent}… and {rest} more (--json has them all)"
