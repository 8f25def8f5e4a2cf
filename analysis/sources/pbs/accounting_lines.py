"""Parses accounting lines: `MM/DD/YYYY HH:MM:SS;T;JOBID;NAME=VALUE NAME=VALUE …`.

A line that cannot be parsed is returned with the reason. It never stops the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steelyard.analysis.sources.pbs import accounting_grammar
from steelyard.analysis.sources.pbs.accounting_grammar import ONLY, UnreadableError
from steelyard.analysis.sources.pbs.states import OPENPBS, TORQUE

STAMP = re.compile(r"[01]\d/[0-3]\d/\d{4} [0-2]\d:[0-5]\d:[0-6]\d", re.ASCII)
NONE: frozenset[str] = frozenset()
NAMES = re.compile(r"(?:^| )(\w+\.?)\w*=")
QUOTED = re.compile(r'="(.*?)"(?= [A-Za-z_][\w.]*=|$)', re.DOTALL)
INSIDE = re.compile(r"[ \"'][A-Za-z_][\w.]*=")  # may begin a field
SECOND = re.compile(r"\S* [A-Za-z_][\w.]*=")  # shows that the first word may be a complete value
OF_HOOKS = "resources_used."
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
        doubts = simple and accounting_grammar.find_plain_doubts(tuple(simple), kind, dialect)
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
            found = accounting_grammar.split(text, kind, dialect)
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
        elif joined and accounting_grammar.is_text(joined[-1].partition("=")[0]):
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
    if not is_complete or not name.startswith(OF_HOOKS) or SECOND.match(hook_object):
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
        elif name in accounting_grammar.SURE:
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
