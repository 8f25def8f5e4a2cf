"""Reads a client's output, and reports the failures that all benchmarks share.

Every parser uses read_output(), which removes known noise (output_noise.py). Removed and unknown
lines become notes of the run, which collect_notes() receives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from steelyard.jobscripts import output_noise
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output_noise import Note
from steelyard.jobscripts.regular_files import read_regular, read_tail

MOST_BYTES = 64 << 20  # far more than any benchmark prints; faulty programs must not fill memory

MISSING_END = "the end is missing"
DECODER = json.JSONDecoder()

_NOTES: ContextVar[list[Note] | None] = ContextVar("notes", default=None)


@contextmanager
def collect_notes(notes: list[Note]) -> Iterator[None]:
    """Collect in `notes` the notes of every output that is read in the `with` statement."""
    token = _NOTES.set(notes)
    try:
        yield
    finally:
        _NOTES.reset(token)


def add_notes(notes: Iterable[Note]) -> None:
    """Add notes to those that collect_notes() collects."""
    collected = _NOTES.get()
    if collected is not None:
        collected += notes


def read_output(folder: Path, client: int, program: str) -> str:
    """Return the text of out.CLIENT without known noise.

    Raises OutputError if it is missing, empty or too large, and FailedError if it is empty and
    err.CLIENT has a message.
    """
    text, notes = output_noise.remove(f"out.{client}", read_text(folder, client, program))
    add_notes(notes)
    if not text.strip():
        raise OutputError(
            f"out.{client}", f"{program} printed nothing but '{notes[-1].text[:200]}'"
        )
    return text


def read_text(folder: Path, client: int, program: str) -> str:
    """Return the text as read_output(), but with all lines: for the user's own patterns."""
    name = f"out.{client}"
    try:
        data = read_regular(folder / name, MOST_BYTES)
    except OSError as error:
        raise OutputError(name, f"cannot be read: {error.strerror}") from error
    if not data.strip():
        message = last_message(folder, client)
        if message:
            raise FailedError(f"{program} printed nothing and said: {message}")
        raise OutputError(name, f"empty: {program} printed nothing")
    text, notes = output_noise.decode(data)
    add_notes(notes)
    return text


def read_complete(
    folder: Path, client: int, program: str, end: re.Pattern[str], expected: str = MISSING_END
) -> str:
    """Return read_output() up to its end."""
    return cut_at_end(folder, client, read_output(folder, client, program), end, expected)


def cut_at_end(
    folder: Path, client: int, text: str, end: re.Pattern[str], expected: str = MISSING_END
) -> str:
    """Return the text up to its last match of `end`; later lines are noted.

    Raises OutputError if there is no match; it contains `expected`, the last line, and the
    program's last message.
    """
    found = None
    for found in end.finditer(text):  # noqa: B007 - the last one
        pass
    if found is None:
        last = (text.rstrip().splitlines() or [""])[-1].strip()[:100]
        message, origin = last_message(folder, client), output_noise.origin_of_tags(text)
        raise OutputError(
            f"out.{client}",
            f"cut short: {expected}; the last line is '{last}'"
            + (f" ({message})" if message else "")
            + (f"; {origin}" if origin else ""),
        )
    _refuse_second(f"out.{client}", text, found.end())
    note_unknown(text, found.end(), len(text))
    return text[: found.end()]


def _refuse_second(name: str, text: str, end: int) -> None:
    """Raise OutputError if lines are repeated after the end, where a second output begins."""
    before = set(text[:end].splitlines())
    for line in text[end:].splitlines():
        if line in before and re.search("[A-Za-z]", line):
            raise OutputError(name, f"two outputs: '{line.strip()[:100]}' is before the end, too")


def note_unknown(text: str, start: int, end: int) -> None:
    """Note the lines between two offsets, which are not of the benchmark."""
    first = output_noise.line_at(text, start)
    lines = enumerate(text[start:end].split("\n"), first)
    unknown = [output_noise.note("unknown", number, line) for number, line in lines if line.strip()]
    add_notes(unknown[: output_noise.MOST_NOTES])


def read_document(
    name: str, text: str, decoder: json.JSONDecoder = DECODER
) -> tuple[dict[str, Any], list[str]]:
    """Return the only JSON object of a text, which begins on its own line, and the lines before it.

    Other lines before and after it are noted. Raises OutputError if there is not exactly one
    object.
    """
    begin = re.search(r"^\{", text, re.MULTILINE)
    if begin is None:
        line = text.strip().split("\n", 1)[0]
        raise OutputError(
            name, f"no JSON: a line that begins with '{{' is expected: '{line[:100]}'"
        )
    try:
        document, end = decoder.raw_decode(text, begin.start())
    except json.JSONDecodeError as error:
        line = text.split("\n")[error.lineno - 1].strip()
        message = f"{error.msg} in line {error.lineno}: '{line[:100]}'"
        raise OutputError(name, f"cut short or damaged: {message}") from error
    except RecursionError as error:
        raise OutputError(name, f"cut short or damaged: {error}") from error
    if re.search(r"^\{", text[end:], re.MULTILINE):
        raise OutputError(name, "two JSON objects, one is expected")
    before = [line for line in text[: begin.start()].splitlines() if line.strip()]
    note_unknown(text, 0, begin.start())
    note_unknown(text, end, len(text))
    return document, before


def last_message(folder: Path, client: int) -> str:
    """Return the last nonempty line of err.CLIENT, or an empty text."""
    try:
        text = read_tail(folder / f"err.{client}", 4096).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def number(section: str, name: str, word: str) -> float:
    """Return a finite number without grouped thousands; raise OutputError otherwise."""
    try:
        value = float(word.replace("_", "?"))  # Python accepts 1_000
    except ValueError as error:
        raise OutputError(section, f"{name}: '{word[:60]}' is no number") from error
    if not math.isfinite(value):
        raise OutputError(section, f"{name}: '{word[:60]}' cannot be")
    return value


def positive(section: str, table: Mapping[str, object], key: str) -> float:
    """A number above 0 of a JSON object."""
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutputError(section, f"{key} is {value!r}, a number is needed")
    if not 0 < value < 1e300:  # NaN too
        raise OutputError(section, f"{key} is {value!r}, which cannot be")
    return float(value)
