"""Reads the output of IOR 3.3 and 4.0 in out.CLIENT: its text, or its JSON document.

Every repetition's rate is compared with the bytes of all ranks and its time. All of them together
are compared with maximum, minimum and mean in IOR's summary.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import number, read_complete, read_document, read_output
from steelyard.jobscripts.registry import Result

MIB = 1 << 20
OPERATIONS = ("write", "read")
HEAD = re.compile(r"^IOR-(\S+): MPI Coordinated Test of Parallel I/O$", re.MULTILINE)
# access bw IOPS latency block xfer open wr/rd close total iteration
ROW = re.compile(
    r"^(write|read) +([0-9.]+)" + 7 * r" +\S+" + r" +([0-9.]+) +(\d+) *$", re.MULTILINE | re.ASCII
)
SUMMARY = re.compile(
    r"^Summary of all tests:\nOperation .*\n((?:.*\n)*?)Finished +: .+\n", re.MULTILINE
)
WRONG_DATA = re.compile(r"Incorrect data on \w+ \(\d+ errors found\)")
# The columns that are read of a summary's row.
MOST, LEAST, MEAN, STONEWALL, RANKS, REPETITIONS, SEGMENTS, BLOCK = 1, 2, 3, 10, 13, 15, 21, 22
COLUMNS = 27


@dataclass(frozen=True)
class Repetition:
    """Rate (MiB/s) and time (s) as printed."""

    rate: str
    seconds: str


@dataclass(frozen=True)
class Summary:
    """IOR's summary of all repetitions of an operation."""

    most: str
    least: str
    mean: str
    ranks: int
    repetitions: int
    all_bytes: int  # of all ranks, in each repetition
    stonewall: bool  # then fewer bytes were transferred


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the bytes per second of every write and every read."""
    name = f"out.{client}"
    if parameters["summary"] == "json":
        rows, summaries = _json(name, read_output(folder, client, "IOR"))
    else:
        expected = "the summary and 'Finished' are expected"
        rows, summaries = _text(name, read_complete(folder, client, "IOR", SUMMARY, expected))
    if not summaries or {one for one in OPERATIONS if rows[one]} != set(summaries):
        raise OutputError(
            name,
            f"its summary has {', '.join(summaries) or 'nothing'}: every operation is expected",
        )
    found: list[Result] = []
    for operation, summary in summaries.items():
        section = f"{name}: {operation}"
        _check(section, rows[operation], summary, parameters)
        found += [
            Result(operation, number(section, "rate", one.rate) * MIB, "bytes_per_s", i)
            for i, one in enumerate(rows[operation], 1)
        ]
    return [*found, *mounts.results(folder, client)]


Rows = dict[str, list[Repetition]]


def _text(name: str, text: str) -> tuple[Rows, dict[str, Summary]]:
    """Read IOR's text, which has one test."""
    summary, versions = SUMMARY.search(text), HEAD.findall(text)
    if len(versions) != 1 or summary is None:
        raise OutputError(name, "not the output of one IOR: 'IOR-VERSION: …' is expected once")
    if "Stonewall(s)" not in summary[0].splitlines()[1]:
        raise OutputError(
            name,
            f"the output of IOR {versions[0]}, whose summary has no column Stonewall(s): IOR 3.3 or "
            "later is expected",
        )
    wrong = WRONG_DATA.search(text)
    if wrong:
        raise FailedError(f"IOR's check of the data: {wrong[0]}")
    rows: Rows = {one: [] for one in OPERATIONS}
    for operation, rate, seconds, iteration in ROW.findall(text[: summary.start()]):
        if int(iteration) != len(rows[operation]):
            raise OutputError(
                name, f"{operation} {iteration}: iteration {len(rows[operation])} is expected"
            )
        rows[operation].append(Repetition(rate, seconds))
    summaries: dict[str, Summary] = {}
    for line in summary[1].splitlines():
        cells = line.split()
        if cells and cells[0] in OPERATIONS:
            summaries |= {cells[0]: _summary_row(name, line, cells, summaries)}
    return rows, summaries


