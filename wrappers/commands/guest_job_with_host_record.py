"""A job in a virtual machine beside its host: joules, CPU and traffic of the hypervisor in the job's
time.

The host's record is one of a sampler that follows the virtual machine (docs/virtual.md says how it is
started). A folder means the one record in it that covers the job's time.

  steelyard join-host 4711 vm7.json                a guest's job by its id
  steelyard join-host 4711 host/ --figure f.svg    power and traffic over time
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.analysis.job.hypervisor_record import Joined, Side
    from steelyard.analysis.sources.records import Record

SUFFIXES = (".svg", ".png", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard join-host`."""
    parser.add_argument("guest", metavar="JOB", help="the guest's job id, or its record's file")
    parser.add_argument("host", metavar="HOST", type=Path, help="the host's record, or a folder")
    parser.add_argument(
        "--node", metavar="NAME", help="of a job on several nodes: the guest of this host"
    )
    parser.add_argument(
        "--figure", metavar="FILE", type=Path, help="power and traffic over time: .svg, .png, .pdf"
    )
    options.add_record_dir(parser)
    options.add_idle_power(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Join the records of guest and host, and print the result."""
    if args.figure is not None and args.figure.suffix not in SUFFIXES:
        raise errors.UsageError(
            f"--figure {args.figure}: expected a name that ends in .svg, .png or .pdf", "--figure"
        )
    from steelyard.analysis.job.hypervisor_record import find_host_record, join_host

    guest = guest_record(args)
    joined = join_host(
        guest, find_host_record(args.host, guest), options.idle_power(args.idle_power)
    )
    if args.figure is not None:
        from steelyard.analysis.figures.time_series import draw_host_and_guest

        draw_host_and_guest(joined, args.figure)
    if args.json:
        console.print_json(as_json(joined))
    else:
        print_joined(joined)
    return errors.DONE


def guest_record(args: argparse.Namespace) -> Record:
    """Return the record in a file, or a job's record on one node."""
    from steelyard.analysis.sources.records import read_record
    from steelyard.wrappers.show import job_data

    path = Path(args.guest)
    if path.is_file():
        return read_record(path)
    records = {one.node: one.record for one in job_data.find_job(args.guest, args.record_dir).nodes}
    names = [args.node] if args.node else list(records)
    if len(names) != 1 or names[0] not in records:
        there = ", ".join(records) or "no record of any"
        raise errors.UsageError(
            f"job {args.guest}: expected one node, --node NAME; there are: {there}", "--node"
        )
    return records[names[0]]


def as_json(joined: Joined) -> dict[str, Any]:
    """Return the document of --json; a null has its reason in `missing`."""
    share = joined.share
    parts = ("low_j", "high_j", "idle_low_j", "idle_high_j", "reason")
    return {
        "format": "steelyard-joined",
        "version": 1,
        "begin_unix_s": joined.begin_unix_s,
        "end_unix_s": joined.end_unix_s,
        "guest": side_json(joined.guest),
        "host": side_json(joined.host),
        "share": None if share is None else {name: getattr(share, name) for name in parts},
    }


def side_json(one: Side) -> dict[str, Any]:
    """Return one of the two sides for the document."""
    who = {"node": one.record.node, "job_id": one.record.get("job.job_id")}
    return {
        **who,
        "record": str(one.record.path),
        **one.used,
        "missing": one.missing,
        "thinned": one.thinned,
    }


def print_joined(joined: Joined) -> None:
    """Print a line for each counter, with guest and host."""
    from steelyard.analysis.job.hypervisor_record import COUNTERS

    seconds = joined.end_unix_s - joined.begin_unix_s
    title = f"{seconds:.1f} s of {joined.guest.record.node} on {joined.host.record.node}"
    rows = [
        (name, format_value(joined.guest, name, unit), format_value(joined.host, name, unit))
        for name, unit in COUNTERS.items()
    ]
    console.print_table(("", "guest's job", "host"), rows, title)
    share = joined.share
    if share is not None and share.low_j is not None:
        print(f"the virtual machine's, above idle: {share.low_j:.1f} … {share.high_j:.1f} J")
    for one in (joined.guest, joined.host):
        for name, reason in one.missing.items():
            print(f"{one.record.node}: no {name}: {reason}")
        if one.thinned:
            print(f"{one.record.node}: {one.thinned}")


def format_value(one: Side, name: str, unit: str) -> str:
    """Format a value with its unit."""
    value = one.used[name]
    if value is None:
        return "-"
    return console.format_bytes(value) if unit == "bytes" else f"{value:.2f} {unit}"
