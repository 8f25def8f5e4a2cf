"""Who uses the cluster: joules, CPU hours, bytes and unused allocations of the jobs that ended in a
period, by user, account, partition, node type or application.

Reads the database of `steelyard collect --cluster`, which may be running meanwhile. A sum covers
the jobs with a known value; if some have none, the number of jobs in the sum follows it.
docs/cluster.md has the formula of each quantity."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.commands.collect import format_local_time
from steelyard.wrappers.show.terminal_text import format_joules

if TYPE_CHECKING:
    from steelyard.analysis.cluster.top import Line, Top

BY = ("user", "account", "partition", "node-type", "application")
# Sort keys and their quantities in the answer; None is the number of jobs.
SORT = {
    "joules": "energy_j",
    "cpu": "cpu_s",
    "allocated": "cpu_allocated_s",
    "waste": "cpu_unused_s",
    "memory-waste": "memory_unused_byte_s",
    "read": "read_bytes",
    "written": "write_bytes",
    "jobs": None,
}
DEFAULT_SINCE = "30d"
HOUR_S, GIB = 3600.0, 1024.0**3


def format_hours(value: float) -> str:
    """Format seconds as hours."""
    return f"{value / HOUR_S:,.2f}"


def format_gib_hours(value: float) -> str:
    """Format byte seconds as GiB hours."""
    return f"{value / HOUR_S / GIB:,.2f}"


COLUMNS: dict[str, tuple[str, Callable[[float], str]]] = {
    "joules": ("energy_j", format_joules),
    "CPU h": ("cpu_s", format_hours),
    "of CPU h allocated": ("cpu_allocated_s", format_hours),
    "CPU h unused": ("cpu_unused_s", format_hours),
    "GiB h unused": ("memory_unused_byte_s", format_gib_hours),
    "read": ("read_bytes", console.format_bytes),
    "written": ("write_bytes", console.format_bytes),
}
SHOWN_REASONS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard top`."""
    options.add_database(parser, "the database of `steelyard collect --cluster`")
    parser.add_argument(
        "--by", choices=BY, default="user", help="print a line for each of these (default: user)"
    )
    options.add_span(
        parser,
        f"jobs that ended at this time or later ({DEFAULT_SINCE})",
        "and before this time (now)",
    )
    parser.add_argument(
        "--sort",
        choices=SORT,
        default="cpu",
        metavar="WHAT",
        help=f"sort by this, the largest first: {', '.join(SORT)} (default: cpu)",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=20,
        metavar="N",
        help="lines; 0: all, as with --json and --csv (default: 20)",
    )
    options.add_engine(parser)
    options.add_json(parser)
    parser.add_argument(
        "--csv", action="store_true", help="print comma-separated values, in J, s and bytes"
    )


def main(args: argparse.Namespace) -> int:
    """Sum the usage and print it."""
    from steelyard.analysis.cluster.top import sum_top

    now = time.time()
    since = options.moment(args.since or DEFAULT_SINCE, now)
    until = now if args.until is None else options.moment(args.until, now)
    if args.json and args.csv:
        raise errors.UsageError("--json and --csv are two forms of one answer: choose one")
    if until <= since:
        raise errors.UsageError("--until is not later than --since: no time is between them")
    found = sum_top(args.database, args.by, since, until, args.engine, args.master)
    ordered = sorted(found.lines, key=lambda line: sort_key(line, SORT[args.sort]))
    if args.json:
        console.print_json(as_json(found, ordered, args.by))
    elif args.csv:
        write_csv(found, ordered, args.by)
    else:
        print_screen(found, ordered, args)
    return errors.DONE


def sort_key(line: Line, quantity: str | None) -> tuple[bool, float, str]:
    """Return a key that sorts the largest first, and lines without a known value last."""
    value = line.jobs if quantity is None else line.values[quantity]
    return value is None, -(value or 0.0), line.name


def print_screen(found: Top, ordered: list[Line], args: argparse.Namespace) -> None:
    """Print the table, and what is missing from it."""
    most = args.most if args.most > 0 else len(ordered)
    chosen = ordered[:most]
    rows = [format_row(line) for line in [*chosen, found.total]]
    title = f"jobs that ended {format_local_time(found.since_unix_s)} to {format_local_time(found.until_unix_s)}"
    console.print_table((args.by, "jobs", *COLUMNS), rows, title)
    if len(chosen) < len(ordered):
        print(f"{len(ordered) - len(chosen)} more are in the last line alone: --most 0")
    for line in list_remarks(found):
        console.print_line(line)


def format_row(line: Line) -> list[object]:
    """Return a row of the table; `(3)` is the number of jobs with a known value."""
    row: list[object] = [line.name, str(line.jobs)]
    for name, form in COLUMNS.values():
        value, known = line.values[name], line.known[name]
        known_jobs = "" if known == line.jobs else f" ({known})"
        row.append("–" if value is None else f"{form(value)}{known_jobs}")
    return row


def list_remarks(found: Top) -> Iterator[str]:
    """Yield remarks on missing values, and on the end of the collected time."""
    total, titles = found.total, {name: title for title, (name, _) in COLUMNS.items()}
    for name, title in titles.items():
        if total.known[name] < total.jobs:
            why = found.why[name]
            reasons = "; ".join(f"{count} × {reason}" for reason, count in why[:SHOWN_REASONS])
            remaining = len(why) - SHOWN_REASONS
            more = f"; {counted(remaining, 'more reason')}" if remaining > 0 else ""
            yield f"{title}: known of {total.known[name]} of {counted(total.jobs, 'job')}. Not: {reasons}{more}"
    if total.marked:
        yield f"{counted(total.marked, 'job')} {inflect(total.marked, 'has', 'have')} records that are odd: `marks` in the database says how"
    until = found.mark["queried_until_unix_s"]
    if until is None:
        yield "the accounting has reported no job yet"
    elif until < found.until_unix_s:
        yield f"collected until {format_local_time(until)}; {counted(found.mark['running'], 'job')} ran then: not in it"


def as_json(found: Top, ordered: list[Line], by: str) -> dict[str, object]:
    """Return the document of --json; J, s, bytes, byte seconds."""
    return {
        "format": "steelyard-top",
        "version": 1,
        "by": by,
        "since_unix_s": found.since_unix_s,
        "until_unix_s": found.until_unix_s,
        "collected_until_unix_s": found.mark["queried_until_unix_s"],
        "running": found.mark["running"],
        "lines": [line_json(line) for line in ordered],
        "total": line_json(found.total),
        "reasons": {
            name: [{"reason": reason, "jobs": jobs} for reason, jobs in why]
            for name, why in found.why.items()
        },
    }


def line_json(line: Line) -> dict[str, object]:
    """Return a line for the document; a sum is null if no job has a known value."""
    sums = {
        name: {"sum": line.values[name], "jobs_known": line.known[name]} for name in line.values
    }
    return {"name": line.name, "jobs": line.jobs, "jobs_marked": line.marked, **sums}


def write_csv(found: Top, ordered: list[Line], by: str) -> None:
    """Print a line for each; an empty cell is unknown for all jobs."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    names = list(found.total.values)
    writer.writerow([by, "jobs", *(n for name in names for n in (name, f"{name}_jobs_known"))])
    for line in ordered:
        values = ((line.values[name], line.known[name]) for name in names)
        writer.writerow([line.name, line.jobs, *(cell for pair in values for cell in pair)])
