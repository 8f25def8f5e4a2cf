"""The document that lib/pairs.sh prints: a client's report for every pair of nodes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import read_output


@dataclass(frozen=True)
class Pair:
    """One client and the server; `report` is what the client's program printed."""

    where: str
    report: object


def read_pairs(folder: Path, client: int, program: str) -> list[Pair]:
    """The pairs in out.CLIENT, at least one; FailedError when a client's program failed."""
    name = f"out.{client}"
    text = read_output(folder, client, program)
    try:
        document = json.loads(text)
        rows = document["pairs"]
        pairs = [(_pair(row, program), row["exit_code"], row["errors"]) for row in rows]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OutputError(name, f"cut short or damaged: {error}") from error
    if not pairs or document.keys() != {"pairs"}:
        raise OutputError(name, "no client reported anything")
    for pair, code, errors in pairs:
        # iperf3 tells its reason in the report itself.
        if code != 0 and not (isinstance(pair.report, dict) and pair.report.get("error")):
            raise FailedError(f"{pair.where}: exit code {code}: {_words(pair, errors)}")
    return [pair for pair, _, _ in pairs]


def _words(pair: Pair, errors: object) -> str:
    """The client's last words, or what stands in their place."""
    words = str(errors).strip().splitlines()
    if isinstance(pair.report, dict):
        words = words or ["no reason given, though its report is whole"]
    return (words or [str(pair.report).strip() or "nothing"])[-1][:300]


def _pair(row: dict[str, object], program: str) -> Pair:
    return Pair(f"{program} {row['client']} > {row['server']}", row["report"])


def number(where: str, part: object, key: str) -> float:
    """A finite number that is not negative, from a JSON object; OutputError without it."""
    value = part.get(key) if isinstance(part, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise OutputError(where, f"no number '{key}'")
    if not math.isfinite(value) or value < 0:
        raise OutputError(where, f"'{key}' is {value}, which cannot be")
    return float(value)
