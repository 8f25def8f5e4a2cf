"""Reads a client's output without known noise, and reports the failures that all benchmarks share.

MPI libraries, launchers and terminals add to a program's output: lines (UCX, Open MPI, NCCL,
libfabric, srun), a rank's tag before every line, color sequences, bytes that are not UTF-8. None of
it changes a figure, so read_output(), which every parser uses, removes it. An unknown line remains:
the parser rejects it or, outside the benchmark's own output, notes it. Removed and unknown lines
become notes of the run, which collect_notes() receives."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.regular_files import read_regular, read_tail


class Note(NamedTuple):
    """Removed or unknown text of an output; `kind` is one of KINDS, `line` counts from 1."""

    kind: str
    line: int
    text: str


NOTE_KINDS = ("noise", "tag", "color", "bytes", "unknown")
NOISE = re.compile(
    r"^[ \t]*(?:"
    # [TIME] [HOST:PID:THREAD] FILE:LINE  UCX  WARN  …, at the end of MPI_Finalize
    r"\[\d+\.\d+\] \[[^\]\s]+:\d+(?::\d+)?\] +\S+:\d+ +UCX +[A-Z]+ .*"
    r"|\[(?=[^\]]*[A-Za-z])[\w.-]+:\d+\] .*"  # [HOST:PID] …: Open MPI, PMIx, PRRTE
    r"|\[\d+\] MPI startup\(\): .*"  # Intel MPI with I_MPI_DEBUG
    r"|[\w.-]+:\d+:\d+ \[\d+\] NCCL [A-Z]+ .*"
    r"|libfabric:\d+:.*"
    r"|(?:srun|slurmstepd|prterun|mpirun|mpiexec): .*"
    r"|OMP: (?:Warning|Info) #\d+: .*"
    r"|libgomp: .*"
    r")$\n?",
    re.MULTILINE,
)
BROKEN = re.compile(r"^.*\ufffd.*$", re.MULTILINE)
COLOR = re.compile(r"\x1b\[[0-9;]*m(?:\x1b\[K)?")  # grep appends "erase to the end of line"
# A launcher's tags for the rank that printed a line, and the options that enable them.
MPI_TAG = re.compile(r"^\[[^\[\]\s]*\d\](?:\[[^\[\]\s]+:\d+\])?<stdout>:?", re.MULTILINE)
MPI_TAG_ANYWHERE = re.compile(r"\[[^\[\]\s]*\d\](?:\[[^\[\]\s]+:\d+\])?<stdout>")
MPI_TAG_ORIGIN = "mpirun --tag-output, --output tag or OMPI_MCA_orte_tag_output"
RANK_TAGS = (
    (re.compile(r"^ *\d+: ?", re.MULTILINE), "srun --label or SLURM_LABELIO"),
    (re.compile(r"^\[\d+\] ?", re.MULTILINE), "mpiexec -prepend-rank"),
)
MOST_NOTES = 20  # per output and kind
MOST_CHARACTERS = 300


def decode(data: bytes) -> tuple[str, list[Note]]:
    """Return the text without colors; U+FFFD replaces bytes that are not UTF-8."""
    text = data.decode("utf-8", "replace")
    notes = _notes_of("bytes", BROKEN, text)
    if "\x1b" in text:
        notes += _notes_of("color", COLOR, text)
        text = COLOR.sub("", text)
    return text, notes


def remove_noise(file: str, text: str) -> tuple[str, list[Note]]:
    """Return the text without known lines and ranks' tags; errors name it `part`."""
    text, notes = _without_lines(text)
    text, tags = _without_tags(file, text)
    if tags:  # a tagged line may be a known one
        text, more = _without_lines(text)
        notes += [*tags, *more]
    return text, notes


def _without_lines(text: str) -> tuple[str, list[Note]]:
    notes = _notes_of("noise", NOISE, text)
    return (NOISE.sub("", text) if notes else text), notes


def _notes_of(kind: str, pattern: re.Pattern[str], text: str) -> list[Note]:
    """Return notes of the first matches; the last note has the number of further ones."""
    notes: list[Note] = []
    count, line, position = 0, 1, 0
    for count, match in enumerate(pattern.finditer(text), 1):
        if count <= MOST_NOTES:
            line += text.count("\n", position, match.start())
            position = match.start()
            notes.append(note(kind, line, match[0]))
    if count > MOST_NOTES:
        notes.append(note(kind, line, f"and {count - MOST_NOTES} more of this kind"))
    return notes


def note(kind: str, line: int, text: str) -> Note:
    """Return a note of one line, printable and truncated."""
    printable = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text.strip())
    return Note(kind, line, printable[:MOST_CHARACTERS])


def origin_of_tags(text: str) -> str:
    """Return the origin of ranks' tags in this text, with the first tagged line; or ""."""
    for pattern, origin in ((MPI_TAG, MPI_TAG_ORIGIN), *RANK_TAGS):
        found = pattern.search(text)
        if found and _tagged(pattern, text) > 1:
            line = text[found.start() :].split("\n", 1)[0]
            return f"the line '{line[:60]}' has a rank's tag, as of {origin}"
    return ""


def line_at(text: str, position: int) -> int:
    """Return the number of the line at this offset, from 1."""
    return text.count("\n", 0, position) + 1


def _without_tags(file: str, text: str) -> tuple[str, list[Note]]:
    """Remove ranks' tags.

    Open MPI's tags are unmistakable; a number with a colon is a tag only if it is before every
    line.
    """
    if MPI_TAG.search(text):
        note = _tag_note(MPI_TAG, MPI_TAG_ORIGIN, text)
        # Newer releases append a blank to the tag, also on an empty line.
        blank = all(text[m.end() : m.end() + 1] == " " for m in MPI_TAG.finditer(text))
        text = re.sub(MPI_TAG.pattern + (" " if blank else ""), "", text, flags=re.MULTILINE)
        if cut := MPI_TAG_ANYWHERE.search(text):
            raise OutputError(
                f"{file} line {line_at(text, cut.start())}",
                f"the tag '{cut[0]}' in the middle of a line, as of {MPI_TAG_ORIGIN}: measure without it",
            )
        return text, [note]
    for pattern, origin in RANK_TAGS:
        if _tagged(pattern, text) == sum(1 for line in text.splitlines() if line.strip()) > 1:
            return pattern.sub("", text), [_tag_note(pattern, origin, text)]
    return text, []


def _tagged(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))


def _tag_note(pattern: re.Pattern[str], origin: str, text: str) -> Note:
    found = pattern.search(text)
    assert found is not None  # the caller has found a tag
    message = f"'{found[0]}' and alike before {_tagged(pattern, text)} lines: {origin}"
    return note("tag", line_at(text, found.start()), message)


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
    text, notes = remove_noise(f"out.{client}", read_text(folder, client, program))
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
    text, notes = decode(data)
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
        message, origin = last_message(folder, client), origin_of_tags(text)
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
    first = line_at(text, start)
    lines = enumerate(text[start:end].split("\n"), first)
    unknown = [note("unknown", number, line) for number, line in lines if line.strip()]
    add_notes(unknown[:MOST_NOTES])


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
