"""Reading a client's output, with the failures that all benchmarks share."""

from __future__ import annotations

import math
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError

MOST_BYTES = 64 << 20  # far more than any benchmark prints; a runaway must not fill the memory


def read_output(folder: Path, client: int, program: str) -> str:
    """The text of out.CLIENT.

    OutputError when it is absent, too large or no text; FailedError when it is empty and the
    program said something in err.CLIENT.
    """
    name = f"out.{client}"
    try:
        with (folder / name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise OutputError(name, f"cannot be read: {error.strerror}") from error
    if len(data) > MOST_BYTES:
        raise OutputError(name, f"larger than {MOST_BYTES} bytes")
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
        text = (folder / f"err.{client}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text[-4096:].splitlines() if line.strip()]
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
