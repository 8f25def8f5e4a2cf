"""Parses accounting lines: `MM/DD/YYYY HH:MM:SS;T;JOBID;NAME=VALUE NAME=VALUE …`.

Torque quotes nothing, so that `account=a b c=d jobname=x` has blanks and an `=` in a value. OpenPBS
quotes values with blanks (`account` always) and does not escape quotes inside. Four rules separate
fields nevertheless: fields have a fixed order, none occurs twice, some are mandatory, and values
that no user chose have a fixed form. Fields that another reading gives other values are returned as
doubts. A line that cannot be parsed is returned with the reason, and stops nothing.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from steelyard.analysis.sources.pbs.field_values import OPENPBS, TORQUE

NUMBER, WORD = r"-?\d{1,18}", r"\S+"
TEXT = None  # any text of a user
# In the order of both servers. A name that ends with a period is the prefix of a group.
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
# Members of groups whose values users cannot choose freely.
FIXED = re.compile(
    r"walltime|cput|pcput|[pv]*mem|ncpus|mpiprocs|nodect|nodes|neednodes|procs|procct|ngpus|nice|"
    r"cpupercent|energy|energy_used|place|select|watts",
    re.ASCII,
)
NAME = re.compile(r"([A-Za-z_]\w*\.)?([A-Za-z]\w*)", re.ASCII)
# Mandatory fields of a job's record; then fields that are always recognized where they can be.
NEEDED = frozenset(("user", "group", "jobname", "queue", "ctime", "qtime", "etime"))
NEEDED_BY_KIND = {"S": NEEDED | {"start"}, "E": NEEDED | {"end", "Exit_status"}}
SURE = NEEDED | {"start", "owner", "exec_host", "session", "total_execution_slots", "end",
                 "unique_node_count", "Exit_status", "run_count"}  # fmt: skip
# Records of waiting or starting jobs lack the fields from here on.
LATE = frozenset(name for name, rank in RANKS.items() if rank >= RANKS["session"])
MOST_STEPS, MOST_READINGS = 5_000, 200
TOO_MANY = "its fields cannot be separated: it has too many readings"


class Split(NamedTuple):
    """A line's fields; `doubts` are the fields that another reading gives other values."""

    fields: dict[str, str]
    doubts: frozenset[str]


class Field(NamedTuple):
    """One field; `value` is unchanged text."""

    name: str
    rank: int
    value: str


class UnreadableError(ValueError):
    """Why a line cannot be parsed, in one sentence."""


def list_foreign_names(dialect: str, kind: str) -> frozenset[str]:
    """Return names of FIELDS that this server does not write in records of this kind."""
    return frozenset(UNKNOWN_TO[dialect]) | (LATE if kind in ("Q", "S") else frozenset())


def find_field_start(token: str, dialect: str, kind: str) -> tuple[str, int | None] | None:
    """Return name and rank of the field that a token may begin; rank None: an unknown name."""
    name, equals, _ = token.partition("=")
    return find_rank(name, dialect, kind) if equals else None


@functools.lru_cache(maxsize=4096)
def find_rank(name: str, dialect: str, kind: str) -> tuple[str, int | None] | None:
    """Do the same as `find_field_start` with a name alone."""
    match = NAME.fullmatch(name)
    if match is None:
        return None
    key = match[1] or match[2]
    return name, None if key in list_foreign_names(dialect, kind) else RANKS.get(key)


@functools.lru_cache(maxsize=4096)
def is_text(name: str) -> bool:
    """Whether a user chose the value, so that it may be any text."""
    group, point, last = name.rpartition(".")
    if not point:
        return FIELDS.get(name, TEXT) is TEXT
    return group != "resource_assigned" and FIXED.fullmatch(last) is None


def is_quoted(name: str, value: str) -> bool:
    """Whether OpenPBS put the quotes around the value."""
    if len(value) < 2 or value[0] != value[-1]:
        return False
    if value[0] == "'":  # a JSON object of a hook
        return value[1] == "{" and name.startswith("resources_used.")
    return value[0] == '"' and (name == "account" or " " in value)


def is_object(name: str, value: str) -> bool:
    """Whether the value is a hook's JSON object, which OpenPBS sometimes writes without quotes."""
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
    """Return the rank of a field after the fields `before`; None: it cannot follow them."""
    name, rank = start
    if not before:
        return rank
    last = before[-1]
    if rank is None:  # a later version's field: never one inside a user's text
        return None if dialect == TORQUE and is_text(last.name) else last.rank
    if last.rank < rank:
        return rank
    is_next = last.rank == rank and "." in name and all(f.name != name for f in before)
    return rank if is_next else None


