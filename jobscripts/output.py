"""Reading a client's output, with the failures that all benchmarks share."""

from __future__ import annotations

import math
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.userfiles import read_regular, read_tail

MOST_BYTES = 64 << 20  # far more than any benchmark prints; a runaway must not fill the memory


def read_output(folder: Path, client: int, program: str) -> str:
    """The text of out.CLIENT.

    OutputError when it is absent, too large or no text; FailedError when it is empty and the
    program said something in err.CLIENT.
    """
    name = f"out.{client}"
    try:
        data = read_regular(folder / name, MOST_BYTES)
    except OSError as error:
        raise OutputError(name, f"cannot be read: {error.strerror}") from error
    if not data.strip():
        words = last_words(folder, client)
        if words:
            raise FailedError(f"{program} printed nothing and said: {words}")
        raise OutputError(name, f"empty: {program} printed nothing")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OutputError(name, f"no UTF-8 text: byte {error.start}") from error


def last_words(folder: Path, client: int) -> str:
    """The last line of err.CLIENT with something in it, or nothing."""
    try:
        text = read_tail(folder / f"err.{client}", 4096).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def number(part: str, name: str, word: str) -> float:
    """A finite number; thousands may not be grouped."""
    try:
        value = float(word)
    except ValueError as error:
        raise OutputError(part, f"{name}: '{word[:60]}' is no number") from error
    if not math.isfinite(value):
        raise OutputError(part, f"{name}: '{word[:60]}' cannot be")
    return value
