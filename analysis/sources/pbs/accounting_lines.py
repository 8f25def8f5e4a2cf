"""Accounting lines: `MM/DD/YYYY HH:MM:SS;T;JOBID;NAME=VALUE NAME=VALUE …`.

A line that cannot be understood is kept, with its reason; it never stops the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from steelyard.analysis.sources.pbs import grammar
from steelyard.analysis.sources.pbs.grammar import ONLY, UnreadableError
from steelyard.analysis.sources.pbs.states import OPENPBS, TORQUE

STAMP = re.compile(r"[01]\d/[0-3]\d/\d{4} [0-2]\d:[0-5]\d:[0-6]\d", re.ASCII)
NONE: frozenset[str] = frozenset()
NAMES = re.compile(r"(?:^| )(\w+\.?)\w*=")
QUOTED = re.compile(r'="(.*?)"(?= [A-Za-z_][\w.]*=|$)', re.DOTALL)
INSIDE = re.compile(r"[ \"'][A-Za-z_][\w.]*=")  # what could begin a field
SECOND = re.compile(r"\S* [A-Za-z_][\w.]*=")  # so that the first word could be a value by itself
OF_HOOKS = "resources_used."
MARK, HOOK_MARK = "\x01", "\x02"
# A record of a job begins so; others (D, A, Torque's Q, …) have a word or two of their own.
OF_JOB = "user="


class Line(NamedTuple):
    """A line that was understood; `fields` of a record that is none of a job: `{"": its text}`."""

    stamp: str  # local time of the server
    kind: str  # Q, S, E, R, D, A, a, …
    job_id: str
    fields: dict[str, str]
    doubts: frozenset[str] = NONE  # fields that another reading has otherwise


class Unreadable(NamedTuple):
    """A line that was not, and why."""

    text: str
    reason: str


class LineReader:
    """Reads the lines of one server: its dialect shows in its records."""

    def __init__(self, dialect: str | None = None) -> None:
        self.dialect = dialect

    def read(self, line: str) -> Line | Unreadable:
        """One line, without its end."""
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
        doubts = simple and grammar.find_plain_doubts(tuple(simple), kind, dialect)
        if simple is None or doubts is None:
            return self.read_ambiguous_line(line, stamp, kind, job_id, text, dialect)
        return Line(stamp, kind, job_id, simple, doubts or NONE)

    def detect_dialect(self, fields: Iterable[str]) -> str:
        """The dialect of a record that is Torque's or OpenPBS' by its fields; kept from then on."""
        names = set(fields)
        if names & ONLY[TORQUE] and not names & ONLY[OPENPBS]:
            self.dialect = TORQUE
        elif names & ONLY[OPENPBS] and not names & ONLY[TORQUE]:
            self.dialect = OPENPBS
        return self.dialect or OPENPBS

    def read_ambiguous_line(
        self, line: str, stamp: str, kind: str, job_id: str, text: str, dialect: str
    ) -> Line | Unreadable:
        """A record whose values have more in them than blanks."""
        try:
            found = grammar.split(text, kind, dialect)
        except UnreadableError as error:
            return Unreadable(line, str(error))
        return Line(stamp, kind, job_id, found.fields, found.doubts)


def split_plain_fields(tokens: list[str]) -> dict[str, str] | None:
    """Where every word is a field, and each comes once."""
    fields: dict[str, str] = {}
    for token in tokens:
        name, equals, value = token.partition("=")
        if not equals:
            return None
        fields[name] = value
    return fields if len(fields) == len(tokens) else None


def join_torque_fields(text: str) -> dict[str, str] | None:
    """Torque's fields, where a blank in a value has only plain words behind it."""
    tokens = text.split(" ")
    found = split_plain_fields(tokens)
    if found is not None or text.count("=") < 2:
        return found
    whole: list[str] = []
    for token in tokens:
        if "=" in token:
            whole.append(token)
        elif whole and grammar.is_text(whole[-1].partition("=")[0]):
            whole[-1] += f" {token}"
        else:
            return None
    return split_plain_fields(whole)


def split_quoted_fields(text: str) -> dict[str, str] | None:
    """OpenPBS' fields, where quotes stand around values only, and no field could be inside of one."""
    if '"' not in text:
        return split_plain_fields(text.split(" "))
    if MARK in text or HOOK_MARK in text:
        return None
    told = ""
    if "='{" in text:
        text, told = cut_out_object(text)
    *quoted, rest = QUOTED.split(text)
    if quoted:
        rest = "".join(f"{before}={MARK}" for before in quoted[::2]) + rest
    if '"' in rest or any(map(INSIDE.search, quoted[1::2])):
        return None
    fields = split_plain_fields(rest.split(" "))
    if fields is None or not (quoted or told):
        return fields
    return restore_values(fields, quoted[1::2], told)


def cut_out_object(text: str) -> tuple[str, str]:
    """The text with a mark for the object of a hook, and this in its quotes; "": its end, or whether
    it is one, is not certain."""
    begin = text.find("='{") + 1
    end = text.find("}'", begin) + 2
    told = text[begin:end]
    name = text[text.rfind(" ", 0, begin) + 1 : begin - 1]
    is_whole = end > begin and text[end : end + 1] in ("", " ") and text.find("}'", end) < 0
    if not is_whole or not name.startswith(OF_HOOKS) or SECOND.match(told):
        return text, ""
    return f"{text[:begin]}{HOOK_MARK}{text[end:]}", told


def restore_values(
    fields: dict[str, str], quoted: list[str], hook_object: str
) -> dict[str, str] | None:
    """The values for their marks; None: two in quotes with nothing certain between them, so that
    they could be one."""
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
        elif name in grammar.SURE:
            is_apart = True
    return fields


def parse_non_job_fields(text: str) -> dict[str, str]:
    """`requestor=labpbs@vm`, `queue=batch`; anything else whole, as {"": text}."""
    text = text.removesuffix(" ")
    name, equals, value = text.partition("=")
    return {name: value} if equals and " " not in text else {"": text}


def join_broken_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines, and behind each what a line break in one of its values cut off."""
    held = ""
    for line in lines:
        if line[2:3] == "/" and line[19:20] == ";" and line[5:6] == "/":
            if held:
                yield held
            held = line.removesuffix("\n")
        elif line.strip():
            held += ("\n" if held else "") + line.removesuffix("\n")
    if held:
        yield held
