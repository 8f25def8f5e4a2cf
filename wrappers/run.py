"""Weighs one command on this machine, no scheduler: each repeat under steelyard-node sample."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from steelyard.analysis.stats import mean_interval
from steelyard.wrappers import node
from steelyard.wrappers.errors import MissingError, UsageError

GRACE_S = 10

# name: (path in the record, unit)
METRICS = {
    "elapsed": ("elapsed_s", "s"),
    "energy": ("energy.energy_j", "J"),
    "cpu": ("cpu.cpu_s", "s"),
    "memory": ("memory.max_memory_bytes", "bytes"),
    "read calls": ("io.rchar_bytes", "bytes"),
    "write calls": ("io.wchar_bytes", "bytes"),
    "from storage": ("io.read_bytes", "bytes"),
    "to storage": ("io.write_bytes", "bytes"),
}


@dataclass(frozen=True)
class Options:
    """What `steelyard run` was asked."""

    command: tuple[str, ...]
    repeat: int = 1
    sample_rate_hz: float | None = None
    tags: tuple[str, ...] = ()
    quiet: bool = False  # keep the command's stdout away from ours


@dataclass(frozen=True)
class Weighed:
    """One execution: its exit, its figures, and why a figure is not there."""

    number: int  # from 1
    exit_code: int | None
    signal: int | None
    values: dict[str, float | None]
    missing: dict[str, str]  # why a figure is not there, by its name

    @property
    def failed(self) -> bool:
        """It did not end with 0."""
        return self.exit_code != 0


@dataclass(frozen=True)
class Summary:
    """A metric over the runs that did not fail; low and high are None for fewer than two."""

    metric: str
    unit: str
    mean: float | None
    low: float | None
    high: float | None
    min: float | None
    max: float | None
    n: int
    reason: str | None  # why there is no value, or not from every run


def weigh_all(options: Options, folder: Path) -> list[Weighed]:
    """Run the command `repeat` times; records and outputs go to folder/run-NNN."""
    program = str(node.find_node_program())
    if shutil.which(options.command[0]) is None:
        raise MissingError(f"{options.command[0]}: no such program on this machine")
    if any(folder.glob("run-*")):
        raise UsageError(f"{folder}: has runs in it already: name an empty folder", str(folder))
    return [weigh(options, program, folder, number) for number in range(1, options.repeat + 1)]


def weigh(options: Options, program: str, folder: Path, number: int) -> Weighed:
    """One execution. A single one talks to the terminal; of several, every one talks to files,
    so that all run alike, and what the first said is shown when it has ended."""
    place = folder / f"run-{number:03}"
    place.mkdir(parents=True)
    argv = sample_command(options, program, place, number)
    if options.repeat == 1:
        code = wait(argv, None, sys.stderr.buffer if options.quiet else None, None)
        return weighed(place, number, code)
    with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
        code = wait(argv, subprocess.DEVNULL, out, err)
    result = weighed(place, number, code)
    if number == 1:
        pass_on(place / "out", sys.stderr if options.quiet else sys.stdout)
    if number == 1 or result.failed:
        pass_on(place / "err", sys.stderr)
    return result


def sample_command(options: Options, program: str, place: Path, number: int) -> list[str]:
    """steelyard-node sample around the command."""
    rate = options.sample_rate_hz
    return [
        program,
        "sample",
        f"--record-dir={place}",
        f"--job-id=run-{number:03}",
        *([] if rate is None else [f"--rate={rate:g}"]),
        *(f"--tag={tag}" for tag in options.tags),
        "--",
        *options.command,
    ]


def wait(argv: Sequence[str], stdin: int | None, out: BinaryIO | None, err: BinaryIO | None) -> int:
    """The exit code. On Ctrl-C the terminal has told the command too: it gets time to end."""
    child = subprocess.Popen(list(argv), stdin=stdin, stdout=out, stderr=err)
    try:
        return child.wait()
    except BaseException:  # whatever ends us: the command must not outlive us
        child.terminate()
        try:
            child.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def pass_on(path: Path, stream: object) -> None:
    """Show what a command wrote, byte for byte."""
    buffer = getattr(stream, "buffer", None)
    getattr(stream, "flush", lambda: None)()
    with path.open("rb") as source:
        if buffer is not None:
            shutil.copyfileobj(source, buffer)
            buffer.flush()


def weighed(place: Path, number: int, code: int) -> Weighed:
    """The record of one execution; MissingError when the sampler left none."""
    paths = sorted(place.rglob("*.json"))
    if not paths:
        raise MissingError(
            f"run {number}: steelyard-node left no record in {place} (exit code {code})"
        )
    record = json.loads(paths[-1].read_bytes())
    reasons = record.get("missing", {})
    missing = {name: str(reasons[path]) for name, (path, _) in METRICS.items() if path in reasons}
    values = {name: number_at(record, path) for name, (path, _) in METRICS.items()}
    if not record.get("complete"):
        why = str(record.get("incomplete_reason") or "the sampler did not come to its end")
        values = dict.fromkeys(values)
        missing = dict.fromkeys(values, f"the record was cut short: {why}")
    end = record.get("exit") or {}
    return Weighed(number, end.get("exit_code"), end.get("signal"), values, missing)


def number_at(record: Mapping[str, object], path: str) -> float | None:
    """The number at a dotted path, or None."""
    value: object = record
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def summaries(runs: Sequence[Weighed]) -> list[Summary]:
    """Every metric over the runs that did not fail."""
    good = [run for run in runs if not run.failed]
    return [summary(name, unit, good) for name, (_, unit) in METRICS.items()]


def summary(name: str, unit: str, runs: Sequence[Weighed]) -> Summary:
    """One metric; its reason is that of the first run that lacks it."""
    values = [value for run in runs if (value := run.values[name]) is not None]
    without = [run for run in runs if run.values[name] is None]
    reason = without[0].missing.get(name, "no reason given") if without else None
    if not values:
        return Summary(name, unit, None, None, None, None, None, 0, reason or "every run failed")
    interval = mean_interval(values)
    low, high = interval.low, interval.high
    return Summary(
        name, unit, interval.mean, low, high, min(values), max(values), interval.n, reason
    )
