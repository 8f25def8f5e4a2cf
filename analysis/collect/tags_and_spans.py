"""Reads the notes of a run's own script: tags, programs and their checksums, and spans.

They are in docs/formats.md parts 6 and 7. Malformed lines are ignored, since users write these
files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.store.row_files import parse_json
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

SPAN = re.compile(r"[a-z][a-z0-9_]{0,63}")
LARGEST = 2**31


@dataclass(frozen=True, slots=True)
class UsedFile:
    """A row of the table `environment` without run and attempt."""

    node: str
    kind: str  # program or library
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Span:
    """A row of the table `spans` without run and attempt."""

    span: str
    iteration: int
    begin_unix_s: float
    end_unix_s: float


def read_tags(attempt: Attempt) -> dict[tuple[str, str], str]:
    """Return the value of each (node, key).

    A tag of the run's script replaces one of the record.
    """
    found = {
        (node, key): value
        for node, record in attempt.records.items()
        for key, value in record.tags.items()
    }
    for node, line in read_note_lines(attempt, "tags"):
        key, equals, value = line.partition("=")
        if key and equals:
            found[node, key] = value
    return found


def read_used_files(attempt: Attempt) -> Iterator[UsedFile]:
    """Yield programs and libraries, each once per node."""
    seen = set()
    for node, line in read_note_lines(attempt, "environment"):
        used = parse_used_file(node, line)
        if used is not None and used not in seen:
            seen.add(used)
            yield used


def parse_used_file(node: str, line: str) -> UsedFile | None:
    """Parse one line of environment.CLIENT; return None when it is malformed."""
    try:
        document = json.loads(line)
    except ValueError:
        return None
    if not isinstance(document, Mapping):
        return None
    values = [document.get(key) for key in ("kind", "path", "sha256")]
    return UsedFile(node, *map(str, values)) if all(isinstance(w, str) for w in values) else None


def read_spans(attempt: Attempt) -> Iterator[Span]:
    """Yield the named time spans of the run's script, each iteration once.

    Ignore malformed lines.
    """
    texts = [line for _, line in read_note_lines(attempt, "spans")]
    if attempt.folder is not None:
        texts += read_text(attempt.folder.path / "spans.run").split("\n")[:-1]
    seen = set()
    for line in texts:
        span = parse_span(line)
        if span is not None and (span.span, span.iteration) not in seen:
            seen.add((span.span, span.iteration))
            yield span


def parse_span(line: str) -> Span | None:
    """Parse one line of spans.CLIENT or spans.run; return None when it is malformed."""
    try:
        document = parse_json(line)
        name, iteration = str(document["span"]), int(document.get("iteration", 1))
        begin, end = float(document["begin_unix_s"]), float(document["end_unix_s"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    if not SPAN.fullmatch(name) or not 0 <= begin < end or not 0 < iteration < LARGEST:
        return None
    return Span(name, iteration, begin, end)


def read_note_lines(attempt: Attempt, name: str) -> Iterator[tuple[str, str]]:
    """Yield (node, line) of NAME.CLIENT of every client, without a truncated last line."""
    if attempt.folder is None:
        return
    for client in range(attempt.clients or 0):
        text = read_text(attempt.folder.path / f"{name}.{client}")
        if text:
            node = read_client_node(attempt.folder.path, client)
            yield from ((node, line) for line in text.split("\n")[:-1])


def read_client_node(folder: Path, client: int) -> str:
    """Return the node on which a client reported that it was ready, or an empty string."""
    fields = read_text(folder / f"client.{client}").split()
    return fields[1] if len(fields) > 1 and fields[0] == "ready" else ""


def read_text(path: Path) -> str:
    """Return a file's text, or an empty string when it does not exist or is no regular file."""
    try:
        return read_regular(path, NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
