"""Reads the resource usage of a benchmark's program, measured by steelyard-time (lib/usage.sh)."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.jobscripts.regular_files import read_regular

LINE = re.compile(r"([a-z_]{1,64})=([0-9]{1,18}(?:\.[0-9]{1,6})?)")
MOST_BYTES = 4096
# Output of bash's `times`: user and system time of the shell, then of its children.
TIMES = re.compile(r"(?:(\d{1,9})m(\d{1,2}\.\d{1,6})s)", re.ASCII)


def read(folder: Path, client: int, number: int) -> dict[str, float]:
    """Return KEY=VALUE of the client's `number`-th program (from 1); {}: not measured."""
    try:
        text = read_regular(folder / f"usage.{client}.{number}", MOST_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return {}
    found = (LINE.fullmatch(line) for line in text.splitlines())
    return {match[1]: float(match[2]) for match in found if match}


def shell_cpu_s(folder: Path, name: str) -> tuple[float, bool] | None:
    """Return the CPU time in s of a shell and the children it waited for; None: not recorded.

    The flag states whether the run's first shell waited for this shell.
    """
    try:
        text = read_regular(folder / f"shell.{name}", MOST_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return None
    address, *lines = text.splitlines() or [""]
    found = [60 * int(minutes) + float(rest) for minutes, rest in TIMES.findall("\n".join(lines))]
    return (sum(found), address == "below") if len(found) == 4 else None
