"""Reads HPL's figures from out.CLIENT: the complete output file of hpcc, or the output of xhpl.

The exit codes of these programs are not reliable. xhpl exits with 0 after a failed residual check.
hpcc, with an invalid grid, silently solves another problem and reports Success=1. So the residual's
verdict is read, and the solved problem is compared with the requested one. A run may solve several
systems (several values of SEVERAL). Each is checked, and one that failed fails the run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.mpiprofile import profile_results
from steelyard.jobscripts.output import cut_at_end, number, read_complete, read_output
from steelyard.jobscripts.registry import Result
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

NUMBER = r"[0-9][0-9.eE+-]*"
# The columns of the result line: variant, N, NB, P, Q, time (s), rate (Gflop/s). NVIDIA's program
# appends the rate of each GPU.
ROW = re.compile(
    rf"^(W[RC]\w+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)[ \t]+({NUMBER})[ \t]+({NUMBER})"
    rf"(?:[ \t]+\([ \t]*{NUMBER}\))?[ \t]*$",
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
# Programs that factor in lower precision print HPL's table, but their rate is not HPL's.
MIXED = re.compile(
    r"^(?:HPLMXP_\w+|HPL_AI +W|HPL-(?:AI|MxP)-NVIDIA|\*+ HPL[- ]MxP Result)", re.MULTILINE
)
# rocHPL with -P, -Q or -N writes its table to HPL.out, and prints only its progress.
ROCHPL_SCORE = re.compile(r"^Final Score: +\S+ GFLOPS *$", re.MULTILINE)
NVIDIA = re.compile(r"^HPL-NVIDIA \d+\.\d+", re.MULTILINE)
# NVIDIA's row since 24.3. The variant contains only the mapping, since the program ignores the
# parameters below: a value other than HPL.dat's default would have no effect.
NVIDIA_ROW = re.compile(r"W[RC]\d")
NVIDIA_IGNORES: Mapping[str, object] = {
    "pfact": "right",
    "nbmin": 4,
    "ndiv": 2,
    "rfact": "crout",
    "bcast": "1ringM",
    "depth": 1,
    "l1": "transposed",
    "u": "transposed",
    "equilibration": True,
    "alignment": 8,
}
# Parameters that may have several values in a run (hpl.toml).
SEVERAL = ("nb", "pfact", "nbmin", "ndiv", "rfact", "bcast", "depth")
LEAST_RATE, MOST_RATE = 1e-9, 1e12  # Gflop/s; other rates mean that the output is damaged


@dataclass(frozen=True)
class Solution:
    """One solved problem: n, nb, p, q, the printed time and rate, residual and its verdict.

    `variant` is HPL's name of the algorithm (HPL_pdtest.c): W, mapping, depth, broadcast, recursive
    factorization, ndiv, panel factorization, nbmin.
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
        """Return the number of floating-point operations, as HPL_pdtest.c counts them."""
        n = self.problem[0]
        return (2.0 / 3.0 * n + 1.5) * n * n


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return gflops, hpl_s (in s) and residual of the system.

    Of several systems these are the fastest one's figures and the largest residual, followed by the
    index of the fastest, the mean rate, and each system's rate and residual.
    """
    name = f"out.{client}"
    order = order_requested_problems(folder, client, parameters)
    if parameters["xhpl"]:
        text = read_output(folder, client, "xhpl")
        _refuse_other_programs(name, text)
        text = cut_at_end(folder, client, text, XHPL_END)
        solved = _solutions(name, text)
        if NVIDIA.search(text) and all(NVIDIA_ROW.fullmatch(one.variant) for one in solved):
            solved = _named_in_full(name, solved, order)
        _check(name, solved, order)
        best = max(solved, key=lambda one: one.gflops)
        time_s, gflops = best.operations / best.gflops / 1e9, best.gflops
    else:
        text = read_complete(folder, client, "hpcc", HPCC_END)
        solved, time_s, gflops = solved_by_hpcc(name, text, order)
    return [
        Result("gflops", gflops, "Gflop/s", 1),
        Result("hpl_s", time_s, "s", 1),
        Result("residual", max(float(one.residual) for one in solved), "1", 1),
        *(_each(solved) if len(solved) > 1 else ()),
        *profile_results(folder, client, parameters),
    ]


def _refuse_other_programs(name: str, text: str) -> None:
    """Raise OutputError for a program with similar output whose rate is not HPL's."""
    mixed = MIXED.search(text)
    if mixed:
        raise OutputError(
            name,
            f"'{mixed[0]}' is of HPL-MxP (HPL-AI), which factors in lower precision: its rate is "
            "not HPL's; a program of HPL is expected",
        )
    if ROCHPL_SCORE.search(text) and not XHPL_END.search(text):
        raise OutputError(
            name,
            "rocHPL without its table, which is in HPL.out when -P, -Q or -N is given: give xhpl a "
            "program that runs rochpl without them, it then reads HPL.dat",
        )


