"""Removes known noise from a benchmark's output before a parser reads it.

MPI libraries, launchers and terminals add to a program's output: lines (UCX, Open MPI, NCCL,
libfabric, srun), a rank's tag before every line, color sequences, bytes that are not UTF-8. None of
it changes a figure, so it is removed, and each removal is a Note. An unknown line remains: the
parser rejects it or, outside the benchmark's own output, notes it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from steelyard.jobscripts.errors import OutputError


class Note(NamedTuple):
    """Removed or unknown text of an output; `kind` is one of KINDS, `line` counts from 1."""

    kind: str
    line: int
    text: str


KINDS = ("noise", "tag", "color", "bytes", "unknown")
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


def remove(file: str, text: str) -> tuple[str, list[Note]]:
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
