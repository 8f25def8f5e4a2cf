"""Reads HPCG's document from out.CLIENT: the text of version 3.1, or the YAML of 3.0.

Intel's program (oneMKL) names its document after the problem (n104-8p-1t, version V3.1) and has
blanks around the keys of its summary. NVIDIA's omits nz, which follows from the number of
equations.

HPCG exits with 0 if its result is not valid. So its verdict is read, the problem is compared with
the requested one, and its rates are compared with the operations and times (ReportResults.cpp).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import number, read_output
from steelyard.jobscripts.registry import Result

HEAD = re.compile(r"\A(?:HPCG-Benchmark|n\d+-\d+p-\d+t)(?:\nversion=| version: )V?3\.\d+\n")
# The last line of a valid result: it is official, may become official, or was too short.
END = re.compile(
    r"\n *(?:Final Summary ?:: *)?(?:(?:After confirmation please|Please) upload results from the YAML file "
    r"contents to(?:=|: )http://hpcg-benchmark\.org|Official results execution time \(sec\) must be at "
    r"least(?:=|: )\d+)\n\Z"
)
INVALID = re.compile(r"HPCG result is *(?:=|:) *INVALID")
DIGITS = 1e-5  # relative: numbers are printed with six digits

RANKS = "Machine Summary::Distributed Processes"
EQUATIONS = "Linear System Information::Number of Equations"
SETUP_S = "Setup Information::Setup Time"
RESIDUAL = "Reproducibility Information::Scaled residual mean"
ITERATIONS = "Iteration Count Information::Total number of optimized iterations"
A_SET = "Iteration Count Information::Optimized CG iterations per set"
OPTIMIZATION_S = "Benchmark Time Summary::Optimization phase"
SOLVE_S = "Benchmark Time Summary::Total"
OPERATIONS = "Floating Point Operations Summary::Total with convergence overhead"
RAW = "GFLOP/s Summary::Total with convergence overhead"
RATE = "GFLOP/s Summary::Total with convergence and optimization phase overhead"
RATING = "Final Summary::HPCG result is VALID with a GFLOP/s rating of"


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the rating, the rate without overheads, the time, and the residual."""
    name = f"out.{client}"
    text = read_output(folder, client, "HPCG")
    if not HEAD.match(text):
        raise OutputError(f"{name} line 1", "no document of HPCG 3: 'HPCG-Benchmark' is expected")
    if INVALID.search(text):
        raise FailedError("HPCG says that its result is INVALID")
    if not END.search(text):
        raise OutputError(
            name, "cut short: HPCG's last line, of upload or of the official time, is missing"
        )
    document = _Document(name, text)
    _check_problem(document, parameters)
    solve_s, operations = document.number(SOLVE_S), document.number(OPERATIONS)
    document.agrees(RAW, operations / solve_s / 1e9 if solve_s > 0 else math.nan)
    sets = document.number(ITERATIONS) / max(1.0, document.number(A_SET))
    # Each set counts for a tenth of set-up and optimization: official runs have ten sets at least.
    overhead_s = sets * (document.number(OPTIMIZATION_S) + document.number(SETUP_S)) / 10
    document.agrees(RATE, operations / (solve_s + overhead_s) / 1e9)
    document.agrees(RATING, document.number(RATE))
    return [
        Result("gflops", document.number(RATING), "Gflop/s", 1),
        Result("raw_gflops", document.number(RAW), "Gflop/s", 1),
        Result("solve_s", solve_s, "s", 1),
        Result("residual", document.number(RESIDUAL), "1", 1),
    ]


def _check_problem(document: _Document, parameters: Mapping[str, object]) -> None:
    """Compare the problem with the requested one; HPCG itself chooses the grid of ranks."""
    ranks = int(str(parameters["ranks"]))
    expected: dict[str, int] = {RANKS: ranks}
    points = ranks
    for axis in ("nx", "ny", "nz"):
        key = f"Local Domain Dimensions::{axis}"
        if axis != "nz" or key in document.values:
            expected[key] = int(str(parameters[axis]))
        points *= int(str(parameters[axis]))
    for key, value in {**expected, EQUATIONS: points}.items():
        if document.number(key) != value:
            raise OutputError(
                document.part(key), f"{key} is {document.values[key][0][1]} instead of {value}"
            )


class _Document:
    """Values by SECTION::KEY, each with the number of its line."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.values: dict[str, list[tuple[int, str]]] = {}
        for line_number, key, value in _pairs(text):
            self.values.setdefault(key, []).append((line_number, value))

    def part(self, key: str) -> str:
        """Return a value's line, for a message."""
        return f"{self.name} line {self.values[key][0][0]}"

    def number(self, key: str) -> float:
        """Return the number of a key; raise OutputError if it is not in the output once."""
        lines = self.values.get(key, [])
        if len(lines) != 1:
            raise OutputError(self.name, f"'{key}' is printed {len(lines)} times, once is expected")
        value = number(self.part(key), key, lines[0][1])
        if value < 0:
            raise OutputError(self.part(key), f"{key} is {value:g}, which cannot be")
        return value

    def agrees(self, key: str, expected: float) -> None:
        """Raise OutputError if a rate does not follow from its operations and times."""
        found = self.number(key)
        if not (found > 0 and abs(found - expected) <= 3 * DIGITS * expected):
            raise OutputError(
                self.part(key),
                f"{key} is {found:g}, {expected:g} is expected by the figures beside it",
            )


def _pairs(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield each line's number, SECTION::KEY and value; YAML has the section on an earlier line."""
    section = ""
    yaml = " version: " in text.split("\n", 1)[0]
    for line_number, line in enumerate(text.splitlines(), 1):
        if not yaml:
            key, _, value = line.rpartition("=")
            yield line_number, "::".join(word.strip() for word in key.split("::")), value
        elif not line.startswith(" "):
            section = line.partition(":")[0].strip("_ ")
        else:
            key, _, value = line.rpartition(": ")
            yield line_number, f"{section}::{key.strip()}", value
