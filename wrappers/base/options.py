"""Options that several commands have, spelt alike in all of them."""

from __future__ import annotations

import argparse
from pathlib import Path


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
