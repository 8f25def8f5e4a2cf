"""Defines findings (kind, code, advice, places), and selects rows and node facts for rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter

from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.summary import Summary


class Severity(Enum):
    """The importance of a finding; the value is the word in the report."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of finding; its code is never reused.

    `title` names the fault, `why` states why it matters, `advice` what to do about it, as in the
    report; `example` is a finding's text for a study; `source` is a publication, or the page that
    explains it.
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
    """A finding: a sentence with numbers, and its places."""

    kind: Kind
    text: str
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding, and the check that finds it in a study."""

    kind: Kind
    check: Callable[[Summary], Iterator[Finding]]


def format_location(group: Group) -> str:
    """Format `variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def select_main_rows(summary: Summary) -> list[Row]:
    """Return the rows of the benchmarks' main figures, including those without a value."""
    return [row for row in summary.rows if row.metric.is_primary]


def select_measured_rows(summary: Summary) -> list[Row]:
    """Return the rows of main figures with a value."""
    return [row for row in select_main_rows(summary) if row.values]


def format_row_location(row: Row) -> str:
    """Format `variant · condition · metric`."""
    return f"{format_location(row.group)} · {row.metric.name}"


def count_runs(summary: Summary) -> int:
    """Return the number of runs in the whole study."""
    return len(summary.data.runs)


def format_shares(summary: Summary, number: Callable[[Group], int]) -> tuple[str, ...]:
    """Return `place: 1 of 5` for each group with a number above 0."""
    return tuple(
        f"{format_location(group)}: {number(group)} of {group.counts.planned}"
        for group in summary.groups
        if number(group)
    )


NODE_FACTS = ("node_type", "vm", "container", "kernel", "cpu_model", "cpus")

Facts = dict[tuple[str, str], dict[str, set[str]]]  # by variant and condition, then by fact


def collect_facts_by_group(summary: Summary) -> Facts:
    """Return the facts of the runs that count."""
    where = {run.run_id: (run.variant, run.label) for run in summary.data.runs if run.counts}
    fact = [attrgetter(name) for name in NODE_FACTS]
    # Most records of a group are equal, so duplicates are removed before their fields are split.
    facts: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for record in summary.data.records:
        if record.run_id in where:
            rows = facts.setdefault(where[record.run_id], set())
            rows.add(tuple([get(record) for get in fact]))
    return {
        key: {
            name: {str(row[column]) for row in rows if row[column] is not None}
            for column, name in enumerate(NODE_FACTS)
        }
        for key, rows in facts.items()
    }
