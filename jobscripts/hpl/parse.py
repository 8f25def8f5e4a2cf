"""Reads HPL's figures from out.CLIENT: hpcc's whole output file, or what xhpl printed.

Neither program can be taken at its exit code: xhpl ends with 0 after a failed residual check, and
hpcc, given a grid that does not fit, silently runs a problem of its own and says Success=1. So the
residual's verdict is read and the problem that was solved is compared with the one asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import last_words, read_output
from steelyard.jobscripts.registry import Result

NUMBER = r"[0-9][0-9.eE+-]*"
# The columns of the result line: variant, N, NB, P, Q, time (s), rate (Gflop/s).
ROW = re.compile(
    rf"^W[RC]\w+[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+({NUMBER})[ \t]+({NUMBER})[ \t]*$",
    re.MULTILINE | re.ASCII,
)
RESIDUAL = re.compile(
    rf"^\|\|Ax-b\|\|_oo/\(.*\)[ \t]*=[ \t]*({NUMBER}|[+-]?(?:nan|inf)) \.\.\.\.\.\. (PASSED|FAILED)[ \t]*$",
    re.MULTILINE | re.ASCII | re.IGNORECASE,
)
SUMMARY = re.compile(r"^(\w+)=(\S+)[ \t]*$", re.MULTILINE | re.ASCII)
HPCC_SECTION = re.compile(
    r"^Begin of HPL section\.$(.*?)^End of HPL section\.$", re.MULTILINE | re.DOTALL
)
HPCC_SUMMARY = re.compile(
    r"^Begin of Summary section\.$(.*?)^End of Summary section\.$", re.MULTILINE | re.DOTALL
)
HPCC_END = re.compile(r"\nEnd of HPC Challenge tests\.\n(?:.*\n)*?#{60,}\n")
XHPL_END = re.compile(r"\nEnd of Tests\.\n={60,}\n")
LEAST_RATE, MOST_RATE = 1e-9, 1e12  # Gflop/s; beyond, the output is damaged


@dataclass(frozen=True)
class Solution:
    """One solved problem: n, nb, p, q, the printed time and rate, residual and its verdict."""

    problem: tuple[int, int, int, int]
    time_s: float
    gflops: float
    residual: str
    passed: bool

    @property
    def operations(self) -> float:
        """Floating-point operations, as HPL_pdtest.c counts them."""
        n = self.problem[0]
        return (2.0 / 3.0 * n + 1.5) * n * n


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """gflops, hpl_s and residual of the one problem that was asked for."""
    name = f"out.{client}"
    program = "xhpl" if parameters["xhpl"] else "hpcc"
    text = read_output(folder, client, program)
    end = XHPL_END if parameters["xhpl"] else HPCC_END
    if not end.search(text):
        words = last_words(folder, client)
        raise OutputError(name, "cut short: the end is missing" + (f" ({words})" if words else ""))
    solution = _solution(name, text if parameters["xhpl"] else _section(name, text))
    _check(name, solution, parameters)
    if parameters["xhpl"]:
        time_s, gflops = solution.operations / solution.gflops / 1e9, solution.gflops
    else:
        time_s, gflops = _summary(name, text, solution)
    return [
        Result("gflops", gflops, "Gflop/s", 1),
        Result("hpl_s", time_s, "s", 1),
        Result("residual", float(solution.residual), "1", 1),
    ]


def _section(name: str, text: str) -> str:
    found = HPCC_SECTION.findall(text)
    if len(found) != 1:
        raise OutputError(name, f"{len(found)} HPL sections instead of one")
    return str(found[0])


def _solution(name: str, text: str) -> Solution:
    rows, residuals = ROW.findall(text), RESIDUAL.findall(text)
    if len(rows) != 1 or len(residuals) != 1:
        skipped = re.search(
            r"^ *([1-9]\d*) tests skipped because of illegal input", text, re.MULTILINE
        )
        if skipped or "HPL ERROR" in text:
            raise FailedError("HPL refused its input: " + _complaint(text))
        raise OutputError(name, f"{len(rows)} results and {len(residuals)} residuals, not one each")
    n, nb, p, q, time_s, gflops = rows[0]
    return Solution(
        problem=(int(n), int(nb), int(p), int(q)),
        time_s=_number(name, time_s),
        gflops=_number(name, gflops),
        residual=residuals[0][0],
        passed=residuals[0][1].upper() == "PASSED",
    )


def _complaint(text: str) -> str:
    line = re.search(r"^HPL ERROR.*\n>>> *(.*?) *<<<|^>>> *(.*?) *<<<", text, re.MULTILINE)
    return (line[1] or line[2]) if line else "illegal input values"


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise OutputError(name, f"'{text}' is no number") from error
    if not math.isfinite(value):
        raise OutputError(name, f"'{text}' cannot be")
    return value


def _check(name: str, solution: Solution, parameters: Mapping[str, object]) -> None:
    """That it is the problem asked for, solved rightly, in a time and rate that go together."""
    asked = tuple(parameters[key] for key in ("n", "nb", "p", "q"))
    if solution.problem != asked:
        raise OutputError(
            name,
            f"(n, nb, p, q) = {solution.problem} was solved instead of {asked}: "
            "the program did not accept its input",
        )
    if not solution.passed:
        raise FailedError(f"HPL's residual check failed: {solution.residual}")
    _number(name, solution.residual)
    if not LEAST_RATE <= solution.gflops <= MOST_RATE:
        raise OutputError(name, f"a rate of {solution.gflops} Gflop/s cannot be")
    _agree(name, solution, solution.operations / solution.gflops / 1e9)


def _agree(name: str, solution: Solution, time_s: float) -> None:
    """The printed time has two decimals, the rate at least four digits."""
    if abs(time_s - solution.time_s) > 0.006 + 0.002 * time_s:
        raise OutputError(
            name, f"time {solution.time_s} s and rate {solution.gflops} Gflop/s do not go together"
        )


def _summary(name: str, text: str, solution: Solution) -> tuple[float, float]:
    """Time and rate with the six digits of hpcc's summary."""
    sections = HPCC_SUMMARY.findall(text)
    values = dict(SUMMARY.findall(sections[0])) if len(sections) == 1 else {}
    if values.get("Success") != "1":
        raise FailedError(f"hpcc says Success={values.get('Success', '(nothing)')}")
    time_s = _number(name, values.get("HPL_time", "no HPL_time"))
    gflops = 1000 * _number(name, values.get("HPL_Tflops", "no HPL_Tflops"))
    if abs(gflops - solution.gflops) > 0.001 * solution.gflops:
        raise OutputError(name, f"{gflops} Gflop/s in the summary, {solution.gflops} in the table")
    _agree(name, solution, time_s)
    return time_s, gflops
