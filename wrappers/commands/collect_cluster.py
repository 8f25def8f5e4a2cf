"""`steelyard collect --cluster`: all jobs of a cluster into a database of their own."""

from __future__ import annotations

import argparse
import getpass
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.analysis.cluster.collect import Collected

SHOWN = 3  # gaps of a kind that are told one by one; --json has all

# Gaps of a kind, in words, and what to do about them.
WHAT = {
    "accounting": ("lines of sacct that name no job", "they are left out; the reason has them"),
    "record": ("records that cannot be read", "the jobs are there, without what it told"),
    "record_version": ("records of a version this Steelyard does not know", "use a newer one"),
    "incomplete_record": ("incomplete records", "totals of their jobs are not known"),
    "changed": ("records that were changed", "what they said first counts, else nothing of them"),
    "touched": ("records that somebody has had in hand", "they count where nothing contradicts"),
    "contradiction": ("jobs whose records contradict the accounting", "the accounting counts"),
    "impossible": ("jobs whose TotalCPU is more than their CPUs have", "their records count"),
    "suspended": ("jobs that were suspended", "what they held leaves that time out"),
    "clock": ("nodes whose clock was set under a job", "what was counted holds: look at chrony"),
    "clock_off": ("records whose time is no start's of their job", "look at that node's clock"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """--cluster and --since."""
    parser.add_argument(
        "--cluster",
        metavar="DIR",
        nargs="?",
        type=Path,
        const=options.CLUSTER_DIR,
        help=f"all jobs of the cluster, into a database in DIR (default: {options.CLUSTER_DIR}); Slurm",
    )
    options.add_span(
        parser, "of --cluster all since then, records of settled jobs looked at again, too"
    )


def main(args: argparse.Namespace) -> int:
    """Collect, then say what there is and what is amiss."""
    from steelyard.analysis.cluster.collect import collect
    from steelyard.analysis.collect.record_import import default_record_dirs
    from steelyard.analysis.sources.sacct_window import ClusterSacct

    if args.study is not None:
        raise errors.UsageError("--cluster takes no STUDY: leave it out")
    since = None if args.since is None else options.moment(args.since, time.time())
    record_dirs = args.record_dir or default_record_dirs()
    with console.progress_bar() as progress:
        done = collect(
            args.cluster, ClusterSacct(), record_dirs, since_unix_s=since, progress=progress
        )
    if args.json:
        console.print_json(as_json(done))
    else:
        for line in lines(done, record_dirs):
            console.print_line(line)
    return errors.DONE


def as_json(done: Collected) -> dict[str, object]:
    """What a program wants to know."""
    names = (
        *("since_unix_s", "until_unix_s", "new", "changed", "same", "records"),
        *("lost", "days", "jobs", "running", "elapsed_s"),
    )
    keys = ("job", "node", "what", "reason")
    return {
        "database": str(done.folder),
        **{name: getattr(done, name) for name in names},
        "gaps": [dict(zip(keys, gap, strict=True)) for gap in done.gaps],
    }


def lines(done: Collected, record_dirs: list[Path]) -> Iterator[str]:
    """For a person, and for cron's mail."""
    since, until = (local(at) for at in (done.since_unix_s, done.until_unix_s))
    yield (
        f"{since} to {until}: {done.new} new jobs, {done.changed} changed, {done.same} as they "
        f"were, {done.records} records read, in {console.format_seconds(done.elapsed_s)}"
    )
    if done.lost:
        yield f"{done.lost} jobs ran when last asked for, and the accounting has forgotten them"
    for folder in record_dirs:
        if not folder.is_dir():
            yield f"{folder} is not there: no record was read (--record-dir)"
    if os.getuid() and done.users and done.users <= {getpass.getuser()}:
        yield (
            "all of these jobs are yours: with PrivateData=jobs only an operator "
            "(sacctmgr modify user NAME set adminlevel=operator) sees those of others"
        )
    yield from gap_lines(done)
    yield f"{done.jobs} jobs in {done.folder}, of them {done.running} run"
    yield f"next: steelyard top{'' if done.folder == options.CLUSTER_DIR else f' --database {done.folder}'}"


def local(unix_s: float) -> str:
    """A time of day in the local zone."""
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M")


def gap_lines(done: Collected) -> Iterator[str]:
    """Each kind once with its number and what to do, the first few one by one."""
    by_kind = defaultdict(list)
    for gap in done.gaps:
        by_kind[gap[2]].append(gap)
    for what, found in by_kind.items():
        words, advice = WHAT[what]
        yield f"{len(found)} × {words}: {advice}"
        for job, _, _, reason in found[:SHOWN]:
            yield f"  job {job}: {reason}"
        if len(found) > SHOWN:
            yield f"  … and {len(found) - SHOWN} more (--json has them all)"
