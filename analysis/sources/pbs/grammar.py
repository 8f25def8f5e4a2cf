"""Where one field of an accounting line ends and the next begins.

Torque quotes nothing, so that `account=a b=c jobname=x` has a blank and an `=` in a value; OpenPBS
quotes values with blanks (`account` always) and leaves quotes inside as they are. What tells fields
apart all the same: each has its place in the order, none comes twice, some must be there, and what
no user chose has a form. Fields that another reading has otherwise are in doubt, and named.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.analysis.sources.pbs.states import OPENPBS, TORQUE

NUMBER, WORD = r"-?\d{1,18}", r"\S+"
TEXT = None  # whatever a user wrote
# In the order of both servers; what ends with a point begins the names of a group.
FIELDS: Mapping[str, str | None] = {
    "user": WORD, "group": WORD, "account": TEXT, "project": TEXT, "accounting_id": TEXT,
    "jobname": WORD, "queue": WORD, "resvname": TEXT, "resvID": WORD, "resvjobID": WORD,
    "ctime": NUMBER, "qtime": NUMBER, "etime": NUMBER, "start_count": NUMBER, "start": NUMBER,
    "array_indices": r"[\d,:-]+", "owner": WORD, "exec_host": WORD, "exec_vnode": WORD,
    "login_node": WORD, "exec_gpus": WORD, "Resource_List.": TEXT, "resource_assigned.": TEXT,
    "session": NUMBER, "total_execution_slots": NUMBER, "unique_node_count": NUMBER,
    "alt_id": WORD, "end": NUMBER, "Exit_status": NUMBER, "resources_used.": TEXT,
    "accrue_type": WORD, "eligible_time": WORD, "run_count": NUMBER,
}  # fmt: skip
RANKS = {name: rank for rank, name in enumerate(FIELDS)}
FORMS = {name: re.compile(form, re.ASCII) for name, form in FIELDS.items() if form is not None}
ONLY = {
    TORQUE: {"owner", "start_count", "login_node", "exec_gpus", "total_execution_slots",
             "unique_node_count"},
    OPENPBS: {"project", "accounting_id", "resvname", "resvID", "resvjobID", "array_indices",
              "exec_vnode", "resource_assigned.", "accrue_type", "eligible_time", "run_count"},
}  # fmt: skip
UNKNOWN_TO = {TORQUE: ONLY[OPENPBS], OPENPBS: ONLY[TORQUE]}
# Of a group, those in whose values no user can write what he likes.
FIXED = re.compile(
    r"walltime|cput|pcput|[pv]*mem|ncpus|mpiprocs|nodect|nodes|neednodes|procs|procct|ngpus|nice|"
    r"cpupercent|energy|energy_used|place|select|watts",
    re.ASCII,
)
NAME = re.compile(r"([A-Za-z_]\w*\.)?([A-Za-z]\w*)", re.ASCII)
# What a record of a job cannot lack; and what is a field wherever it can be one.
NEEDED = frozenset(("user", "group", "jobname", "queue", "ctime", "qtime", "etime"))
NEEDED_BY_KIND = {"S": NEEDED | {"start"}, "E": NEEDED | {"end", "Exit_status"}}
SURE = NEEDED | {"start", "owner", "exec_host", "session", "total_execution_slots", "end",
                 "unique_node_count", "Exit_status", "run_count"}  # fmt: skip
# A job that waits or starts has none of what stands from here on.
LATE = frozenset(name for name, rank in RANKS.items() if rank >= RANKS["session"])
NOT_LATE = ("Q", "S")
MOST_STEPS, MOST_READINGS = 5_000, 200
TOO_MANY = "its fields cannot be told apart: it has too many readings"


class Split(NamedTuple):
    """A line's fields; `doubts` are those that another reading has otherwise."""

    fields: dict[str, str]
    doubts: frozenset[str]


class Field(NamedTuple):
    """One field; `value` as it stands there."""

    name: str
    rank: int
    value: str


class UnreadableError(ValueError):
    """Why a line cannot be understood, one sentence."""


def list_foreign_names(dialect: str, kind: str) -> frozenset[str]:
    """Names of FIELDS that this server does not write in such records."""
    return frozenset(UNKNOWN_TO[dialect]) | (LATE if kind in NOT_LATE else frozenset())


def find_field_start(token: str, dialect: str, kind: str) -> tuple[str, int | None] | None:
    """Name and place of the field that a token may begin; place None: a name not known here."""
    name, equals, _ = token.partition("=")
    return find_rank(name, dialect, kind) if equals else None


@functools.lru_cache(maxsize=4096)
def find_rank(name: str, dialect: str, kind: str) -> tuple[str, int | None] | None:
    """As find_field_start(), for a name alone."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    key = match[1] or match[2]
    return name, None if key in list_foreign_names(dialect, kind) else RANKS.get(key)


@functools.lru_cache(maxsize=4096)
def is_text(name: str) -> bool:
    """Whether a user chose the value, so that anything may stand in it."""
    group, point, last = name.rpartition(".")
    if not point:
        return FIELDS.get(name, TEXT) is TEXT
    return group != "resource_assigned" and FIXED.fullmatch(last) is None


def is_quoted(name: str, value: str) -> bool:
    """Whether OpenPBS put the quotes around it."""
    if len(value) < 2 or value[0] != value[-1]:
        return False
    if value[0] == "'":  # a JSON object of a hook
        return value[1] == "{" and name.startswith("resources_used.")
    return value[0] == '"' and (name == "account" or " " in value)


def is_object(name: str, value: str) -> bool:
    """A hook's JSON object, which OpenPBS sometimes writes without any quotes around it."""
    return name.startswith("resources_used.") and value[:1] == "{" and value[-1:] == "}"


