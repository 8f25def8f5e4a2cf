"""Options that several commands share, with the same spelling in all of them."""

from __future__ import annotations

import argparse
import re
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.stats.number_format import parse_percent
from steelyard.wrappers.base.errors import UsageError

if TYPE_CHECKING:
    from steelyard.analysis.store.energy_shares import IdlePower

UNITS_S = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
CLUSTER_DIR = Path("/var/lib/steelyard/cluster")
LATEST_UNIX_S = 2.0**35  # the end of sacct's own times, in the year 3058
TODAY = "@today"  # a session without a name; an empty name is an unset variable in a script


def add_study(
    parser: argparse.ArgumentParser, optional: bool = False, several: bool = False
) -> None:
    """Add STUDY, for study.folder.resolve_study(). If `optional`, None means the only study
    here. If `several`, it is a list, which may be empty."""
    text = "the study file, its folder or its name; NAME@SESSION for one of its sessions"
    parser.add_argument(
        "study",
        metavar="STUDY",
        nargs="*" if several else "?" if optional else None,
        help=f"{text} (default: the only study here)" if optional or several else text,
    )


def add_record_dir(parser: argparse.ArgumentParser) -> None:
    """Add --record-dir, a list of folders or None."""
    parser.add_argument(
        "--record-dir",
        type=Path,
        action="append",
        metavar="DIR",
        help="the folder in which nodes write records; repeatable (default: $STEELYARD_RECORD_DIR, else "
        "record_dir of /etc/steelyard/openpbs.json or pbs.conf, else /var/lib/steelyard/records)",
    )


def add_database(parser: argparse.ArgumentParser, what: str) -> None:
    """Add --database, the folder of a cluster's database."""
    parser.add_argument(
        "--database",
        metavar="DIR",
        type=Path,
        default=CLUSTER_DIR,
        help=f"{what} (default: {CLUSTER_DIR})",
    )


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add --engine and --master, which select what computes on Parquet files."""
    parser.add_argument(
        "--engine",
        choices=("duckdb", "spark"),
        default="duckdb",
        help="the engine for queries: duckdb, in this process (default), or spark",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="a Spark cluster, spark://HOST:7077 (default: Spark in this process)",
    )


def add_json(parser: argparse.ArgumentParser, text: str = "print one JSON document") -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help=text)


def add_include_invalid(parser: argparse.ArgumentParser) -> None:
    """Add --include-invalid."""
    parser.add_argument(
        "--include-invalid",
        action="store_true",
        help="also use runs whose conditions were not met (default: leave them out)",
    )


def add_energy_shares(parser: argparse.ArgumentParser) -> None:
    """Add --energy-shares and --idle-power, for idle_power_of_shares()."""
    parser.add_argument(
        "--energy-shares",
        action="store_true",
        help="also give bounds of the energy of the jobs alone, above idle: energy_low_j and "
        "energy_high_j, on shared nodes too (docs/energy.md)",
    )
    add_idle_power(parser)


def add_idle_power(parser: argparse.ArgumentParser) -> None:
    """Add --idle-power, for idle_power()."""
    parser.add_argument(
        "--idle-power",
        metavar="WATTS",
        help="an idle node's power in watts, by the meter that gives energy_j: 62, or by node: "
        "c1=62,c2=70 (default: not known; the lowest power seen is its upper bound)",
    )


def idle_power_of_shares(args: argparse.Namespace) -> IdlePower | None:
    """Return the idle power; None if no shares are requested. Raises UsageError for --idle-power
    without --energy-shares."""
    if args.energy_shares:
        return idle_power(args.idle_power)
    if args.idle_power is not None:
        raise UsageError(
            "--idle-power is for shares of joules: add --energy-shares", args.idle_power
        )
    return None


def add_equivalent(parser: argparse.ArgumentParser) -> None:
    """Add --equivalent, a share or None."""
    parser.add_argument(
        "--equivalent",
        metavar="PERCENT",
        type=lambda text: percent_of("--equivalent", text, "2%"),
        help='the largest overhead that does not matter, such as 2%%; overheads can then be found "within '
        '± 2 %%" (default: `equivalent` of the study file)',
    )


def add_tolerate(parser: argparse.ArgumentParser) -> None:
    """Add --tolerate, a share or None."""
    parser.add_argument(
        "--tolerate",
        metavar="PERCENT",
        type=lambda text: percent_of("--tolerate", text, "10%"),
        help="how much worse than at the baseline a figure may be, such as 10%%: states for each factor of "
        "numbers how far it may go (default: `tolerate` of the study file)",
    )


def percent_of(option: str, text: str, example: str) -> float:
    """Return a percentage as a share. Raises UsageError for another text."""
    share = parse_percent(text if text.endswith("%") else f"{text}%")
    if share is None:
        raise UsageError(
            f"{option} '{text}' is no share: expected percent above 0, such as {example}", text
        )
    return share


def idle_power(text: str | None) -> IdlePower:
    """Parse `62`, `c1=62,c2=70` or `c1=62,70` (W): a number without a node is for all others. None
    is unknown."""
    from steelyard.analysis.store.energy_shares import IdlePower

    of_nodes: dict[str, float] = {}
    elsewhere: float | None = None
    for item in text.split(",") if text is not None else ():
        node, equals, number = item.rpartition("=")
        watts = watts_of(number)
        if watts is None or bool(node) != bool(equals) or node in of_nodes:
            raise UsageError(
                f"--idle-power '{text}': '{item}' is no power: expected watts, such as 62, or "
                "NODE=WATTS, each node once, with commas between them",
                item,
            )
        if node:
            of_nodes[node] = watts
        elif elsewhere is not None:
            raise UsageError(f"--idle-power '{text}' gives two numbers for all nodes", item)
        else:
            elsewhere = watts
    return IdlePower(of_nodes, elsewhere)


def watts_of(text: str) -> float | None:
    """Return a power of 0 to 1 MW in watts; None for another text."""
    try:
        watts = float(text)
    except ValueError:
        return None
    return watts if 0 <= watts <= 1e6 else None


def add_span(parser: argparse.ArgumentParser, since: str, until: str | None = None) -> None:
    """Add --since and, if `until` has its help text, --until, for moment()."""
    examples = "90m, 12h, 7d, 2w ago, or 2026-11-01, 2026-11-01T12:00 in the local zone"
    parser.add_argument("--since", metavar="TIME", help=f"{since}: {examples}")
    if until is not None:
        parser.add_argument("--until", metavar="TIME", help=until)


def moment(text: str, now_unix_s: float) -> float:
    """Return the time of `7d` ago, or of a date or time in the local zone, in seconds since 1970.
    Raises UsageError."""
    match = re.fullmatch(r"(\d{1,6})([mhdw])", text, re.ASCII)
    try:
        found = datetime.fromisoformat(text).timestamp() if match is None else None
    except (ValueError, OverflowError, OSError):
        found = -1.0
    if match is not None:
        found = now_unix_s - float(match[1]) * UNITS_S[match[2]]
    if found is None or not 0 <= found < LATEST_UNIX_S:
        raise UsageError(
            f"'{text}' is no time: expected 90m, 12h, 7d or 2w ago, or a date such as 2026-11-01",
            text,
        )
    return found