class Reader:
    """Finds all readings of a text, those with the shortest values first."""

    def __init__(self, text: str, dialect: str, kind: str) -> None:
        self.tokens = text.split(" ")
        self.dialect = dialect
        self.starts = [find_field_start(token, dialect, kind) for token in self.tokens]
        self.names = frozenset(start[0] for start in self.starts if start is not None)
        self.steps = 0

    def find_readings(self, index: int, before: Sequence[Field]) -> Iterator[Sequence[Field]]:
        """Yield readings of the tokens from index `place` on, which follow the fields `before`."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UnreadableError(TOO_MANY)
        if index == len(self.tokens):
            yield before
            return
        start = self.starts[index]
        rank = next_rank(start, before, self.dialect) if start is not None else None
        if start is None or rank is None:
            return
        name = start[0]
        for end in range(index + 1, len(self.tokens) + 1):
            field = Field(name, rank, " ".join(self.tokens[index:end])[len(name) + 1 :])
            if (end == len(self.tokens) or self.starts[end]) and has_valid_value(
                field, self.dialect
            ):
                yield from self.find_readings(end, [*before, field])
            if not (is_text(name) and self.can_have_blanks(index)):
                return

    def can_have_blanks(self, index: int) -> bool:
        """Whether the value at this token may have blanks.

        OpenPBS puts quotes around such values.
        """
        value = self.tokens[index].partition("=")[2]
        return self.dialect == TORQUE or value.startswith(('"', "'", "{"))


def remove_quotes(reading: Sequence[Field], dialect: str) -> dict[str, str]:
    """Return names and values without the server's quotes."""
    if dialect == TORQUE:
        return {field.name: field.value for field in reading}
    return {f.name: f.value[1:-1] if is_quoted(f.name, f.value) else f.value for f in reading}


def split(text: str, kind: str, dialect: str) -> Split:
    """Split a job's record whose values contain more than plain words.

    Raises UnreadableError when no reading or no unique one exists.
    """
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
    # A mandatory field is recognized wherever it can be one.
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
        doubtful = ", ".join(sorted(doubts & sure))
        raise UnreadableError(f"more than one reading fits it, and {doubtful} would be otherwise")
    return Split(first, doubts)


def count_unknown_names(fields: Mapping[str, str], dialect: str, kind: str) -> int:
    """Return the number of fields that this server is not known to write."""
    starts = (find_field_start(f"{name}=", dialect, kind) for name in fields)
    return sum(start is None or start[1] is None for start in starts)


def describe_unreadable(names: frozenset[str], needed: frozenset[str]) -> str:
    """Describe what is wrong with a line that has no reading."""
    lacking = sorted(needed - names)
    if lacking:
        return f"it lacks {', '.join(lacking)}: cut short?"
    return "its fields are in no order that the server writes"


@functools.lru_cache(maxsize=4096)
def find_plain_doubts(names: tuple[str, ...], kind: str, dialect: str) -> frozenset[str] | None:
    """Return the doubts in a record whose words all are fields: a text of Torque may contain
    fields.

    None: the names are not those of a complete record in order, so that `split` must be used.
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
    for index, name in enumerate(names):
        if dialect == TORQUE and is_text(name):
            following = list(itertools.takewhile(lambda n: n not in SURE, names[index + 1 :]))
            doubts |= {name, *following} if following else set()
    return frozenset(doubts)


STAMP = re.compile(r"[01]\d/[0-3]\d/\d{4} [0-2]\d:[0-5]\d:[0-6]\d", re.ASCII)
NONE: frozenset[str] = frozenset()
NAMES = re.compile(r"(?:^| )(\w+\.?)\w*=")
QUOTED = re.compile(r'="(.*?)"(?= [A-Za-z_][\w.]*=|$)', re.DOTALL)
INSIDE = re.compile(r"[ \"'][A-Za-z_][\w.]*=")  # may begin a field
SECOND = re.compile(r"\S* [A-Za-z_][\w.]*=")  # shows that the first word may be a complete value
MARK, HOOK_MARK = "\x01", "\x02"
# A record of a job begins so. Others (D, A, Torque's Q, …) have one or two special words.
OF_JOB = "user="


class Line(NamedTuple):
    """A parsed line. `fields` of a record that is not of a job are {NAME: value} or {"": text}."""

    stamp: str  # local time of the server
    kind: str  # Q, S, E, R, D, A, a, …
    job_id: str
    fields: dict[str, str]
    doubts: frozenset[str] = NONE  # fields that another reading gives other values


class Unreadable(NamedTuple):
    """A line that could not be parsed, and why."""

    text: str
    reason: str


class LineReader:
    """Reads the lines of one server, and detects its dialect from its records."""

    def __init__(self, dialect: str | None = None) -> None:
        self.dialect = dialect

    def read(self, line: str) -> Line | Unreadable:
        """Parse one line, given without its line end."""
        try:
            stamp, kind, job_id, text = line.split(";", 3)
        except ValueError:
            return Unreadable(line, "expected TIME;TYPE;JOBID;TEXT: it has fewer than three ';'")
        if len(stamp) != 19 or STAMP.fullmatch(stamp) is None or len(kind) != 1:
            return Unreadable(line, f"'{line[:23]}': expected MM/DD/YYYY HH:MM:SS;T;")
        if not text.startswith(OF_JOB):
            return Line(stamp, kind, job_id, parse_non_job_fields(text))
        if text[-1] == " ":
            text = text[:-1]
        dialect = self.dialect or self.detect_dialect(NAMES.findall(text))
        simple = join_torque_fields(text) if dialect == TORQUE else split_quoted_fields(text)
        doubts = simple and find_plain_doubts(tuple(simple), kind, dialect)
        if simple is None or doubts is None:
            return self.read_ambiguous_line(line, stamp, kind, job_id, text, dialect)
        return Line(stamp, kind, job_id, simple, doubts or NONE)

    def detect_dialect(self, fields: Iterable[str]) -> str:
        """Return the dialect, once a record has fields that only Torque or only OpenPBS writes.

        Until then it is OPENPBS.
        """
        names = set(fields)
        if names & ONLY[TORQUE] and not names & ONLY[OPENPBS]:
            self.dialect = TORQUE
        elif names & ONLY[OPENPBS] and not names & ONLY[TORQUE]:
            self.dialect = OPENPBS
        return self.dialect or OPENPBS

    def read_ambiguous_line(
        self, line: str, stamp: str, kind: str, job_id: str, text: str, dialect: str
    ) -> Line | Unreadable:
        """Parse a record whose values contain more than plain words."""
        try:
            found = split(text, kind, dialect)
        except UnreadableError as error:
            return Unreadable(line, str(error))
        return Line(stamp, kind, job_id, found.fields, found.doubts)


def split_plain_fields(tokens: list[str]) -> dict[str, str] | None:
    """Split fields where every word is a field, and each field occurs once; None otherwise."""
    fields: dict[str, str] = {}
    for token in tokens:
        name, equals, value = token.partition("=")
        if not equals:
            return None
        fields[name] = value
    return fields if len(fields) == len(tokens) else None


def join_torque_fields(text: str) -> dict[str, str] | None:
    """Split Torque's fields where only plain words follow a blank in a value; None otherwise."""
    tokens = text.split(" ")
    found = split_plain_fields(tokens)
    if found is not None or text.count("=") < 2:
        return found
    joined: list[str] = []
    for token in tokens:
        if "=" in token:
            joined.append(token)
        elif joined and is_text(joined[-1].partition("=")[0]):
            joined[-1] += f" {token}"
        else:
            return None
    return split_plain_fields(joined)