def _named_in_full(
    name: str, solved: list[Solution], order: Mapping[str, object]
) -> list[Solution]:
    """Return HPL-NVIDIA's systems with HPL's complete variant names of the request.

    Raises OutputError if the request has parameters that HPL-NVIDIA ignores.
    """
    ignored = [key for key, default in NVIDIA_IGNORES.items() if str(order[key]) != str(default)]
    if ignored:
        raise OutputError(
            name, f"HPL-NVIDIA ignores {', '.join(ignored)}: leave out of the study what it ignores"
        )
    variant = _variant(_requested_problems(order)[0])
    for one in solved:
        if not variant.startswith(one.variant[:2]):
            raise OutputError(
                name,
                f"HPL-NVIDIA's variant {one.variant} was run instead of {variant[:2]}0: another pmap",
            )
    return [replace(one, variant=variant) for one in solved]


def _each(solved: list[Solution]) -> Iterator[Result]:
    """Yield the index of the fastest of several systems, the mean, and the figures of each."""
    rates = [one.gflops for one in solved]
    yield Result("best_system", rates.index(max(rates)) + 1, "1", 1)
    yield Result("mean_gflops", sum(rates) / len(rates), "Gflop/s", 1)
    for i, one in enumerate(solved, start=1):
        yield Result("system_gflops", one.gflops, "Gflop/s", i)
        yield Result("system_residual", float(one.residual), "1", i)


def order_requested_problems(
    folder: Path, client: int, parameters: Mapping[str, object]
) -> dict[str, object]:
    """Return the parameters; with `memory`, n is read from line 6 of the node's input file."""
    if not parameters["memory"]:
        return dict(parameters)
    name = f"hpl.{client}.dat"
    try:
        line = read_regular(folder / name, NOTE_BYTES).decode("utf-8").splitlines()[5]
        return {**parameters, "n": int(line.split()[0])}
    except (OSError, ValueError, IndexError) as error:
        raise OutputError(name, f"does not say which n was asked for: {error}") from error


def solved_by_hpcc(
    name: str, text: str, order: Mapping[str, object]
) -> tuple[list[Solution], float, float]:
    """Return the checked systems of HPL's section of hpcc's output.

    Time (s) and rate (Gflop/s) of the fastest system have the six digits of hpcc's summary.
    """
    solved = _solutions(name, _section(name, text))
    _check(name, solved, order)
    return solved, *_summary(name, text, max(solved, key=lambda one: one.gflops))


def _section(name: str, text: str) -> str:
    found = HPCC_SECTION.findall(text)
    if len(found) != 1:
        raise OutputError(name, f"{len(found)} HPL sections instead of one")
    return str(found[0])


def _solutions(name: str, text: str) -> list[Solution]:
    """Return every system of the output: each result line, and the one residual after it."""
    rows = list(ROW.finditer(text))
    ends = [*(row.start() for row in rows[1:]), len(text)]
    residuals = [
        RESIDUAL.findall(text[row.end() : end]) for row, end in zip(rows, ends, strict=False)
    ]
    if not rows or any(len(found) != 1 for found in residuals):
        skipped = re.search(
            r"^ *([1-9]\d*) tests skipped because of illegal input", text, re.MULTILINE
        )
        if skipped or "HPL ERROR" in text:
            raise FailedError("HPL refused its input: " + _complaint(text))
        count = sum(len(found) for found in residuals)
        raise OutputError(name, f"{len(rows)} results and {count} residuals, not one each")
    thresholds = THRESHOLD.findall(text)
    if len(thresholds) != 1:
        raise OutputError(name, f"{len(thresholds)} thresholds of the residual, one is needed")
    threshold = number(name, "threshold", thresholds[0])
    settings = dict(SETTING.findall(text))
    return [
        _solution(name, row.groups(), found[0], settings, threshold)
        for row, found in zip(rows, residuals, strict=True)
    ]


def _solution(
    name: str,
    row: tuple[str, ...],
    residual: tuple[str, str],
    settings: dict[str, str],
    threshold: float,
) -> Solution:
    variant, n, nb, p, q, time_s, gflops = row
    return Solution(
        variant=variant,
        settings=settings,
        problem=(int(n), int(nb), int(p), int(q)),
        time_s=number(name, "time", time_s),
        gflops=number(name, "Gflops", gflops),
        residual=residual[0],
        passed=residual[1].upper() == "PASSED",
        threshold=threshold,
    )


def _complaint(text: str) -> str:
    line = re.search(r"^HPL ERROR.*\n>>> *(.*?) *<<<|^>>> *(.*?) *<<<", text, re.MULTILINE)
    return (line[1] or line[2]) if line else "illegal input values"


def _check(name: str, solved: list[Solution], parameters: Mapping[str, object]) -> None:
    """Check that the systems are the requested ones, each once and correct; compare their times."""
    problems = [
        (one["n"], one["nb"], one["p"], one["q"]) for one in _requested_problems(parameters)
    ]
    for solution in solved:
        if solution.problem not in problems:
            raise OutputError(
                name,
                f"(n, nb, p, q) = {solution.problem} was solved instead of {problems[0]}: "
                "the program did not accept its input",
            )
    _check_variants(name, solved, parameters)
    _check_residuals(name, solved, parameters)
    for solution in solved:
        if not LEAST_RATE <= solution.gflops <= MOST_RATE:
            raise OutputError(name, f"a rate of {solution.gflops} Gflop/s cannot be")
        _agree(name, solution, solution.operations / solution.gflops / 1e9)