def has_valid_value(field: Field, dialect: str) -> bool:
    """Whether a server can have written the value."""
    form = FORMS.get(field.name)
    if form is not None:
        return form.fullmatch(field.value) is not None
    if dialect == TORQUE:
        return is_text(field.name) or " " not in field.value
    if is_quoted(field.name, field.value) or is_object(field.name, field.value):
        return True
    return field.name != "account" and " " not in field.value


def next_rank(start: tuple[str, int | None], before: Sequence[Field], dialect: str) -> int | None:
    """The place of a field behind these; None: it cannot stand there."""
    name, rank = start
    if not before:
        return rank
    last = before[-1]
    if rank is None:  # of a later version: it begins nothing inside of a user's text
        return None if dialect == TORQUE and is_text(last.name) else last.rank
    if last.rank < rank:
        return rank
    is_next = last.rank == rank and "." in name and all(f.name != name for f in before)
    return rank if is_next else None


class Reader:
    """All readings of one text, that with the shortest values first."""

    def __init__(self, text: str, dialect: str, kind: str) -> None:
        self.tokens = text.split(" ")
        self.dialect = dialect
        self.starts = [find_field_start(token, dialect, kind) for token in self.tokens]
        self.names = frozenset(start[0] for start in self.starts if start is not None)
        self.steps = 0

    def find_readings(self, place: int, before: Sequence[Field]) -> Iterator[Sequence[Field]]:
        """Of the tokens from `place` on, behind these fields."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UnreadableError(TOO_MANY)
        if place == len(self.tokens):
            yield before
            return
        start = self.starts[place]
        rank = next_rank(start, before, self.dialect) if start is not None else None
        if start is None or rank is None:
            return
        name = start[0]
        for end in range(place + 1, len(self.tokens) + 1):
            field = Field(name, rank, " ".join(self.tokens[place:end])[len(name) + 1 :])
            if (end == len(self.tokens) or self.starts[end]) and has_valid_value(
                field, self.dialect
            ):
                yield from self.find_readings(end, [*before, field])
            if not (is_text(name) and self.can_have_blanks(place)):
                return

    def can_have_blanks(self, place: int) -> bool:
        """Whether the value that begins there may have blanks: OpenPBS puts quotes around it then."""
        value = self.tokens[place].partition("=")[2]
        return self.dialect == TORQUE or value.startswith(('"', "'", "{"))


def remove_quotes(reading: Sequence[Field], dialect: str) -> dict[str, str]:
    """Names and values, as they were before the server quoted them."""
    if dialect == TORQUE:
        return {field.name: field.value for field in reading}
    return {f.name: f.value[1:-1] if is_quoted(f.name, f.value) else f.value for f in reading}


def split(text: str, kind: str, dialect: str) -> Split:
    """The fields of a job's record whose values need a closer look; UnreadableError: why not."""
    reader = Reader(text, dialect, kind)
    needed = NEEDED_BY_KIND.get(kind, NEEDED)
    found: list[dict[str, str]] = []
    for reading in reader.find_readings(0, ()):
        fields = remove_quotes(reading, dialect)
        if needed <= fields.keys():
            found.append(fields)
        if len(found) > MOST_READINGS:
            raise UnreadableError(TOO_MANY)
    if not found:
        raise UnreadableError(describe_unreadable(reader.names, needed))
    # What a server always writes is a field wherever it can be one.
    sure = SURE - list_foreign_names(dialect, kind)
    most = max(len(sure & fields.keys()) for fields in found)
    best = [fields for fields in found if len(sure & fields.keys()) == most]
    first, *others = sorted(best, key=lambda fields: count_unknown_names(fields, dialect, kind))
    doubts = frozenset(
        name
        for other in others
        for name in first.keys() | other.keys()
        if first.get(name) != other.get(name)
    )
    if doubts & sure:
        told = ", ".join(sorted(doubts & sure))
        raise UnreadableError(f"more than one reading fits it, and {told} would be otherwise")
    return Split(first, doubts)


def count_unknown_names(fields: Mapping[str, str], dialect: str, kind: str) -> int:
    """How many of the fields this server is not known to write."""
    starts = (find_field_start(f"{name}=", dialect, kind) for name in fields)
    return sum(start is None or start[1] is None for start in starts)


def describe_unreadable(names: frozenset[str], needed: frozenset[str]) -> str:
    """What is wrong with a line without any reading, as far as it can be told."""
    lacking = sorted(needed - names)
    if lacking:
        return f"it lacks {', '.join(lacking)}: cut short?"
    return "its fields are in no order that the server writes"


@functools.lru_cache(maxsize=4096)
def find_plain_doubts(names: tuple[str, ...], kind: str, dialect: str) -> frozenset[str] | None:
    """What is in doubt although every word is a field: Torque's text may have held the next ones.

    None: these are not the names of a record in its order, so that split() must look closer.
    """
    before: list[Field] = []
    for name in names:
        start = find_field_start(f"{name}=", dialect, kind)
        rank = next_rank(start, before, dialect) if start and start[0] == name else None
        if rank is None:
            return None
        before.append(Field(name, rank, ""))
    if not NEEDED_BY_KIND.get(kind, NEEDED) <= set(names):
        return None
    doubts: set[str] = set()
    for place, name in enumerate(names):
        if dialect == TORQUE and is_text(name):
            held = list(itertools.takewhile(lambda n: n not in SURE, names[place + 1 :]))
            doubts |= {name, *held} if held else set()
    return frozenset(doubts)
