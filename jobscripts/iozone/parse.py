"""Reads the output of IOzone 3.4 and 3.507 in out.CLIENT: throughput mode and auto mode.

Its "kB", which versions before 3.43 call KB, are 1024 bytes. The exit code is not reliable: the
last line must exist, and every figure of the requested tests. With -O or -N the same table contains
operations per second, or microseconds, and is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import cut_at_end, number, read_output
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result

END = re.compile(r"^iozone test complete\.\n", re.MULTILINE)
# Columns of a test (-i) in auto mode, in this order.
COLUMNS = {
    0: ("write", "rewrite"),
    1: ("read", "reread"),
    2: ("random_read", "random_write"),
    3: ("backward_read",),
    4: ("record_rewrite",),
    5: ("stride_read",),
    6: ("fwrite", "frewrite"),
    7: ("fread", "freread"),
}
# Their names in throughput mode.
WORKERS = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random readers": "random_read",
    "random writers": "random_write",
    "reverse readers": "backward_read",
    "stride readers": "stride_read",
    "fwriters": "fwrite",
    "freaders": "fread",
}
SEEN = re.compile(
    r"^\tChildren see throughput for +(\d+) ([a-z -]+?) *\t+= *([0-9.]+) [kK]B/sec *$",
    re.MULTILINE | re.ASCII | re.IGNORECASE,
)
EACH = re.compile(
    r"^\tEach (?:process|thread) writes a (\d+) [kK][Bb]yte file in (\d+) [kK][Bb]yte records$",
    re.MULTILINE,
)
ROW = re.compile(r"^ +\d+(?: +\d+)+ *$", re.MULTILINE | re.ASCII)
COMMAND = re.compile(r"^\tCommand line used: (.*)$", re.MULTILINE)
UNIT = re.compile(r"^\tOutput is in [kK][bB]ytes/sec *$", re.MULTILINE)
OTHER_UNIT = re.compile(r"^\t(.*Mode\. Output is in .*\S)", re.MULTILINE)
KIB = 1024


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return bytes per second of each test; in auto mode, one iteration per pair of sizes."""
    name = f"out.{client}"
    text = read_output(folder, client, "iozone")
    trouble = re.search(r"^(Can not open|Error|iozone: ).*$", text, re.MULTILINE)
    if trouble and not END.search(text):
        raise FailedError(f"iozone says: {trouble[0].strip()}")
    text = cut_at_end(folder, client, text, END)
    if text.count("Performance Test of File I/O") != 1 or len(END.findall(text)) != 1:
        raise OutputError(name, "not the output of one iozone")
    _check_unit(name, text)
    _check_switches(name, text, parameters)
    tests = [int(word) for word in str(parameters["tests"]).split()]
    if parameters["mode"] == "auto":
        found = _auto(name, text, tests, parameters)
    else:
        found = _throughput(name, text, tests, parameters)
    return found + mounts.results(folder, client)


def _check_unit(name: str, text: str) -> None:
    if other := OTHER_UNIT.search(text):
        raise OutputError(name, f"iozone with -O or -N: '{other[1]}', kBytes/sec are expected")
    if not UNIT.search(text):
        raise OutputError(name, "no unit in it: 'Output is in kBytes/sec' is expected")


def _check_switches(name: str, text: str, parameters: Mapping[str, object]) -> None:
    """Check fsync, close and O_DIRECT in the command line, which iozone repeats."""
    commands = COMMAND.findall(text)
    if len(commands) != 1:
        raise OutputError(name, "no command line in it")
    switches = commands[0].split()
    for switch, is_expected in (("-e", parameters["sync"]), ("-I", parameters["direct"])):
        if (switch in switches) != is_expected:
            raise OutputError(
                name, f"{switch} is {'not ' if is_expected else ''}in its command line"
            )


def _throughput(
    name: str, text: str, tests: list[int], parameters: Mapping[str, object]
) -> list[Result]:
    sizes = tuple(_kib(parameters[key]) for key in ("size", "record"))
    each = [(int(size), int(record)) for size, record in EACH.findall(text)]
    if each != [sizes]:
        raise OutputError(name, f"(file, record) in kB is {each} instead of {sizes}")
    expected = [metric for test in tests for metric in COLUMNS[test] if metric in WORKERS.values()]
    values: dict[str, float] = {}
    for count, worker, rate in SEEN.findall(text):
        metric = WORKERS.get(worker.strip())
        if metric is None or metric in values or int(count) != parameters["processes"]:
            raise OutputError(name, f"'{count} {worker}' was not requested, or is printed twice")
        values[metric] = _rate(name, metric, rate)
    if sorted(values) != sorted(expected):
        raise OutputError(name, f"figures of {sorted(values)} instead of {sorted(expected)}")
    return [Result(metric, values[metric], "bytes_per_s", 1) for metric in expected]


def _auto(name: str, text: str, tests: list[int], parameters: Mapping[str, object]) -> list[Result]:
    expected = [metric for test in sorted(tests) for metric in COLUMNS[test]]
    rows = [line.split() for line in ROW.findall(text)]
    sizes = [(int(row[0]), int(row[1])) for row in rows]
    problems = _pairs(parameters)
    if sizes != problems:
        raise OutputError(name, f"(file, record) in kB are {sizes} instead of {problems}")
    results = []
    for iteration, row in enumerate(rows, start=1):
        if len(row) != 2 + len(expected):
            raise OutputError(
                name, f"{counted(len(row) - 2, 'figure')} in a row instead of {len(expected)}"
            )
        for metric, word in zip(expected, row[2:], strict=True):
            rate = _rate(name, metric, word)
            results.append(Result(metric, rate, "bytes_per_s", iteration))
    return results


def _pairs(parameters: Mapping[str, object]) -> list[tuple[int, int]]:
    """Return sizes of file and record in KiB, doubled from the smallest; no record exceeds its
    file.
    """
    keys = ("size", "most_size", "record", "most_record")
    size, most_size, record, most_record = (_kib(parameters[key]) for key in keys)
    return [
        (one, other)
        for one in _doubled(size, most_size)
        for other in _doubled(record, most_record)
        if other <= one
    ]


def _doubled(least: int, most: int) -> list[int]:
    found = []
    while least <= most:
        found.append(least)
        least *= 2
    return found


def _kib(value: object) -> int:
    return int(str(value)) // KIB


def _rate(name: str, metric: str, word: str) -> float:
    value = number(name, metric, word) * KIB
    if value <= 0:
        raise OutputError(name, f"{metric} is {word} kB/s, which cannot be")
    return value
