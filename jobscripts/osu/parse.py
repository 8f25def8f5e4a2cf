"""Reads the tables of OSU micro-benchmarks and of the Intel MPI Benchmarks in out.CLIENT.

Every repetition prints one table. It must have each message size from `smallest` to `largest`,
doubled each time (but of a barrier); rates must agree with their rows. Figures: latency of the
smallest message, all others of the largest one. Tables of other tests and suites are rejected by
their title.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import number, read_output
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result

MICROSECOND = 1e-6
MB = 1e6
MIB = 1 << 20
# By title: the kind of an OSU test.
OSU_KINDS = {
    **dict.fromkeys(("Latency", "Multi Latency", "Multi-threaded Latency", "Multi-process Latency"), "latency"),
    "Bandwidth": "bandwidth",
    "Bi-Directional Bandwidth": "bi_bandwidth",
    "Multiple Bandwidth / Message Rate": "message_rate",
    "Barrier Latency": "barrier",
    **{
        f"{name} Latency": "collective"
        for name in (
            *("Allgather", "Allgatherv", "Allreduce", "Broadcast", "Gather", "Gatherv", "Reduce"),
            *("All-to-All Personalized Exchange", "All-to-Allv Personalized Exchange"),
            *("All-to-Allw Personalized Exchange", "Reduce_scatter", "Reduce_scatter_block"),
            *("Scatter", "Scatterv"),
        )
    },
}  # fmt: skip
OSU_TITLE = re.compile(r"# OSU MPI(?:-\w+(?: MANAGED)?)? (.+) Test v\S+")
# Optional columns: -c checks the data, -z adds percentiles.
OSU_MORE = re.compile(r"( Validation)?((?: P\d+ Tail (?:Lat\(us\)|BW\(MB/s\)))*)$")
# Their title is osu_bw's, but their rate is of all ranks that send to one node, or receive from it.
OSU_FANS = ("osu_bw_fan_in", "osu_bw_fan_out")
OSU_COLUMNS = {
    "# Size Latency (us)": ("bytes", "time"),
    "# Size Avg Latency(us)": ("bytes", "time"),
    "# Size Avg Latency(us) Min Latency(us) Max Latency(us) Iterations": (
        *("bytes", "time", "least", "most", "count"),
    ),
    "# Avg Latency(us)": ("time",),
    "# Avg Latency(us) Min Latency(us) Max Latency(us) Iterations": (
        *("time", "least", "most", "count"),
    ),
    "# Size Bandwidth (MB/s)": ("bytes", "rate"),
    "# Size MB/s Messages/s": ("bytes", "rate", "messages"),
}
# Tests of IMB-MPI1; of point-to-point ones, the number of messages that one call sends and
# receives.
IMB_MESSAGES = {"PingPong": 1, "PingPing": 1, "Sendrecv": 2, "Exchange": 4}
IMB_COLLECTIVE = (
    *("Allreduce", "Reduce", "Reduce_scatter", "Reduce_scatter_block", "Allgather", "Allgatherv"),
    *("Gather", "Gatherv", "Scatter", "Scatterv", "Alltoall", "Alltoallv", "Bcast"),
)
IMB_TITLE = re.compile(r"# +Intel ?\(R\) MPI Benchmarks? .*, MPI-1 part(?: \(GPU\))?")
# Titles of tests that cannot be read: one-sided tests, other libraries and languages, other
# components of IMB.
OTHER_TITLE = re.compile(
    r"# *((?:OSU|OMB) .*\bTest\b.*|OMB .*|Intel ?\(R\) MPI Benchmarks? .*\bpart.*)"
)
HEADER = re.compile(r"# ?(?:Size|Avg|Overall|Bandwidth|MB/s|bytes|repetitions)\b.*")
IMB_END = "# All processes entering MPI_Finalize"
IMB_COLUMNS = {
    "#bytes #repetitions t[usec] Mbytes/sec": ("bytes", "count", "time", "imb_rate"),
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec": (
        *("bytes", "count", "least", "most", "time", "imb_rate"),
    ),
    "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]": (
        *("bytes", "count", "least", "most", "time"),
    ),
    "#repetitions t_min[usec] t_max[usec] t_avg[usec]": ("count", "least", "most", "time"),
}
NEEDED = {
    "latency": {"bytes", "time"},
    "bandwidth": {"bytes", "rate"},
    "bi_bandwidth": {"bytes", "rate"},
    "message_rate": {"bytes", "rate", "messages"},
    "collective": {"bytes", "time"},
    "barrier": {"time"},
    "one_way": {"bytes", "time", "imb_rate"},
    "two_ways": {"bytes", "most", "imb_rate"},
}

Row = Mapping[str, str]


@dataclass
class Table:
    """The table of one repetition. `kind` is a key of NEEDED; cells are as printed."""

    test: str
    kind: str
    suite: str
    columns: tuple[str, ...] = ()
    processes: int = 0
    rows: list[Row] = field(default_factory=list)
    complete: bool = True


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the figures of every repetition."""
    name = f"out.{client}"
    program = Path(str(parameters["program"])).name
    if program in OSU_FANS:
        raise OutputError(
            name,
            f"{program} prints the rate of several ranks under the title of osu_bw; that is not read",
        )
    text = read_output(folder, client, "the program")
    if not text.endswith("\n"):
        raise OutputError(name, "cut short: its last line has no end")
    tables = _read_tables(name, text.splitlines())
    if len(tables) != parameters["repetitions"]:
        raise OutputError(
            name,
            f"{len(tables)} tables; {parameters['repetitions']}, one a repetition, are expected",
        )
    if len({(table.test, table.suite) for table in tables}) > 1:
        raise OutputError(name, "tables of several tests; one test is expected")
    found = []
    for iteration, table in enumerate(tables, 1):
        section = f"{name}: {table.test} {iteration}"
        _check_table(section, table, parameters)
        found += [Result(*figure, iteration) for figure in _figures(section, table)]
    return found


