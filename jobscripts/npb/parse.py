"""Reads the closing block of an NPB program from out.CLIENT: NASA's 3.3 and 3.4, and ours.

NASA's programs exit with 0 after a failed verification, and some silently leave ranks idle if their
number is unsuitable. So the block's verdict is read, and kernel, class and ranks are compared with
the requested ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.mpiprofile import profile_results
from steelyard.jobscripts.output import read_output
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

HEAD = re.compile(r"^ ([A-Z]{2}(?:-MZ)?) Benchmark Completed\.?[ \t]*$", re.MULTILINE)
FIELD = re.compile(r"^ ([A-Z][A-Za-z/. ]*?)[ \t]*=[ \t]*(.*?)[ \t]*$", re.MULTILINE)
OURS = "Steelyard "  # prefix of our programs' version
LAST_FIELD = "Version"  # later fields describe the program's compilation
# Messages above the block that contradict a good verdict in it.
FAILED = re.compile(r"^.*\bverification (?:failed|unsuccessful)\b.*$", re.MULTILINE | re.IGNORECASE)
# CG prints "Error is" with every result.
ERROR = re.compile(r"^[ \t]*(?:ERROR|Error)\b(?! is\b).*$", re.MULTILINE)
ACTIVE = ("Active procs", "Active processes")


@dataclass(frozen=True)
class Block:
    """The closing block; `seconds` is None if 0.00 was printed."""

    kernel: str
    class_name: str
    ranks: int
    active_ranks: int
    verification: str
    mops: float
    mops_per_process: float
    seconds: float | None
    version: str
    vector_bits: int | None  # our programs only, if the kernel has wide vectors


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return mops and mops_per_process (Mop/s), seconds, and the requested profile."""
    name = f"out.{client}"
    if not _has_output(folder / name):
        message = first_message(folder / f"err.{client}")
        if message:
            raise FailedError(message)
    block = read_block(name, read_output(folder, client, "NPB"))
    if block.verification != "SUCCESSFUL":
        raise FailedError(f"verification: {block.verification}")
    _check(name, block, parameters)
    found = [
        Result("mops", block.mops, "Mop/s", 1),
        Result("mops_per_process", block.mops_per_process, "Mop/s", 1),
    ]
    if block.seconds is not None:
        found.append(Result("seconds", block.seconds, "s", 1))
    if block.vector_bits is not None:
        found.append(Result("vector_bits", block.vector_bits, "bits", 1))
    return found + profile_results(folder, client, parameters)


def read_block(name: str, text: str) -> Block:
    """Return the only closing block in the output `name`."""
    heads = list(HEAD.finditer(text))
    if not heads:
        error = ERROR.search(text)
        if error:
            raise FailedError(error.group().strip())
        raise OutputError(name, "cut short: no 'Benchmark Completed'")
    if len(heads) > 1:
        raise OutputError(name, f"{len(heads)} runs in one output, one was expected")
    if heads[0].group(1).endswith("-MZ"):
        raise OutputError(
            name,
            f"{heads[0].group(1)} is a multi-zone program (NPB-MZ), whose Mop/s are of threads, too: "
            "a program of NPB-MPI is expected",
        )
    fields = _fields(name, text[heads[0].end() :])
    _one_verdict(name, text[: heads[0].start()], _text(name, fields, "Verification"))
    ranks = _count(name, fields, "Total processes")
    active = next((key for key in ACTIVE if key in fields), "Total processes")
    return Block(
        kernel=heads[0].group(1).lower(),
        class_name=_text(name, fields, "Class"),
        ranks=ranks,
        active_ranks=_count(name, fields, active),
        verification=_text(name, fields, "Verification"),
        mops=_positive(name, fields, "Mop/s total"),
        mops_per_process=_positive(name, fields, "Mop/s/process"),
        seconds=_seconds(name, fields),
        version=_text(name, fields, LAST_FIELD),
        vector_bits=_vector_bits(name, fields),
    )


def _one_verdict(name: str, above: str, verification: str) -> None:
    """Check that the block's verdict agrees with messages above it."""
    failure = FAILED.search(above)
    if failure and verification == "SUCCESSFUL":
        raise OutputError(
            name, f"two verdicts: '{failure.group().strip()[:100]}', then Verification = SUCCESSFUL"
        )


