"""Reads STREAM's table from out.CLIENT, of the original program and of ours.

The original may be built for floats (-DSTREAM_TYPE=float) and with -DVERBOSE.

STREAM exits with 0 if its arrays are wrong. So its verdict is read, the size and number of
repetitions are compared with the requested ones, and every rate is compared with its time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import cut_at_end, number, read_output
from steelyard.jobscripts.registry import Result

ARRAYS = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}  # arrays that a loop reads or writes
NUMBER = r"[ \t]+([0-9.]+)"
ROW = re.compile(rf"^(Copy|Scale|Add|Triad):{NUMBER * 4}[ \t]*$", re.MULTILINE | re.ASCII)
ELEMENTS = re.compile(r"^Array size = (\d+) \(elements\)", re.MULTILINE | re.ASCII)
TIMES = re.compile(r"^Each kernel will be executed (\d+) times\.$", re.MULTILINE | re.ASCII)
THREADS = re.compile(r"^Number of Threads counted = (\d+)$", re.MULTILINE | re.ASCII)
WORD = re.compile(r"^This system uses (\d+) bytes per array element\.$", re.MULTILINE | re.ASCII)
OTHER = re.compile(
    r"^(?:Data is distributed across .*|This system uses .* DOUBLE PRECISION word\.|BabelStream"
    r"| *STREAM Version .*)$",
    re.MULTILINE,
)
FAILED = re.compile(r"^Failed Validation.*$", re.MULTILINE)
END = re.compile(
    r"^Solution Validates: avg error less than \S+ on all three arrays\n"
    r"(?:Results Validation Verbose Results: *\n(?: {4}.*\n){3})?-{61}\n",
    re.MULTILINE,
)


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the best rate of each loop, in bytes per second."""
    name = f"out.{client}"
    text = read_output(folder, client, "STREAM")
    if other := OTHER.search(text):
        raise OutputError(
            name,
            f"'{other[0].strip()[:100]}' is of another STREAM: expected is stream.c 5.10, not its MPI, "
            "Fortran or earlier version, nor BabelStream",
        )
    failed = FAILED.search(text)
    if failed:
        raise FailedError(f"STREAM's arrays are wrong: {failed.group().strip()[:200]}")
    text = cut_at_end(folder, client, text, END, "'Solution Validates' is expected")
    elements = _count(name, text, ELEMENTS, "elements", parameters["elements"])
    _count(name, text, TIMES, "repetitions", parameters["repetitions"])
    if parameters["threads"]:
        _count(name, text, THREADS, "threads", parameters["threads"])
    sizes = WORD.findall(text) or ["8"]  # our program has doubles, and does not print the size
    if len(sizes) != 1 or sizes[0] not in ("4", "8"):
        raise OutputError(name, f"elements of {', '.join(sizes)} bytes instead of 8 or 4")
    size = elements * int(sizes[0])
    rows = ROW.findall(text)
    if [row[0] for row in rows] != list(ARRAYS):
        raise OutputError(name, f"loops {[row[0] for row in rows]} instead of {list(ARRAYS)}")
    return [_rate(name, row, size) for row in rows]


def _count(name: str, text: str, pattern: re.Pattern[str], what: str, expected: object) -> int:
    """Return a number that must be printed once and equal to the requested one."""
    found = pattern.findall(text)
    if len(found) != 1:
        raise OutputError(name, f"{what}: printed {len(found)} times, once was expected")
    if int(found[0]) != expected:
        raise OutputError(name, f"{what} = {found[0]} instead of {expected}")
    return int(found[0])


def _rate(name: str, row: tuple[str, ...], size: int) -> Result:
    """Return a rate; MB/s have one decimal, times six. `size`: bytes of an array."""
    loop = row[0]
    rate, mean_s, least_s, most_s = (number(name, loop, word) for word in row[1:])
    if not 0 < least_s <= mean_s <= most_s:
        raise OutputError(name, f"{loop}: times {row[2:]} are not mean, least and most")
    expected = ARRAYS[loop] * 1e-6 * size / least_s
    if abs(rate - expected) > 0.06 + expected * 0.6e-6 / least_s:
        raise OutputError(name, f"{loop}: {rate} MB/s in {least_s} s do not go together")
    return Result(loop.lower(), 1e6 * rate, "bytes_per_s", 1)