# --- tables ---


def _read_tables(name: str, lines: Sequence[str]) -> list[Table]:
    """Return all tables. Lines before the first title are the launcher's."""
    tables: list[Table] = []
    for line in lines:
        text = " ".join(line.split())
        started = _start_table(name, text)
        if started:
            tables.append(started)
        elif tables:
            _add_line(name, tables[-1], text)
    return tables


def _start_table(name: str, line: str) -> Table | None:
    title = OSU_TITLE.fullmatch(line)
    if title:
        if title[1] not in OSU_KINDS:
            raise OutputError(name, f"OSU's test '{title[1][:60]}' is none that can be read")
        return Table(title[1], OSU_KINDS[title[1]], "OSU")
    if IMB_TITLE.fullmatch(line):
        return Table("", "", "IMB", complete=False)
    other = OTHER_TITLE.fullmatch(line)
    if other:
        raise OutputError(
            name,
            f"'{other[1][:80]}' is none that can be read: blocking tests of OSU's pt2pt and collective "
            "and of IMB-MPI1 are",
        )
    return None


def _columns(suite: str, line: str) -> tuple[str, ...]:
    """Return the names of a table's columns; () if the line is no header."""
    if suite == "IMB":
        return IMB_COLUMNS.get(line, ())
    more = OSU_MORE.search(line)
    assert more is not None  # it may match an empty text
    columns = OSU_COLUMNS.get(line[: more.start()], ())
    verdict = ("verdict",) if more[1] else ()
    tails = tuple(f"tail{index}" for index in range(more[2].count("Tail")))
    return (*columns, *verdict, *tails) if columns else ()


def _add_line(name: str, table: Table, line: str) -> None:
    """Add a line after a title: a header, a row, a comment, or an empty line."""
    columns = _columns(table.suite, line)
    if columns:
        if table.rows:
            raise OutputError(name, f"{table.test}: a second table begins: {line!r}")
        table.columns = columns
    elif HEADER.fullmatch(line):
        why = "; IMB built with CHECK is slower" if line.endswith(" defects") else ""
        raise OutputError(
            name, f"{table.test}: the columns {line[:100]!r} are none that can be read{why}"
        )
    elif line.startswith("#"):
        if table.suite == "IMB":
            _add_imb_comment(name, table, line)
    elif line:
        values = line.split()
        if len(values) != len(table.columns) or (table.suite == "IMB" and table.complete):
            raise OutputError(
                name,
                f"{table.test}: a row of {counted(len(table.columns), 'column')} is expected: {line[:80]!r}",
            )
        table.rows.append(dict(zip(table.columns, values, strict=True)))


def _add_imb_comment(name: str, table: Table, line: str) -> None:
    if line.startswith("# Benchmarking Multi-"):
        raise OutputError(name, f"{line[2:62]!r}: several groups at once (-multi) are not read")
    test = re.fullmatch(r"# Benchmarking (\w+)", line)
    processes = re.fullmatch(r"# #processes = (\d+)", line)
    if test:
        if table.test:
            raise OutputError(name, f"{test[1]} after {table.test}; one test is expected")
        table.test = test[1]
        table.kind = _imb_kind(name, test[1])
    elif processes:
        table.processes = int(processes[1])
    elif line == IMB_END:
        table.complete = True


def _imb_kind(name: str, test: str) -> str:
    if test in IMB_MESSAGES:
        return "one_way" if IMB_MESSAGES[test] == 1 else "two_ways"
    if test in IMB_COLLECTIVE:
        return "collective"
    if test == "Barrier":
        return "barrier"
    raise OutputError(name, f"IMB-MPI1's test '{test[:60]}' is none that can be read")


# --- checks ---


