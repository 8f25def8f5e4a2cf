"""`steelyard collect --cluster`: all jobs of a cluster into a database of their own."""

from __future__ import annotations

import argparse
import getpass
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.commands import gap_list

if TYPE_CHECKING:
    from steelyard.analysis.cluster.collect import Collected

# Descriptions of each kind of gap, and what to do about it.
KINDS = {
    "accounting": ("lines of sacct without a job", "they are ignored; the reason quotes them"),
    "record": ("unreadable records", "their jobs are listed without measurements"),
    "record_version": ("records of a newer version", "update this Steelyard"),
    "incomplete_record": ("incomplete records", "totals of their jobs are unknown"),
    "changed": ("records that were modified", "their first contents count, else none"),
    "touched": (
        "records that a user may have modified",
        "they count unless something contradicts them",
    ),
    "contradiction": ("jobs whose records contradict the accounting", "the accounting counts"),
    "impossible": ("jobs whose TotalCPU is more than their CPUs have", "their records count"),
    "suspended": ("jobs that were suspended", "allocated time excludes the suspension"),
    "clock": (
        "nodes whose clock was set while a job ran",
        "counters are right; check chrony or ntpd",
    ),
    "clock_off": ("records whose start time is not their job's", "check the node's clock"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --cluster and --since."""
    parser.add_argument(
        "--cluster",
        metavar="DIR",
        nargs="?",
        type=Path,
        const=options.CLUSTER_DIR,
        help=f"collect all jobs of the cluster into a database in DIR (default: {options.CLUSTER_DIR}); Slurm only",
    )
    options.add_span(
        parser, "with --cluster: jobs since then, and re-read the records of completed jobs"
    )


def main(args: argparse.Namespace) -> int:
    """Collect, then print what was collected and what is missing."""
    from steelyard.analysis.cluster.collect import collect
    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.analysis.sources.cluster_sacct import ClusterSacct

    if args.study is not None:
        raise errors.UsageError("--cluster takes no STUDY: leave it out")
    since = None if args.since is None else options.moment(args.since, time.time())
    record_dirs = args.record_dir or find_default_record_dirs()
    with console.progress_bar() as progress:
        done = collect(
            args.cluster, ClusterSacct(), record_dirs, since_unix_s=since, progress=progress
        )
    if args.json:
        console.print_json(as_json(done))
    else:
        for line in format_lines(done, record_dirs):
            console.print_line(line)
    return errors.DONE


def as_json(done: Collected) -> dict[str, object]:
    """Return the document of --json."""
    names = (
        *("since_unix_s", "until_unix_s", "new", "changed", "unchanged", "records"),
        *("lost", "days", "jobs", "running", "elapsed_s"),
    )
    keys = ("job", "node", "kind", "reason")
    return {
        "database": str(done.folder),
        **{name: getattr(done, name) for name in names},
        "gaps": [dict(zip(keys, gap, strict=True)) for gap in done.gaps],
    }


def format_lines(done: Collected, record_dirs: list[Path]) -> Iterator[str]:
    """Yield the lines for the terminal and for cron's mail."""
    since, until = (format_local_time(at) for at in (done.since_unix_s, done.until_unix_s))
    yield (
        f"{since} to {until}: {counted(done.new, 'new job')}, {done.changed} changed, {done.unchanged} "
        f"unchanged, {counted(done.records, 'record')} read, in {console.format_seconds(done.elapsed_s)}"
    )
    if done.lost:
        yield f"{counted(done.lost, 'job')} that ran at the last collection {inflect(done.lost, 'is', 'are')} no longer in the accounting"
    for folder in record_dirs:
        if not folder.is_dir():
            yield f"{folder} does not exist: no record was read (--record-dir)"
    if os.getuid() and done.users and done.users <= {getpass.getuser()}:
        yield (
            "all of these jobs are yours: with PrivateData=jobs only an operator "
            "(sacctmgr modify user NAME set adminlevel=operator) sees those of others"
        )
    gaps = ((kind, f"job {job}", reason) for job, _, kind, reason in done.gaps)
    yield from gap_list.format_kinds(gaps, KINDS, "")
    yield f"{counted(done.jobs, 'job')} in {done.folder}, of them {done.running} running"
    yield f"next: steelyard top{'' if done.folder == options.CLUSTER_DIR else f' --database {done.folder}'}"


def format_local_time(unix_s: float) -> str:
    """Format date and time in the local zone."""
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M")
