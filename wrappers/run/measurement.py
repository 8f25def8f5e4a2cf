"""Measures a command on this machine without a scheduler: each repeat runs under steelyard-node
sample."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import BinaryIO

from steelyard.analysis.sources.records import MEMORY_SOURCES, VERSION, find_number
from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    mean_interval,
    rate_interval,
    spread,
    to_costs,
)
from steelyard.analysis.stats.number_format import is_never_negative
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import RUNS_FAILED, MissingError, UsageError
from steelyard.wrappers.launchers.launcher_grammar import BARE, Launcher
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.run import container_run

GRACE_S = 10

# A run under network conditions whose record has none is not valid.
NOT_SAID: dict[str, object] = {
    "valid": False,
    "invalid_reason": "the record does not say what the network was like",
}

# name: (path in the record, unit). `elapsed` is the command's own time: the record's elapsed_s is
# from the first to the last sample.
METRICS = {"elapsed": ("exit.elapsed_s", "s")}
for _total in container_run.SHOWN:
    METRICS[_total.run_name] = (_total.path, _total.unit)
    if _total.run_name == "cpu":
        METRICS |= {name: (f"cpu.{key}", "s") for name, key in container_run.CPU_PARTS.items()}

# Figures that miss the usage of processes for which no parent waited.
OF_REAPED = tuple(container_run.MEASURED)
UNSEEN = "cpu.unseen_s"


@dataclass(frozen=True)
class Options:
    """The options of `steelyard run`."""

    command: tuple[str, ...]
    is_alone: bool = True  # the only run, which uses the terminal
    shows_first: bool = True  # show the first run's output, if it goes to files
    sample_rate_hz: float | None = None
    bpf: bool = True  # let the kernel count (as root), where it can
    tags: tuple[str, ...] = ()
    quiet: bool = False  # keep the command's stdout out of our own
    conditions: netem.Conditions = netem.NOTHING
    run_dir: Path = netem.RUN_DIR  # where states of conditions are
    launcher: Launcher = BARE  # the launcher in which the command runs
    input: Path | None = None  # every run's stdin
    scratch: Path | None = None  # for the containers' working folders; None: $TMPDIR

    @property
    def to_files(self) -> bool:
        """Whether the command's output goes to files, not to the terminal."""
        return not (self.is_alone and self.launcher.is_bare)


@dataclass(frozen=True)
class Measurement:
    """One execution: its exit, its figures, and the reasons for missing figures."""

    number: int  # from 1
    exit_code: int | None
    signal: int | None
    values: dict[str, float | None]
    missing: dict[str, str]  # the reason for each missing figure, by its name
    network_conditions: dict[str, object] | None = None  # docs/formats.md part 9
    of_whole_run: tuple[str, ...] = ()  # figures that include the launcher's start and end
    containers: int = 1  # number of containers that the sums include
    memory_source: str | None = None  # description of how memory was counted
    unseen: str | None = None  # why some processes' usage may be missing

    @property
    def failed(self) -> bool:
        """Whether it did not exit with 0."""
        return self.exit_code != 0

    @property
    def end(self) -> str:
        """A description of how it ended."""
        return f"signal {self.signal}" if self.signal else f"exit code {self.exit_code}"

    @property
    def shell_code(self) -> int:
        """The exit code as shells report it; RUNS_FAILED where it has none."""
        return 128 + self.signal if self.signal else self.exit_code or RUNS_FAILED

    @property
    def invalid_reason(self) -> str | None:
        """Why the requested conditions were not in force; None if they were."""
        conditions = self.network_conditions
        if conditions is None or conditions.get("valid"):
            return None
        return str(conditions.get("invalid_reason") or "its network conditions were not verified")

    @property
    def counts(self) -> bool:
        """Whether the run is included in the figures."""
        return not self.failed and self.invalid_reason is None


@dataclass(frozen=True)
class Summary:
    """A metric over the runs that count; low, high and sd are None for fewer than two."""

    metric: str
    unit: str
    mean: float | None
    low: float | None
    high: float | None
    min: float | None
    max: float | None
    n: int
    reason: str | None  # why it has no value, or not from every run
    scope: str = "command"  # or "whole run": includes the launcher's start and end
    sd: float | None = None


def check_empty(folder: Path) -> None:
    """Raise UsageError if the folder has runs: they are never overwritten."""
    if any(folder.glob("run-*")) or any(folder.glob("command-*")):
        raise UsageError(f"{folder}: has runs in it already: name an empty folder", str(folder))


