"""Reads the document that lib/pairs.sh prints: a client's report for every pair of nodes."""

from __future__ import annotations

import itertools
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts import output
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import add_notes, read_document, read_output

BEGIN = re.compile(r'\A\{"pairs": ?\[')
BETWEEN = re.compile(r"\}, ?\Z")  # the end of a pair, before the head of the next one
END = re.compile(r"\}\]\}\s*\Z")
STRING = r'"(?:[^"\\]|\\.)*"'
HEAD = re.compile(
    rf'\{{"client": ?(?P<client>{STRING}), ?"server": ?(?P<server>{STRING}), ?"address": ?{STRING}, '
    rf'?"exit_code": ?(?P<code>\d+), ?"errors": ?(?P<errors>{STRING}), ?"report": ?'
)


@dataclass(frozen=True)
class Pair:
    """A client and its server; `report` is the output of the client's program."""

    where: str
    report: object


def read_pairs(folder: Path, client: int, program: str) -> list[Pair]:
    """Return the pairs in out.CLIENT, at least one; raise FailedError if a program failed.

    A program's output is in the document as JSON or as a JSON string. So a pair is found by its
    head, and a warning of one client does not affect the others.
    """
    name = f"out.{client}"
    text = read_output(folder, client, program)
    begin, end = BEGIN.match(text), END.search(text)
    if begin is None or end is None:
        raise OutputError(name, "cut short or damaged: '{\"pairs\":[' … '}]}' is expected")
    heads = list(HEAD.finditer(text))
    if not heads or heads[0].start() != begin.end():
        raise OutputError(name, "no client reported anything")
    pairs = []
    for head, after in itertools.zip_longest(heads, heads[1:]):
        report = text[head.end() : after.start() if after else end.start()]
        if after:
            report, count = BETWEEN.subn("", report)
            if count != 1:
                raise OutputError(name, f"cut short or damaged before client {after['client']}")
        pairs.append(_pair(head, report.strip(), program))
    return pairs


def _pair(head: re.Match[str], text: str, program: str) -> Pair:
    """Return a client's report; raise FailedError with the message of a client that failed."""
    client, server, errors = (json.loads(head[key]) for key in ("client", "server", "errors"))
    where = f"{program} {client} > {server}"
    if text.startswith('"'):
        pair = Pair(where, _decode_string(where, text))
    elif "{" in text:
        report, _ = read_document(where, text)
        error = re.search(rf"^{re.escape(program)}: error.*", text, re.MULTILINE)
        if error:
            raise FailedError(f"{where}: {error[0][:300]}")
        pair = Pair(where, report)
    else:
        pair = Pair(where, text)
    code = int(head["code"])
    # iperf3 states the reason in its report.
    if code != 0 and not (isinstance(pair.report, dict) and pair.report.get("error")):
        raise FailedError(f"{where}: exit code {code}: {_describe_error(pair, errors)}")
    return pair


def _decode_string(where: str, text: str) -> str:
    """Return a client's output that is not JSON, without known noise."""
    try:
        printed = json.loads(text)
    except ValueError as error:
        raise OutputError(where, f"cut short or damaged: {error}") from error
    found, notes = output.remove_noise(where, str(printed))
    add_notes(notes)
    return found


def _describe_error(pair: Pair, errors: object) -> str:
    """Return the client's last message, or a replacement for it."""
    lines = str(errors).strip().splitlines()
    if isinstance(pair.report, dict):
        lines = lines or ["no reason given, though its report is whole"]
    return (lines or [str(pair.report).strip() or "nothing"])[-1][:300]


def number(where: str, table: object, key: str) -> float:
    """Return a finite number ≥ 0 of a JSON object; raise OutputError if there is none."""
    value = table.get(key) if isinstance(table, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutputError(where, f"no number '{key}'")
    if not math.isfinite(value) or value < 0:
        raise OutputError(where, f"'{key}' is {value}, which cannot be")
    return float(value)