def _requested_problems(parameters: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the parameters of each system: one per combination of several values."""
    values = [
        str(value).split() if key in SEVERAL else [value] for key, value in parameters.items()
    ]
    found = [dict(zip(parameters, chosen, strict=True)) for chosen in itertools.product(*values)]
    return [{**one, "nb": int(str(one["nb"]))} for one in found]


def _check_residuals(name: str, solved: list[Solution], parameters: Mapping[str, object]) -> None:
    """Check the printed verdict, and compare the residual with the requested threshold."""
    threshold = float(str(parameters["threshold"]))
    failed = [one for one in solved if not one.passed]
    # HPL prints the threshold with one decimal.
    if abs(solved[0].threshold - threshold) > 0.051:
        raise OutputError(
            name, f"residuals up to {solved[0].threshold} passed, asked was {threshold}"
        )
    if failed:
        of = f" in {len(failed)} of {len(solved)} systems, {failed[0].variant} with"
        raise FailedError(
            f"HPL's residual check failed{of if len(solved) > 1 else ':'} {failed[0].residual}"
        )
    for one in solved:
        if not 0 <= number(name, "residual", one.residual) < threshold:
            raise OutputError(
                name,
                f"a residual of {one.residual} is called PASSED, less than {threshold} was expected",
            )


def _check_variants(name: str, solved: list[Solution], parameters: Mapping[str, object]) -> None:
    """Check that every requested algorithm was run once, and the settings of all of them."""
    variants = {f"{_variant(one)} with NB {one['nb']}" for one in _requested_problems(parameters)}
    found = [f"{one.variant} with NB {one.problem[1]}" for one in solved]
    if set(found) != variants or len(found) != len(variants):
        raise OutputError(name, _other_variants(found, variants))
    mix = f"Mix (threshold = {parameters['swap_threshold']})"
    expected = {
        "SWAP": SWAPS.get(str(parameters["swap"]), mix),
        "L1": f"{parameters['l1']} form",
        "U": f"{parameters['u']} form",
        "EQUIL": "yes" if parameters["equilibration"] else "no",
        "ALIGN": f"{parameters['alignment']} double precision words",
    }
    for key, value in expected.items():
        setting = solved[0].settings.get(key)
        if setting != value:
            raise OutputError(name, f"{key} was '{setting}' instead of '{value}'")


def _other_variants(found: list[str], expected_variants: set[str]) -> str:
    """Describe the difference; for one system, only the variant."""
    if len(found) == len(expected_variants) == 1:
        (expected,) = expected_variants
        return f"variant {found[0].split()[0]} was run instead of {expected.split()[0]}"
    missing = sorted(expected_variants - set(found))
    first = f", {missing[0]} is missing" if missing else ""
    return f"{len(found)} systems were solved, {len(expected_variants)} were asked for{first}"


def _variant(one: Mapping[str, object]) -> str:
    """Return HPL's name of an algorithm (HPL_pdtest.c)."""
    return "".join(
        [
            "W",
            str(one["pmap"])[0].upper(),
            str(one["depth"]),
            str(PLACES[str(one["bcast"])]),
            str(one["rfact"])[0].upper(),
            str(one["ndiv"]),
            str(one["pfact"])[0].upper(),
            str(one["nbmin"]),
        ]
    )


def _agree(name: str, solution: Solution, time_s: float) -> None:
    """Compare time and rate: the printed time has two decimals, the rate at least four digits."""
    if abs(time_s - solution.time_s) > 0.006 + 0.002 * time_s:
        raise OutputError(
            name, f"time {solution.time_s} s and rate {solution.gflops} Gflop/s do not go together"
        )


def summary(text: str) -> dict[str, str]:
    """Return hpcc's summary, KEY=VALUE; {} unless there is exactly one."""
    sections = HPCC_SUMMARY.findall(text)
    return dict(SUMMARY.findall(sections[0])) if len(sections) == 1 else {}


def value(name: str, metric: str, values: Mapping[str, str]) -> float:
    """Return a number of hpcc's summary; raise OutputError if it is missing."""
    if metric not in values:
        raise OutputError(name, f"the summary has no {metric}")
    return number(name, metric, values[metric])


def _summary(name: str, text: str, solution: Solution) -> tuple[float, float]:
    """Return time (s) and rate (Gflop/s) with the six digits of hpcc's summary."""
    values = summary(text)
    if values.get("Success") != "1":
        raise FailedError(f"hpcc says Success={values.get('Success', '(nothing)')}")
    time_s = value(name, "HPL_time", values)
    gflops = 1000 * value(name, "HPL_Tflops", values)
    if abs(gflops - solution.gflops) > 0.001 * solution.gflops:
        raise OutputError(name, f"{gflops} Gflop/s in the summary, {solution.gflops} in the table")
    _agree(name, solution, time_s)
    return time_s, gflops