def measure(options: Options, program: str, folder: Path, number: int) -> Measurement:
    """Execute the command once and return its figures. A single run uses the terminal. If there are
    several, each writes to files, so that all run alike, and the first run's output is shown after
    it."""
    run_folder = folder / f"run-{number:03}"
    run_folder.mkdir(parents=True)
    inside = folder / f"inside-{number:03}"
    options = wrap_in_container(options, inside)
    with netem.apply_conditions(
        options.conditions, options.run_dir, job_id_of(options, number)
    ) as sampler_options:
        code = execute(
            options,
            sample_command(options, program, run_folder, number, sampler_options),
            run_folder,
        )
    result = read_measurement(run_folder, number, code)
    if not options.launcher.is_bare:
        container_run.copy_output(inside, run_folder)
        found = container_run.read_run(container_run.attempt_folder(inside))
        result = take_inner_values(result, found, options.launcher.containers)
    if options.conditions.shapes and result.network_conditions is None:
        result = replace(
            result, network_conditions={"requested": options.conditions.network, **NOT_SAID}
        )
    return result


def wrap_in_container(options: Options, folder: Path) -> Options:
    """Return options whose command is a script, written below `folder`, that runs it in its
    containers."""
    if options.launcher.is_bare:
        return options
    command = container_run.prepare(
        options.launcher,
        options.command,
        folder,
        options.scratch,
        options.conditions.network,
        options.input,
    )
    tags = (*options.tags, f"launcher={options.launcher.text}")
    return replace(options, command=tuple(command), tags=tags)


def take_inner_values(
    result: Measurement, found: container_run.ContainerRun, containers: int
) -> Measurement:
    """Return the result with the figures measured inside the containers, and without those of other
    processes."""
    inside = found.values()
    why = "a client left no figures: it never started, or was killed"
    missing = {name: why for name, value in inside.items() if value is None}
    values = result.values | inside
    lost = found.find_uncounted()
    if lost is not None:
        values |= dict.fromkeys(container_run.MEASURED)
        missing |= dict.fromkeys(container_run.MEASURED, f"{lost}: cpu and bytes lack them")
    if not container_run.measures_processes(found.tags):
        values["memory"] = None
        missing["memory"] = container_run.NOT_OURS
    return replace(
        result,
        exit_code=found.exit_code,
        signal=None,
        values=values,
        missing={
            name: why
            for name, why in (result.missing | missing).items()
            if values.get(name) is None
        },
        of_whole_run=container_run.OF_WHOLE_RUN,
        containers=containers,
    )


def execute(options: Options, argv: Sequence[str], run_folder: Path) -> int:
    """Run the sampler with the command and return its exit code."""
    with contextlib.ExitStack() as files:
        stdin: BinaryIO | int | None = subprocess.DEVNULL if options.to_files else None
        if options.input is not None and options.launcher.is_bare:
            stdin = files.enter_context(options.input.open("rb"))
        if not options.to_files:
            return wait(argv, stdin, sys.stderr.buffer if options.quiet else None, None)
        out, err = (files.enter_context((run_folder / name).open("wb")) for name in ("out", "err"))
        return wait(argv, stdin, out, err)


def has_output(options: Options, result: Measurement) -> bool:
    """Return whether output is to be shown: the first run's, or a failed run's."""
    return options.to_files and (result.failed or shows_all(options, result))


def shows_all(options: Options, result: Measurement) -> bool:
    """Return whether stdout is to be shown, too."""
    return result.number == 1 and options.shows_first


def show_output(options: Options, folder: Path, result: Measurement) -> None:
    """Print the first run's output, or the stderr of a failed run."""
    run_folder = folder / f"run-{result.number:03}"
    if shows_all(options, result):
        copy_output(run_folder / "out", sys.stderr if options.quiet else sys.stdout)
    copy_output(run_folder / "err", sys.stderr)


def job_id_of(options: Options, number: int) -> str:
    """Return the run's name; with network conditions it must be unique among the node's `steelyard
    run`s."""
    name = f"run-{number:03}"
    return f"{name}.{os.getpid()}" if options.conditions.shapes else name


def sample_command(
    options: Options, program: str, run_folder: Path, number: int, sampler_options: Sequence[str]
) -> list[str]:
    """Return the command of steelyard-node sample with the command; `sampler_options` are its options for the
    conditions."""
    rate = options.sample_rate_hz
    return [
        program,
        "sample",
        f"--record-dir={run_folder}",
        f"--job-id={job_id_of(options, number)}",
        "--with-parent",  # killed by SIGKILL, we leave no unmeasured command behind
        *sampler_options,
        *([] if rate is None else [f"--rate={rate:g}"]),
        *([] if options.bpf else ["--bpf=no"]),
        *(f"--tag={tag}" for tag in options.tags),
        "--",
        *options.command,
    ]


def wait(
    argv: Sequence[str], stdin: BinaryIO | int | None, out: BinaryIO | None, err: BinaryIO | None
) -> int:
    """Return the exit code. On Ctrl-C the terminal signals the command, too, which gets GRACE_S to
    end."""
    child = subprocess.Popen(list(argv), stdin=stdin, stdout=out, stderr=err)
    try:
        return child.wait()
    except BaseException:  # the command must not outlive us
        child.terminate()
        try:
            child.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def copy_output(path: Path, stream: object) -> None:
    """Copy a command's output to the stream, byte for byte."""
    buffer = getattr(stream, "buffer", None)
    getattr(stream, "flush", lambda: None)()
    with path.open("rb") as source:
        if buffer is not None:
            shutil.copyfileobj(source, buffer)
            buffer.flush()


