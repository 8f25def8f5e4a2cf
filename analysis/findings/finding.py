"""What a finding is: kind, code, advice and location; and the rows and node facts that findings read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.summary import Summary


class Severity(Enum):
    """How much a finding matters; the value is the word in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding; its code is never given to another.

    `title`: what it is; `why`: why it matters; `advice`: what to do about it, as the report says
    it; `example`: what it says of a study; `source`: a publication, or the page that explains it.
    """

    code: str
    severity: Severity
    title: str
    why: str
    advice: str
    example: str
    source: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found: a sentence with numbers, and where."""

    kind: Kind
    text: str
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding, and the check that finds it in a study."""

    kind: Kind
    check: Callable[[Summary], Iterator[Finding]]


def format_location(group: Group) -> str:
    """`variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def select_main_rows(summary: Summary) -> list[Row]:
    """The benchmarks' own main figures, those without a value too."""
    return [row for row in summary.rows if row.metric.is_primary]


def select_measured_rows(summary: Summary) -> list[Row]:
    """Those with a value."""
    return [row for row in select_main_rows(summary) if row.values]


def format_row_location(row: Row) -> str:
    """`variant · condition · metric`."""
    return f"{format_location(row.group)} · {row.metric.name}"


def count_runs(summary: Summary) -> int:
    """Of the whole study."""
    return len(summary.data.runs)


def format_shares(summary: Summary, number: Callable[[Group], int]) -> tuple[str, ...]:
    """`place: 1 of 5` for the groups with any."""
    return tuple(
        f"{format_location(group)}: {number(group)} of {group.counts.planned}"
        for group in summary.groups
        if number(group)
    )


NODE_FACTS = ("node_type", "vm", "container", "kernel", "cpu_model", "cpus")

Facts = dict[tuple[str, str], dict[str, set[str]]]  # by variant and condition, then by fact


def collect_facts_by_group(summary: Summary) -> Facts:
    """Of the runs that count."""
    where = {run.run_id: (run.variant, run.label) for run in summary.data.runs if run.counts}
    fact = [attrgetter(name) for name in NODE_FACTS]
    # Most records of a group say the same: told apart once, then taken to pieces.
    said: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for record in summary.data.records:
        if record.run_id in where:
            rows = said.setdefault(where[record.run_id], set())
            rows.add(tuple([get(record) for get in fact]))
    return {
        key: {
            name: {str(row[place]) for row in rows if row[place] is not None}
            for place, name in enumerate(NODE_FACTS)
        }
        for key, rows in said.items()
    }
