"""Reads the output of IO500 in out.CLIENT: its phases and its score.

The score is recomputed from the phases: the geometric mean of four bandwidths, that of eight rates,
and the square root of their product. The mark INVALID fails the run unless `invalid = true`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import number, read_complete
from steelyard.jobscripts.registry import Result

GIB = 1 << 30
BANDWIDTHS = ("ior-easy-write", "ior-hard-write", "ior-easy-read", "ior-hard-read")
RATES = (
    "mdtest-easy-write",
    "mdtest-hard-write",
    "find",
    "mdtest-easy-stat",
    "mdtest-hard-stat",
    "mdtest-easy-delete",
    "mdtest-hard-read",
    "mdtest-hard-delete",
)
UNITS = dict.fromkeys(BANDWIDTHS, "GiB/s") | dict.fromkeys(RATES, "kIOPS")
VERSION = re.compile(r"^IO500 version (\S+) \(standard\)$", re.MULTILINE)
ANY_VERSION = re.compile(r"^IO500 version .*$", re.MULTILINE)
PHASE = re.compile(
    r"\[RESULT\] +([\w-]+) +(\d+\.\d{6}) (GiB/s|kIOPS) : time (\d+\.\d{3}) seconds( \[INVALID\])? *"
)
SCORE = re.compile(
    r"\[SCORE \] Bandwidth (\d+\.\d{6}) GiB/s : IOPS (\d+\.\d{6}) kiops : TOTAL (\d+\.\d{6})"
    r"( \[INVALID\])? *"
)
WHY = re.compile(r"^ERROR INVALID \([^)]*\) (.+)$", re.MULTILINE)
END = re.compile(r"\nThe result files are stored in the directory: .+\n")
ROUNDED = 1e-6  # six decimals are printed


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the score, its two components, and every phase."""
    name = f"out.{client}"
    expected = "'The result files are stored in the directory: …' is expected"
    text = read_complete(folder, client, "io500", END, expected)
    if len(VERSION.findall(text)) != 1:
        versions = "; ".join(ANY_VERSION.findall(text)) or "no version"
        raise OutputError(
            name,
            f"'IO500 version … (standard)' is expected once: {versions[:100]}",
        )
    phases, invalid = _phases(name, text)
    score = _score(name, text, phases)
    if (invalid or score[3]) and not parameters["invalid"]:
        why = WHY.search(text)
        raise FailedError(f"the IO500 calls this run INVALID: {why[1][:200] if why else invalid}")
    valid = not (invalid or score[3])
    found = [
        Result("score", score[2], "1", 1),
        Result("valid", float(valid), "1", 1),
        Result("bandwidth", score[0] * GIB, "bytes_per_s", 1),
        Result("iops", score[1] * 1000, "1/s", 1),
    ]
    found += [Result(_metric(one), phases[one] * GIB, "bytes_per_s", 1) for one in BANDWIDTHS]
    found += [Result(_metric(one), phases[one] * 1000, "files_per_s", 1) for one in RATES]
    return [*found, *mounts.results(folder, client)]


def _metric(phase: str) -> str:
    return phase.replace("-", "_")


def _phases(name: str, text: str) -> tuple[dict[str, float], list[str]]:
    """Return the rate of each of the twelve phases, and the names of invalid ones."""
    phases: dict[str, float] = {}
    invalid = []
    for column, line in enumerate(text.splitlines(), 1):
        if not line.startswith("[RESULT]"):
            continue
        found = PHASE.fullmatch(line)
        line_name = f"{name} line {column}"
        if found is None or UNITS.get(found[1]) != found[3] or found[1] in phases:
            raise OutputError(
                line_name, f"'[RESULT] PHASE RATE UNIT : time …', each phase once: {line[:90]!r}"
            )
        phases[found[1]] = number(line_name, found[1], found[2])
        if phases[found[1]] <= 0:
            raise OutputError(line_name, f"{found[1]}: a rate of {found[2]} cannot be")
        invalid += [found[1]] if found[5] else []
    missing = [one for one in UNITS if one not in phases]
    if missing:
        raise OutputError(name, f"without the phases {', '.join(missing)}: all twelve are expected")
    return phases, invalid


def _score(
    name: str, text: str, phases: Mapping[str, float]
) -> tuple[float, float, float, str | None]:
    """Return bandwidth, rate and score as printed, and the mark INVALID or None."""
    lines = [line for line in text.splitlines() if line.startswith("[SCORE")]
    found = SCORE.fullmatch(lines[0]) if len(lines) == 1 else None
    if found is None:
        raise OutputError(name, f"{len(lines)} lines '[SCORE ] Bandwidth …', one is expected")
    printed = [number(name, "score", found[group]) for group in (1, 2, 3)]
    of = [[phases[one] for one in names] for names in (BANDWIDTHS, RATES)]
    bandwidth, iops = (_geometric_mean(rates) for rates in of)
    expected = (bandwidth, iops, math.sqrt(bandwidth * iops))
    # The smallest rate has the largest relative error.
    unsure = ROUNDED + ROUNDED / min(min(rates) for rates in of)
    for what, one, by_phases in zip(("bandwidth", "IOPS", "score"), printed, expected, strict=True):
        if abs(one - by_phases) > ROUNDED + unsure * by_phases:
            raise OutputError(name, f"{what} is {one}, by its phases {by_phases:.6f} is expected")
    return printed[0], printed[1], printed[2], found[4]


def _geometric_mean(rates: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, rates)) / len(rates))