def first_message(path: Path) -> str:
    """Return the first message in a file; mpirun draws lines around its messages."""
    try:
        text = read_regular(path, NOTE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = (line.strip() for line in text[:65536].splitlines())
    return next((line[:300] for line in lines if line.strip("-")), "")


def _has_output(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return True  # read_output reports the error


def _fields(name: str, text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for match in FIELD.finditer(text):
        if match.group(1) in fields:
            values = f"'{fields[match.group(1)]}' and '{match.group(2)}'"
            raise OutputError(
                name, f"{match.group(1)} is printed twice, as {values}, once was expected"
            )
        fields[match.group(1)] = match.group(2)
        if match.group(1) == LAST_FIELD:
            return fields
    raise OutputError(name, f"cut short: the closing block has no '{LAST_FIELD}'")


def _text(name: str, fields: Mapping[str, str], key: str) -> str:
    if not fields.get(key):
        if "Total threads" in fields or "Total processes" not in fields:
            family = (
                "NPB-OMP: 'Total threads'" if "Total threads" in fields else "serial, or a port"
            )
            raise OutputError(
                name, f"not from an MPI program ({family}): 'Total processes' is missing"
            )
        raise OutputError(name, f"the closing block has no '{key}'")
    return fields[key]


def _count(name: str, fields: Mapping[str, str], key: str) -> int:
    text = _text(name, fields, key)
    if not re.fullmatch(r"[0-9]{1,7}", text):
        raise OutputError(name, f"{key} is '{text}', a count is needed")
    return int(text)


def _number(name: str, fields: Mapping[str, str], key: str) -> float:
    text = _text(name, fields, key)
    if not text.strip("*"):
        raise OutputError(
            name, f"{key} is '{text}': Fortran prints stars where a number does not fit its columns"
        )
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e15:
        raise OutputError(name, f"{key} is '{text}', which cannot be")
    return value


def _positive(name: str, fields: Mapping[str, str], key: str) -> float:
    value = _number(name, fields, key)
    if value == 0:
        raise OutputError(
            name,
            f"{key} is 0: the run was too short to be timed, or too slow for the decimals that are "
            "printed",
        )
    return value


def _seconds(name: str, fields: Mapping[str, str]) -> float | None:
    return _number(name, fields, "Time in seconds") or None


def _vector_bits(name: str, fields: Mapping[str, str]) -> int | None:
    text = fields.get("Vectors")
    if text is None or text == "not used":
        return None
    found = re.fullmatch(r"\S+ ([0-9]{2,4}) bits", text)
    if found is None:
        raise OutputError(name, f"Vectors is '{text}', 'LEVEL N bits' was expected")
    return int(found[1])


def _check(name: str, block: Block, parameters: Mapping[str, object]) -> None:
    """Check that the requested problem was solved; raise OutputError otherwise."""
    for what, found, expected in (
        ("kernel", block.kernel, parameters["kernel"]),
        ("class", block.class_name, parameters["class"]),
        ("ranks", block.ranks, parameters["ranks"]),
    ):
        if found != expected:
            raise OutputError(name, f"{what} is {found} instead of {expected}")
    if block.active_ranks != block.ranks:
        raise OutputError(
            name, f"only {block.active_ranks} of {block.ranks} ranks took part in the computation"
        )
    _check_program(name, block, parameters)
    _check_rates(name, block)


def _check_program(name: str, block: Block, parameters: Mapping[str, object]) -> None:
    """Check whose program ran, if the study names it."""
    found = "steelyard" if block.version.startswith(OURS) else "nasa"
    expected = parameters["implementation"]
    if expected not in ("", found):
        raise OutputError(
            name, f"implementation is {found} ({block.version}) instead of {expected}"
        )


def _check_rates(name: str, block: Block) -> None:
    """Compare the rates: both are printed with two decimals (NASA's of many digits as floats)."""
    expected = block.mops_per_process * block.ranks
    if abs(block.mops - expected) > 0.006 * (block.ranks + 1) + 1e-6 * expected:
        raise OutputError(
            name,
            f"Mop/s total is {block.mops}, of {counted(block.ranks, 'process', 'processes')} with {block.mops_per_process}"
            f" each {expected:g} was expected",
        )
