"""Reads HPL's figures from out.CLIENT: hpcc's whole output file, or what xhpl printed.

Neither program can be taken at its exit code: xhpl ends with 0 after a failed residual check, and
hpcc, given a grid that does not fit, silently runs a problem of its own and says Success=1. So the
residual's verdict is read and the problem that was solved is compared with the one asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.mpiprofile import profile_results
from steelyard.jobscripts.output import last_words, number, read_output
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.userfiles import NOTE_BYTES, read_regular

NUMBER = r"[0-9][0-9.eE+-]*"
# The columns of the result line: variant, N, NB, P, Q, time (s), rate (Gflop/s).
ROW = re.compile(
    rf"^(W[RC]\w+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+({NUMBER})[ \t]+({NUMBER})[ \t]*$",
    re.MULTILINE | re.ASCII,
)
RESIDUAL = re.compile(
    rf"^\|\|Ax-b\|\|_oo/\(.*\)[ \t]*=[ \t]*({NUMBER}|[+-]?(?:nan|inf)) \.\.\.\.\.\. (PASSED|FAILED)[ \t]*$",
    re.MULTILINE | re.ASCII | re.IGNORECASE,
)
THRESHOLD = re.compile(
    rf"^- Computational tests pass if scaled residuals are less than[ \t]+({NUMBER})[ \t]*$",
    re.MULTILINE | re.ASCII,
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
SETTING = re.compile(r"^(SWAP|L1|U|EQUIL|ALIGN) *: (.*?) *$", re.MULTILINE)
PLACES = {"1ring": 0, "1ringM": 1, "2ring": 2, "2ringM": 3, "long": 4, "longM": 5}
SWAPS = {"bin-exch": "Binary-exchange", "long": "Spread-roll (long)"}
LEAST_RATE, MOST_RATE = 1e-9, 1e12  # Gflop/s; beyond, the output is damaged


@dataclass(frozen=True)
class Solution:
    """One solved problem: n, nb, p, q, the printed time and rate, residual and its verdict.

    `variant`: the letters and digits by which HPL names the algorithm (HPL_pdtest.c): W, mapping,
    depth, broadcast, recursive factorization, ndiv, panel factorization, nbmin.
    """

    variant: str
    settings: dict[str, str]
    problem: tuple[int, int, int, int]
    time_s: float
    gflops: float
    residual: str
    passed: bool
    threshold: float

    @property
    def operations(self) -> float:
        """Floating-point operations, as HPL_pdtest.c counts them."""
        n = self.problem[0]
        return (2.0 / 3.0 * n + 1.5) * n * n


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """gflops, hpl_s and residual of the one problem that was asked for."""
    name = f"out.{client}"
    asked = order_asked(folder, client, parameters)
    if parameters["xhpl"]:
        text = ended(name, read_output(folder, client, "xhpl"), XHPL_END, folder, client)
        solution = _solution(name, text)
        _check(name, solution, asked)
        time_s, gflops = solution.operations / solution.gflops / 1e9, solution.gflops
    else:
        text = ended(name, read_output(folder, client, "hpcc"), HPCC_END, folder, client)
        solution, time_s, gflops = solved_by_hpcc(name, text, asked)
    return [
        Result("gflops", gflops, "Gflop/s", 1),
        Result("hpl_s", time_s, "s", 1),
        Result("residual", float(solution.residual), "1", 1),
        *profile_results(folder, client, parameters),
    ]


def ended(name: str, text: str, end: re.Pattern[str], folder: Path, client: int) -> str:
    """The text, when it has its end."""
    if not end.search(text):
        words = last_words(folder, client)
        raise OutputError(name, "cut short: the end is missing" + (f" ({words})" if words else ""))
    return text


def order_asked(folder: Path, client: int, parameters: Mapping[str, object]) -> dict[str, object]:
    """The parameters, n as the node worked it out of `memory`: line 6 of the input file kept."""
    if not parameters["memory"]:
        return dict(parameters)
    name = f"hpl.{client}.dat"
    try:
        line = read_regular(folder / name, NOTE_BYTES).decode("utf-8").splitlines()[5]
        return {**parameters, "n": int(line.split()[0])}
    except (OSError, ValueError, IndexError) as error:
        raise OutputError(name, f"does not say which n was asked for: {error}") from error


def solved_by_hpcc(
    name: str, text: str, asked: Mapping[str, object]
) -> tuple[Solution, float, float]:
    """HPL's part of hpcc's output, checked; its time (s) and rate (Gflop/s) with six digits."""
    solution = _solution(name, _section(name, text))
    _check(name, solution, asked)
    return solution, *_summary(name, text, solution)


def _section(name: str, text: str) -> str:
    found = HPCC_SECTION.findall(text)
    if len(found) != 1:
        raise OutputError(name, f"{len(found)} HPL sections instead of one")
    return str(found[0])


def _solution(name: str, text: str) -> Solution:
    rows, residuals = ROW.findall(text), RESIDUAL.findall(text)
    thresholds = THRESHOLD.findall(text)
    if len(rows) != 1 or len(residuals) != 1:
        skipped = re.search(
            r"^ *([1-9]\d*) tests skipped because of illegal input", text, re.MULTILINE
        )
        if skipped or "HPL ERROR" in text:
            raise FailedError("HPL refused its input: " + _complaint(text))
        raise OutputError(name, f"{len(rows)} results and {len(residuals)} residuals, not one each")
    if len(thresholds) != 1:
        raise OutputError(name, f"{len(thresholds)} thresholds of the residual, one is needed")
    variant, n, nb, p, q, time_s, gflops = rows[0]
    return Solution(
        variant=variant,
        settings=dict(SETTING.findall(text)),
        problem=(int(n), int(nb), int(p), int(q)),
        time_s=number(name, "time", time_s),
        gflops=number(name, "Gflops", gflops),
        residual=residuals[0][0],
        passed=residuals[0][1].upper() == "PASSED",
        threshold=number(name, "threshold", thresholds[0]),
    )


def _complaint(text: str) -> str:
    line = re.search(r"^HPL ERROR.*\n>>> *(.*?) *<<<|^>>> *(.*?) *<<<", text, re.MULTILINE)
    return (line[1] or line[2]) if line else "illegal input values"


def _check(name: str, solution: Solution, parameters: Mapping[str, object]) -> None:
    """That it is the problem asked for, solved rightly, in a time and rate that go together."""
    asked = tuple(parameters[key] for key in ("n", "nb", "p", "q"))
    if solution.problem != asked:
        raise OutputError(
            name,
            f"(n, nb, p, q) = {solution.problem} was solved instead of {asked}: "
            "the program did not accept its input",
        )
    _check_algorithm(name, solution, parameters)
    _check_residual(name, solution, parameters)
    if not LEAST_RATE <= solution.gflops <= MOST_RATE:
        raise OutputError(name, f"a rate of {solution.gflops} Gflop/s cannot be")
    _agree(name, solution, solution.operations / solution.gflops / 1e9)


def _check_residual(name: str, solution: Solution, parameters: Mapping[str, object]) -> None:
    """The printed verdict is not believed alone: the residual is compared with what was asked."""
    threshold = float(str(parameters["threshold"]))
    # HPL prints one decimal of it.
    if abs(solution.threshold - threshold) > 0.051:
        raise OutputError(
            name, f"residuals up to {solution.threshold} passed, asked was {threshold}"
        )
    if not solution.passed:
        raise FailedError(f"HPL's residual check failed: {solution.residual}")
    if not 0 <= number(name, "residual", solution.residual) < threshold:
        raise OutputError(
            name,
            f"a residual of {solution.residual} is called PASSED, less than {threshold} was expected",
        )


def _check_algorithm(name: str, solution: Solution, parameters: Mapping[str, object]) -> None:
    variant = "".join(
        [
            "W",
            str(parameters["pmap"])[0].upper(),
            str(parameters["depth"]),
            str(PLACES[str(parameters["bcast"])]),
            str(parameters["rfact"])[0].upper(),
            str(parameters["ndiv"]),
            str(parameters["pfact"])[0].upper(),
            str(parameters["nbmin"]),
        ]
    )
    mix = f"Mix (threshold = {parameters['swap_threshold']})"
    asked = {
        "SWAP": SWAPS.get(str(parameters["swap"]), mix),
        "L1": f"{parameters['l1']} form",
        "U": f"{parameters['u']} form",
        "EQUIL": "yes" if parameters["equilibration"] else "no",
        "ALIGN": f"{parameters['alignment']} double precision words",
    }
    if solution.variant != variant:
        raise OutputError(name, f"variant {solution.variant} was run instead of {variant}")
    for key, value in asked.items():
        found = solution.settings.get(key)
        if found != value:
            raise OutputError(name, f"{key} was '{found}' instead of '{value}'")


def _agree(name: str, solution: Solution, time_s: float) -> None:
    """The printed time has two decimals, the rate at least four digits."""
    if abs(time_s - solution.time_s) > 0.006 + 0.002 * time_s:
        raise OutputError(
            name, f"time {solution.time_s} s and rate {solution.gflops} Gflop/s do not go together"
        )


def summary(text: str) -> dict[str, str]:
    """hpcc's own summary, KEY=VALUE; empty unless there is exactly one."""
    sections = HPCC_SUMMARY.findall(text)
    return dict(SUMMARY.findall(sections[0])) if len(sections) == 1 else {}


def value(name: str, metric: str, values: Mapping[str, str]) -> float:
    """A number of hpcc's summary; OutputError without it."""
    if metric not in values:
        raise OutputError(name, f"the summary has no {metric}")
    return number(name, metric, values[metric])


def _summary(name: str, text: str, solution: Solution) -> tuple[float, float]:
    """Time and rate with the six digits of hpcc's summary."""
    values = summary(text)
    if values.get("Success") != "1":
        raise FailedError(f"hpcc says Success={values.get('Success', '(nothing)')}")
    time_s = value(name, "HPL_time", values)
    gflops = 1000 * value(name, "HPL_Tflops", values)
    if abs(gflops - solution.gflops) > 0.001 * solution.gflops:
        raise OutputError(name, f"{gflops} Gflop/s in the summary, {solution.gflops} in the table")
    _agree(name, solution, time_s)
    return time_s, gflops
