"""Reads all figures of HPC Challenge from out.CLIENT, the complete output file of hpcc.

The summary contains the figures (KEY=VALUE; a metric is the key in lower case). The sections before
it contain the verdicts of the tests. hpcc did not measure a figure of -1 (ping-pong on a single
rank), which is omitted.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts import registry
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.hpl import parse as hpl
from steelyard.jobscripts.output import read_complete
from steelyard.jobscripts.registry import Result

SECTIONS = (
    "MPIRandomAccess",
    "StarRandomAccess",
    "SingleRandomAccess",
    "MPIRandomAccess_LCG",
    "StarRandomAccess_LCG",
    "SingleRandomAccess_LCG",
    "PTRANS",
    "StarDGEMM",
    "SingleDGEMM",
    "StarSTREAM",
    "SingleSTREAM",
    "MPIFFT",
    "StarFFT",
    "SingleFFT",
    "LatencyBandwidth",
    "HPL",
)
# The line that must be in a section exactly once, by the begin of the section's name.
VERDICTS = {
    "MPIRandomAccess": r"^Found \d+ errors in \d+ locations \(passed\)\.$",
    "StarRandomAccess": r"^Node\(s\) with error 0$",
    "Single": r"^Node\(s\) with error 0$",
    "PTRANS": r"^ +0 tests completed and failed residual checks\.$",
    "StarDGEMM": r"^Node\(s\) with error 0$",
    "StarSTREAM": r"^Solution Validates: ",
    "StarFFT": r"^Node\(s\) with error 0$",
}
NOT_FROM_SUMMARY = ("hpl_residual",)
PTRANS = re.compile(r"^ +([1-9]\d*) tests completed and passed residual checks\.$", re.MULTILINE)


@functools.cache
def described() -> Mapping[str, registry.ResultSpec]:
    """Return the figures in benchmark.toml, read once for the outputs of many runs."""
    return registry.load("hpcc").results


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return every figure in benchmark.toml, after a check of the solved problem."""
    name = f"out.{client}"
    order = hpl.order_requested_problems(folder, client, parameters)
    text = read_complete(folder, client, "hpcc", hpl.HPCC_END)
    solved, _, _ = hpl.solved_by_hpcc(name, text, order)
    for section in SECTIONS:
        _check_section(name, section, text)
    found = [Result("hpl_residual", max(float(one.residual) for one in solved), "1", 1)]
    values = {key.lower(): value for key, value in hpl.summary(text).items()}
    for metric, spec in described().items():
        if metric not in NOT_FROM_SUMMARY:
            value = hpl.value(name, metric, values)
            if value >= 0:  # negative: not measured
                found.append(Result(metric, value, spec.unit, 1))
    return found


def _check_section(name: str, section: str, text: str) -> None:
    """Check that the section exists once, and that its verdict is good."""
    begin, end = f"Begin of {section} section.\n", f"End of {section} section.\n"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise OutputError(name, f"not exactly one section {section}")
    body = text.split(begin)[1].split(end)[0]
    for start, pattern in VERDICTS.items():
        if section.startswith(start) and len(re.findall(pattern, body, re.MULTILINE)) != 1:
            raise FailedError(f"{section} of hpcc does not say that it passed")
    if section == "PTRANS" and not PTRANS.search(body):
        raise FailedError("PTRANS of hpcc passed no test")
