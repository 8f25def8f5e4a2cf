"""Reads the output of mdtest 3.3 to 4.1 in out.CLIENT: its tables of rates and times.

For one iteration 3.3 prints the fastest, the slowest and the mean rank, 4.0 three times the
slowest. All ranks together have finished when the slowest has. So its rate, which must agree with
the longest time, is the overall result. 4.1 labels its times "ms/op", but they are the seconds of
the complete phase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.output import number, read_complete
from steelyard.jobscripts.registry import Result

LAUNCHED = re.compile(
    r"^mdtest-(\S+) was launched with (\d+) total task\(s\) on \d+ node\(s\)$", re.MULTILINE
)
PROBLEM = re.compile(r"^(\d+) tasks, (\d+) (files|directories|files/directories)$", re.MULTILINE)
TABLE = re.compile(
    r"^SUMMARY (rate|time)(?: \(in (?:ops/sec|ms/op)\))?: \(of (\d+) iterations\)\n +Operation +Max +Min +Mean +Std Dev\n"
    r" +-+ +-+ +-+ +-+ +-+\n((?: {3}\w.*\n)+)",
    re.MULTILINE,
)
ROW = re.compile(r" {3}(\w+ \w+) *:? +(\d+\.\d{3}) +(\d+\.\d{3}) +(\d+\.\d{3}) +(-?\d+\.\d{3}) *")
END = re.compile(r"\n-- finished at [^\n]+ --\n\n")
NAMES = {"creation": "create", "stat": "stat", "rename": "rename", "read": "read"}
NAMES |= {"removal": "remove"}
KINDS = {"files": ["File"], "directories": ["Directory"], "both": ["Directory", "File"]}
OF_KIND = {
    "File": ["creation", "stat", "read", "removal"],
    "Directory": ["creation", "stat", "rename", "removal"],
}
WORDS = {"files": "files", "directories": "directories", "both": "files/directories"}
ROUNDED_S, ROUNDED_RATE = 0.00051, 0.00051  # both are printed with three decimals


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return files and directories per second of each operation."""
    name = f"out.{client}"
    text = read_complete(folder, client, "mdtest", END, "'-- finished at … --' is expected")
    count = _problem(name, text, parameters)
    rates, times_s = _tables(name, text)
    expected = [
        f"{kind} {operation}"
        for kind in KINDS[str(parameters["kind"])]
        for operation in OF_KIND[kind]
        if operation != "rename" or not _version(name, text).startswith("3.")
    ]
    if set(rates) != set(expected) or set(times_s) != set(expected):
        raise OutputError(
            name, f"operations {', '.join(rates) or 'none'} instead of {', '.join(expected)}"
        )
    return [
        *(_rate(name, one, rates[one], times_s[one], count) for one in expected),
        *mounts.results(folder, client),
    ]


def _version(name: str, text: str) -> str:
    found = LAUNCHED.findall(text)
    if len(found) != 1:
        raise OutputError(
            name, f"'mdtest-VERSION was launched with …' {len(found)} times, not once"
        )
    return str(found[0][0])


def _problem(name: str, text: str, parameters: Mapping[str, object]) -> int:
    """Return the files (or directories) of all ranks; raise OutputError for another problem."""
    found = PROBLEM.findall(text)
    ranks = int(str(parameters["ranks"]))
    count = ranks * int(str(parameters["files"]))
    expected = (str(ranks), str(count), WORDS[str(parameters["kind"])])
    if found != [expected]:
        printed = "; ".join(f"{one[0]} tasks, {one[1]} {one[2]}" for one in found) or "no such line"
        raise OutputError(
            name, f"{printed} instead of '{expected[0]} tasks, {expected[1]} {expected[2]}'"
        )
    return count


Rows = dict[str, tuple[float, float]]


def _tables(name: str, text: str) -> tuple[Rows, Rows]:
    """Return minimum and maximum of each operation: rates, and times in s."""
    found = TABLE.findall(text)
    if [(one[0], one[1]) for one in found] != [("rate", "1"), ("time", "1")]:
        printed = ", ".join(f"{one[0]} of {one[1]} iterations" for one in found) or "none"
        more = " without --showRankStatistics" if "per Rank: Max" in text else ""
        raise OutputError(
            name,
            f"mdtest {_version(name, text)}, tables: {printed}; expected are 'rate' and 'time' of 1 "
            f"iteration (-P){more}, as of mdtest 3.3 to 4.1",
        )
    rates, times_s = (_rows(name, one[0], one[2]) for one in found)
    return rates, times_s


def _rows(name: str, table: str, lines: str) -> Rows:
    """Return the rows of a table, without those of trees, which are a few folders of mdtest."""
    rows: Rows = {}
    for line in lines.splitlines():
        match = ROW.fullmatch(line)
        if match is None or match[1] in rows:
            raise OutputError(
                name, f"{table}: no row 'Operation Max Min Mean Std Dev': {line[:80]!r}"
            )
        most, least, mean = (number(name, match[1], match[group]) for group in (2, 3, 4))
        if not least <= mean <= most:
            raise OutputError(name, f"{table} of {match[1]}: {least} ≤ {mean} ≤ {most} is expected")
        if not match[1].startswith("Tree "):
            rows[match[1]] = (least, most)
    return rows


def _rate(
    name: str, operation: str, rates: tuple[float, float], times_s: tuple[float, float], count: int
) -> Result:
    """Return the rate of the slowest rank, compared with its time of three decimals."""
    rate, longest_s = rates[0], times_s[1]
    if rate <= 0:
        raise OutputError(
            name, f"{operation}: 0 a second: expected are all phases, no -C, -T, -E, -r in options"
        )
    if abs(count / rate - longest_s) > ROUNDED_S + count / rate * ROUNDED_RATE / rate:
        raise OutputError(
            name, f"{operation}: {count} at {rate} a second do not take {longest_s} s"
        )
    kind, _, what = operation.partition(" ")
    return Result(f"{kind.lower()}_{NAMES[what]}", rate, "files_per_s", 1)