def split_quoted_fields(text: str) -> dict[str, str] | None:
    """Split OpenPBS' fields; None if quotes occur inside values, or a field could be inside one."""
    if '"' not in text:
        return split_plain_fields(text.split(" "))
    if MARK in text or HOOK_MARK in text:
        return None
    hook_object = ""
    if "='{" in text:
        text, hook_object = cut_out_object(text)
    *quoted, rest = QUOTED.split(text)
    if quoted:
        rest = "".join(f"{before}={MARK}" for before in quoted[::2]) + rest
    if '"' in rest or any(map(INSIDE.search, quoted[1::2])):
        return None
    fields = split_plain_fields(rest.split(" "))
    if fields is None or not (quoted or hook_object):
        return fields
    return restore_values(fields, quoted[1::2], hook_object)


def cut_out_object(text: str) -> tuple[str, str]:
    """Replace a hook's JSON object by a mark; return the text, and the object in its quotes.

    The object is "" if its end is uncertain or it is not a hook's.
    """
    begin = text.find("='{") + 1
    end = text.find("}'", begin) + 2
    hook_object = text[begin:end]
    name = text[text.rfind(" ", 0, begin) + 1 : begin - 1]
    is_complete = end > begin and text[end : end + 1] in ("", " ") and text.find("}'", end) < 0
    if not is_complete or not name.startswith("resources_used.") or SECOND.match(hook_object):
        return text, ""
    return f"{text[:begin]}{HOOK_MARK}{text[end:]}", hook_object


def restore_values(
    fields: dict[str, str], quoted: list[str], hook_object: str
) -> dict[str, str] | None:
    """Replace the marks by their values.

    None: two quoted values have no certain field between them, so that they could be one value.
    """
    is_apart = True
    values = iter(quoted)
    for name, value in fields.items():
        if value == MARK:
            if not is_apart:
                return None
            is_apart = False
            inner = next(values)
            fields[name] = inner if name == "account" or " " in inner else f'"{inner}"'
        elif value == HOOK_MARK:
            if not is_apart:
                return None
            fields[name] = hook_object[1:-1]
        elif name in SURE:
            is_apart = True
    return fields


def parse_non_job_fields(text: str) -> dict[str, str]:
    """Return {NAME: value} of `requestor=labpbs@vm` or `queue=batch`, else {"": text}."""
    text = text.removesuffix(" ")
    name, equals, value = text.partition("=")
    return {name: value} if equals and " " not in text else {"": text}


def join_broken_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield records: each line with the following lines that a line break in a value cut off."""
    pending = ""
    for line in lines:
        if line[2:3] == "/" and line[19:20] == ";" and line[5:6] == "/":
            if pending:
                yield pending
            pending = line.removesuffix("\n")
        elif line.strip():
            pending += ("\n" if pending else "") + line.removesuffix("\n")
    if pending:
        yield pending
