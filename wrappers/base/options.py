"""Options that several commands have, spelt alike in all of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.wrappers.base.errors import UsageError

if TYPE_CHECKING:
    from steelyard.analysis.store.energy_shares import IdlePower


def add_study(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """STUDY, for studydir.resolve(); where `optional`, None stands for the only one here."""
    text = "the study file, its folder or its name"
    parser.add_argument(
        "study",
        metavar="STUDY",
        nargs="?" if optional else None,
        help=f"{text} (default: the only study here)" if optional else text,
    )


def add_record_dir(parser: argparse.ArgumentParser) -> None:
    """--record-dir, a list of folders or None."""
    parser.add_argument(
        "--record-dir",
        type=Path,
        action="append",
        metavar="DIR",
        help="where the nodes leave records; repeatable (default: $STEELYARD_RECORD_DIR, else "
        "/var/lib/steelyard/records)",
    )


def add_json(parser: argparse.ArgumentParser, text: str = "print one JSON document") -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help=text)


def add_include_invalid(parser: argparse.ArgumentParser) -> None:
    """--include-invalid."""
    parser.add_argument(
        "--include-invalid",
        action="store_true",
        help="also use runs whose conditions were not met (left out otherwise)",
    )


def add_energy_shares(parser: argparse.ArgumentParser) -> None:
    """--energy-shares and --idle-power, for idle_power_of_shares()."""
    parser.add_argument(
        "--energy-shares",
        action="store_true",
        help="also what of their nodes' joules is the jobs' own, above idle: energy_low_j (at "
        "least) and energy_high_j (at most), on shared nodes too (docs/energy.md)",
    )
    add_idle_power(parser)


def add_idle_power(parser: argparse.ArgumentParser) -> None:
    """--idle-power, for idle_power()."""
    parser.add_argument(
        "--idle-power",
        metavar="WATTS",
        help="what a node draws when nothing runs, by the meter that gives energy_j: 62, or by "
        "node: c1=62,c2=70 (default: not known, at most the least that was seen)",
    )


def idle_power_of_shares(args: argparse.Namespace) -> IdlePower | None:
    """None: no shares are asked for."""
    if args.energy_shares:
        return idle_power(args.idle_power)
    if args.idle_power is not None:
        raise UsageError(
            "--idle-power is for shares of joules: add --energy-shares", args.idle_power
        )
    return None


def idle_power(text: str | None) -> IdlePower:
    """`62`, `c1=62,c2=70`, `c1=62,70`: the last for all others; None: not known."""
    from steelyard.analysis.store.energy_shares import IdlePower

    of_nodes: dict[str, float] = {}
    elsewhere: float | None = None
    for part in text.split(",") if text is not None else ():
        node, equals, number = part.rpartition("=")
        watts = watts_of(number)
        if watts is None or bool(node) != bool(equals) or node in of_nodes:
            raise UsageError(
                f"--idle-power '{text}': '{part}' is no power: expected watts, such as 62, or "
                "NODE=WATTS, each node once, with commas between them",
                part,
            )
        if node:
            of_nodes[node] = watts
        elif elsewhere is not None:
            raise UsageError(f"--idle-power '{text}' gives two numbers for all nodes", part)
        else:
            elsewhere = watts
    return IdlePower(of_nodes, elsewhere)


def watts_of(text: str) -> float | None:
    """A power of 0 to 1 MW, in digits; None: it is none."""
    try:
        watts = float(text)
    except ValueError:
        return None
    return watts if 0 <= watts <= 1e6 else None
