"""What accounts, partitions and node types have used of the cluster, as counters for Prometheus: a file
for node_exporter's textfile collector, replaced as a whole. With --users also each user, by name.

Reads the database of `steelyard collect --cluster`: run it after that in the same cron line. The file's
name ends in .prom and its mode is 0644, since node_exporter runs as another user and opens it itself.
docs/cluster.md has the metrics, contrib/grafana/cluster.json a dashboard of them.

example: steelyard metrics /var/lib/node_exporter/steelyard.prom
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from steelyard.wrappers.base import errors, options

SUFFIX = ".prom"
MODE = 0o644  # node_exporter opens it as another user


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard metrics`."""
    options.add_database(parser, "the database of `steelyard collect --cluster`")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        help="NAME.prom in the collector's folder (default: print it)",
    )
    parser.add_argument(
        "--users",
        action="store_true",
        help="also a counter for each user, by name, which all users of this machine and of Prometheus "
        "can then read (default: no user names)",
    )
    parser.add_argument(
        "--most",
        type=int,
        default=500,
        metavar="N",
        help="users, accounts, … with their own counters (default: 500). The others share one, also "
        "after N was raised: remove FILE to restart all counters",
    )


def main(args: argparse.Namespace) -> int:
    """Read the metrics and write them."""
    from steelyard.analysis.cluster.prometheus_metrics import format_metrics

    if args.most < 1:
        raise errors.UsageError("--most: expected 1 or more")
    if args.file is not None and args.file.suffix != SUFFIX:
        raise errors.UsageError(
            f"{args.file}: node_exporter reads files whose name ends in {SUFFIX} alone",
            str(args.file),
        )
    text = format_metrics(args.database, args.most, args.file, args.users)
    if args.file is None:
        sys.stdout.write(text)
    else:
        write_file(args.file, text)
    return errors.DONE


def write_file(file: Path, text: str) -> None:
    """Replace the file by one rename; an unfinished file has another name, which the collector
    ignores."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        fd = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE
        )
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
            os.fchmod(out.fileno(), MODE)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