def _check_table(section: str, table: Table, parameters: Mapping[str, object]) -> None:
    """Check that test, ranks and sizes are the requested ones, and that the figures agree."""
    if not table.complete:
        raise OutputError(section, f"cut short: '{IMB_END}' is expected")
    if not table.kind or not NEEDED[table.kind] <= set(table.columns):
        raise OutputError(section, f"its columns are {', '.join(table.columns) or 'missing'}")
    if table.suite == "IMB":
        if table.test.lower() != str(parameters["test"]).lower():
            raise OutputError(section, f"test is {table.test} instead of {parameters['test']}")
        ranks = 2 if table.kind == "one_way" else parameters["ranks"]
        if table.processes != ranks:
            raise OutputError(
                section, f"{counted(table.processes, 'process', 'processes')} instead of {ranks}"
            )
    expected = _expected_sizes(
        table, int(str(parameters["smallest"])), int(str(parameters["largest"]))
    )
    sizes = [row.get("bytes", "0") for row in table.rows]
    if sizes != [str(size) for size in expected]:
        raise OutputError(
            section,
            f"its sizes are {' '.join(sizes)[:80]}; {' '.join(map(str, expected))[:80]} are expected",
        )
    for row in table.rows:
        _check_row(f"{section}: {row.get('bytes', '')}", table, row)


def _expected_sizes(table: Table, smallest: int, largest: int) -> list[int]:
    """Return the sizes of a table's rows.

    IMB-MPI1 begins with an empty message; a barrier has one row without a size.
    """
    if table.kind == "barrier":
        return [0]
    sizes = [0] if table.suite == "IMB" else []
    while smallest <= largest:
        sizes.append(smallest)
        smallest *= 2
    return sizes


def _check_row(section: str, table: Table, row: Row) -> None:
    """Check that all cells are numbers, and that a rate agrees with its row."""
    if row.get("verdict", "Pass") != "Pass":
        raise FailedError(f"{section} bytes: the program's check of the data says {row['verdict']}")
    values = {
        column: number(section, column, word) for column, word in row.items() if column != "verdict"
    }
    if any(value < 0 for value in values.values()):
        raise OutputError(section, "a number below zero cannot be")
    if row.get("bytes") != "0" and not values.get("time", 1) * values.get("rate", 1) > 0:
        raise OutputError(section, "a message in no time, or a rate of zero, cannot be")
    if "least" in values and not values["least"] <= values["time"] <= values["most"]:
        raise OutputError(section, f"a mean of {row['time']}, from {row['least']} to {row['most']}")
    if "messages" in values:
        _agree(
            section,
            row["rate"],
            values["messages"] * values["bytes"] / MB,
            values["bytes"] * 0.005 / MB,
        )
    if "imb_rate" in values and values["bytes"]:
        _check_imb_rate(section, table, row, values)


def _check_imb_rate(section: str, table: Table, row: Row, values: Mapping[str, float]) -> None:
    """Check a rate of IMB: up to 2017 it is in MiB/s, later in MB/s, both labeled Mbytes/sec."""
    column = "time" if table.kind == "one_way" else "most"
    moved = values["bytes"] * IMB_MESSAGES[table.test]
    took = values[column]
    if took == 0:
        raise OutputError(section, "a message in no time cannot be")
    unsure = 0.0051 / took
    rates = [moved / (took * MICROSECOND) / unit for unit in (MB, MIB)]
    if not any(abs(values["imb_rate"] - rate) <= rate * unsure + 0.0051 for rate in rates):
        raise OutputError(
            section, f"{row['imb_rate']} Mbytes/sec, {rates[0]:.2f} by its time, {row[column]} usec"
        )


def _agree(section: str, word: str, expected: float, unsure: float) -> None:
    if abs(float(word) - expected) > unsure + 0.0051:
        raise OutputError(section, f"{word} MB/s, {expected:.2f} by its rate of messages")


# --- figures ---


def _figures(section: str, table: Table) -> list[tuple[str, float, str]]:
    """Return name, value and unit of each figure."""
    first = table.rows[1 if table.suite == "IMB" and table.kind != "barrier" else 0]
    last = table.rows[-1]
    if table.kind == "latency":
        return [("latency_s", _seconds(first["time"]), "s")]
    if table.kind in ("one_way", "two_ways"):
        column = "time" if table.kind == "one_way" else "most"
        moved = IMB_MESSAGES[table.test] * int(last["bytes"])
        direction = "bandwidth" if table.kind == "one_way" else "bi_bandwidth"
        return [
            ("latency_s", _seconds(first[column]), "s"),
            (f"{direction}_bytes_per_s", moved / _seconds(last[column]), "bytes_per_s"),
        ]
    if table.kind in ("collective", "barrier"):
        found = [("collective_s", _seconds(last["time"]), "s")]
        if "most" in last:
            found.append(("collective_max_s", _seconds(last["most"]), "s"))
        return found
    rate = float(last["rate"]) * MB
    if table.kind == "message_rate":
        return [
            ("bandwidth_bytes_per_s", rate, "bytes_per_s"),
            ("messages_per_s", float(last["messages"]), "1/s"),
        ]
    return [(f"{table.kind}_bytes_per_s", rate, "bytes_per_s")]


def _seconds(word: str) -> float:
    return float(word) * MICROSECOND