def read_measurement(run_folder: Path, number: int, code: int) -> Measurement:
    """Return the figures of one execution's record. Raises MissingError if the sampler left no
    readable one."""
    paths = sorted(run_folder.rglob("*.json"))
    if not paths:
        raise MissingError(
            f"run {number}: steelyard-node left no record in {run_folder}, see what it said above; "
            f"is its disk full? (exit code {code})"
        )
    try:
        record = json.loads(paths[-1].read_bytes())
    except ValueError as error:
        raise MissingError(
            f"run {number}: {paths[-1]} is no whole record; is its disk full? (exit code {code})"
        ) from error
    if record.get("version") != VERSION:
        raise MissingError(
            f"run {number}: steelyard-node writes records of version {record.get('version')}, this "
            f"command reads version {VERSION}: run `make all`"
        )
    reasons = record.get("missing", {})
    missing = {name: str(reasons[path]) for name, (path, _) in METRICS.items() if path in reasons}
    values = {name: find_number(record, path) for name, (path, _) in METRICS.items()}
    if not record.get("complete"):
        why = str(record.get("incomplete_reason") or "the sampler did not come to its end")
        lost = OF_REAPED if record.get("incomplete_of") == "processes" else tuple(values)
        values |= dict.fromkeys(lost)
        missing |= dict.fromkeys(lost, f"the record was cut short: {why}")
    end = record.get("exit") or {}
    conditions = record.get("network_conditions")
    ended = end.get("exit_code"), end.get("signal")
    unseen = None if find_number(record, UNSEEN) is not None else reasons.get(UNSEEN)
    memory = record.get("memory") or {}
    source = MEMORY_SOURCES.get(str(memory.get("source")))
    return Measurement(
        number, *ended, values, missing, conditions, unseen=unseen, memory_source=source
    )


def summarize_runs(runs: Sequence[Measurement], confidence: float = CONFIDENCE) -> list[Summary]:
    """Return a summary of every metric over the runs that count, with the launcher's start if it is
    known."""
    good = [run for run in runs if run.counts]
    units = {name: unit for name, (_, unit) in METRICS.items()}
    if any("start" in run.values for run in runs):
        units = {"elapsed": "s", "start": "s"} | units
    return [summarize_metric(name, unit, good, confidence) for name, unit in units.items()]


def summarize_metric(
    name: str,
    unit: str,
    runs: Sequence[Measurement],
    confidence: float = CONFIDENCE,
    rate: bool = False,
    benchmark: str | None = None,
) -> Summary:
    """Return one metric's summary; its reason is that of the first run that misses it. A figure of
    `benchmark` may be negative; the sampler's figures are not."""
    values = [value for run in runs if (value := run.values[name]) is not None]
    without = [run for run in runs if run.values[name] is None]
    reason = without[0].missing.get(name, "no reason given") if without else None
    scope = "whole run" if any(name in run.of_whole_run for run in runs) else "command"
    if not values:
        why = reason or "no run counts"
        return Summary(name, unit, None, None, None, None, None, 0, why, scope)
    has_costs = rate and min(values) > 0
    interval = mean_interval(
        to_costs(values) if has_costs else values,
        confidence,
        benchmark is None or is_never_negative(benchmark, unit, min(values)),
    )
    interval = rate_interval(interval) if has_costs else interval
    low, high = interval.low, interval.high
    ends = min(values), max(values)
    sd = spread(values).sd
    return Summary(name, unit, interval.mean, low, high, *ends, interval.n, reason, scope, sd)


SHELL_RUNS = 20


@dataclass(frozen=True)
class ShellCost:
    """Seconds of a shell that has nothing to do, from its start to its end, over `n` runs."""

    shell: str
    mean_s: float
    low_s: float
    high_s: float
    n: int


def measure_shell(shell: str, runs: int = SHELL_RUNS) -> ShellCost | None:
    """Measure the shell; return None if steelyard-time is not installed or the shell does not
    run."""
    timer = programs.find_program(container_run.TIMER)
    if timer is None:
        return None
    with tempfile.TemporaryDirectory(prefix="steelyard-shell-") as folder:
        times = [time_shell(timer, shell, Path(folder) / str(number)) for number in range(runs)]
    known = [one for one in times if one is not None]
    if len(known) < len(times):
        return None
    found = mean_interval(known, never_negative=True)
    return ShellCost(shell, fmean(known), found.low or 0.0, found.high or 0.0, len(known))


def time_shell(timer: Path, shell: str, path: Path) -> float | None:
    """Return the elapsed seconds of one run, or None if it failed."""
    command = [str(timer), str(path), shell, "-c", ":"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return (
        container_run.only_numbers(container_run.read_values(path)).get("elapsed_s")
        if done.returncode == 0
        else None
    )