def _summary_row(
    name: str, line: str, cells: Sequence[str], before: Mapping[str, Summary]
) -> Summary:
    if len(cells) != COLUMNS or cells[0] in before:
        raise OutputError(
            name, f"summary of one test, {COLUMNS} columns in a row, is expected: {line[:80]!r}"
        )
    ranks, repetitions, segments, block = (
        int(number(name, f"column {column + 1} of the summary", cells[column]))
        for column in (RANKS, REPETITIONS, SEGMENTS, BLOCK)
    )
    every = ranks * segments * block
    stonewall = cells[STONEWALL] != "NA"
    return Summary(cells[MOST], cells[LEAST], cells[MEAN], ranks, repetitions, every, stonewall)


def _json(name: str, text: str) -> tuple[Rows, dict[str, Summary]]:
    """Read IOR's document: 3.3 has a list of operations per repetition, 4.0 one list of all."""
    document, _ = read_document(name, text, json.JSONDecoder(parse_float=str))
    try:
        (test,) = document["tests"]
        results = [
            one
            for listed in test["Results"]
            for one in (listed if isinstance(listed, list) else [listed])
        ]
        rows: Rows = {
            operation: [
                Repetition(str(one["bwMiB"]), str(one["totalTime"]))
                for one in results
                if one["access"] == operation
            ]
            for operation in OPERATIONS
        }
        stonewall = bool(test["Parameters"]["deadlineForStonewall"])
        segments = int(test["Parameters"]["segmentCount"])
        summaries = {
            str(one["operation"]): _summary_object(one, segments, stonewall)
            for one in document["summary"]
            if one["operation"] in OPERATIONS
        }
        if (
            not text.endswith("\n")
            or not document["Finished"]
            or len(summaries) != len(document["summary"])
        ):
            raise ValueError("one summary of each of write and read is expected")
    except (ValueError, KeyError, TypeError) as error:
        raise OutputError(name, f"cut short or damaged: {error}") from error
    return rows, summaries


def _summary_object(one: Mapping[str, object], segments: int, stonewall: bool) -> Summary:
    ranks, repetitions, block = (
        int(str(one[key])) for key in ("numTasks", "repetitions", "blockSize")
    )
    return Summary(
        most=str(one["bwMaxMIB"]),
        least=str(one["bwMinMIB"]),
        mean=str(one["bwMeanMIB"]),
        ranks=ranks,
        repetitions=repetitions,
        all_bytes=ranks * segments * block,
        stonewall=stonewall,
    )


def _check(
    section: str, rows: Sequence[Repetition], summary: Summary, parameters: Mapping[str, object]
) -> None:
    """Check that this is the requested test, and that its figures agree."""
    for what, found in (("ranks", summary.ranks), ("repetitions", summary.repetitions)):
        if found != parameters[what]:
            raise OutputError(section, f"{what} = {found} instead of {parameters[what]}")
    if len(rows) != summary.repetitions:
        raise OutputError(section, f"{len(rows)} repetitions, {summary.repetitions} are expected")
    for one in rows:
        _check_row(section, one, summary)
    rates = [float(one.rate) for one in rows]
    wide = max(_half_unit(one.rate) for one in rows)
    for what, word, expected in (
        ("most", summary.most, max(rates)),
        ("least", summary.least, min(rates)),
        ("mean", summary.mean, sum(rates) / len(rates)),
    ):
        if abs(number(section, what, word) - expected) > wide + _half_unit(word):
            raise OutputError(
                section, f"{what} {word} MiB/s in the summary, {expected:.2f} by its repetitions"
            )


def _check_row(section: str, one: Repetition, summary: Summary) -> None:
    rate, seconds = number(section, "rate", one.rate), number(section, "time", one.seconds)
    if rate <= 0:
        raise OutputError(section, f"a rate of {one.rate} MiB/s cannot be")
    expected_s = summary.all_bytes / MIB / rate
    unsure_s = _half_unit(one.seconds) + expected_s * _half_unit(one.rate) / rate
    # At a stonewall fewer bytes are transferred; IOR prints how many for all repetitions only.
    if seconds - expected_s > unsure_s or (
        expected_s - seconds > unsure_s and not summary.stonewall
    ):
        raise OutputError(
            section,
            f"{summary.all_bytes} bytes at {one.rate} MiB/s take {expected_s:.6f} s, not {one.seconds}",
        )


def _half_unit(word: str) -> float:
    """Return slightly more than half of the last printed digit."""
    return 0.51 * 10.0 ** -len(word.partition(".")[2])
