"""Weigh a command on this machine, no scheduler needed: seconds, joules, bytes, CPU, memory.

With --repeat 1 the command has the terminal for itself, as under time(1). With more, each run
writes to files, so that all run alike: what the first one said is shown when it has ended, and
what a failed one said on stderr. Failed runs are told, and kept out of the figures; exit code 5.
Intervals are Student's, 95 %.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.wrappers.run import Summary, Weighed


def positive(text: str) -> int:
    """A count for argparse."""
    value = int(text)
    if value < 1:
        raise ValueError
    return value


positive.__name__ = "whole number from 1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard run`."""
    parser.usage = "steelyard run [OPTIONS] -- COMMAND [ARGUMENT…]"
    add = parser.add_argument
    add("--repeat", type=positive, default=1, metavar="N", help="how often to run it (1)")
    add("--tag", action="append", default=[], metavar="KEY=VALUE", help="a tag for the records")
    add("--sample-rate", type=float, metavar="HZ", help="samples per second; 0: totals only")
    add("--json", action="store_true", help="figures as JSON; the command's stdout goes to stderr")
    add("-o", "--output", type=Path, metavar="DIR", help="keep records, samples and outputs there")
    add("command", nargs="+", metavar="COMMAND", help="the command and its arguments, after --")


def main(args: argparse.Namespace) -> int:
    """Weigh and print."""
    import tempfile

    from steelyard.wrappers import errors, run

    options = run.Options(
        command=tuple(args.command),
        repeat=args.repeat,
        sample_rate_hz=checked_rate(args.sample_rate),
        tags=checked_tags(args.tag),
        quiet=args.json,
    )
    if args.output is not None:
        runs = run.weigh_all(options, args.output)
    else:
        with tempfile.TemporaryDirectory(prefix="steelyard-run-") as folder:
            runs = run.weigh_all(options, Path(folder))
    show(args, runs, run.summaries(runs))
    return errors.RUNS_FAILED if any(entry.failed for entry in runs) else errors.DONE


def checked_rate(rate_hz: float | None) -> float | None:
    """A rate that the sampler can keep."""
    from steelyard.wrappers.errors import UsageError

    if rate_hz is not None and not 0 <= rate_hz <= 1000:
        raise UsageError(f"--sample-rate {rate_hz:g}: allowed is 0 to 1000 per second")
    return rate_hz


def checked_tags(tags: list[str]) -> tuple[str, ...]:
    """KEY=VALUE each."""
    from steelyard.wrappers.errors import UsageError
    from steelyard.wrappers.study_job import TAG_KEY

    for tag in tags:
        key, equals, value = tag.partition("=")
        if not (equals and TAG_KEY.fullmatch(key) and value and value.isprintable()):
            raise UsageError(f"--tag {tag}: allowed is KEY=VALUE, the key a word", part=tag)
    return tuple(tags)


def show(args: argparse.Namespace, runs: list[Weighed], found: list[Summary]) -> None:
    """Print the figures."""
    from dataclasses import asdict

    from steelyard.wrappers import console

    if args.json:
        console.print_json(
            {
                "command": args.command,
                "repeat": args.repeat,
                "confidence": 0.95,
                "runs": [asdict(entry) for entry in runs],
                "metrics": [asdict(entry) for entry in found],
                "records": None if args.output is None else str(args.output.absolute()),
            }
        )
        return
    print_table(found)
    for entry in found if any(not run.failed for run in runs) else []:
        if entry.reason is not None and entry.mean is None:
            print(f"{entry.metric}: not measured: {entry.reason}")
        elif entry.reason is not None:
            print(f"{entry.metric}: known of {entry.n} runs only: {entry.reason}")
    for run in runs:
        if run.failed:
            end = f"signal {run.signal}" if run.signal else f"exit code {run.exit_code}"
            print(f"run {run.number} failed ({end}): it is not in the figures")


def print_table(found: list[Summary]) -> None:
    """The metrics that were measured."""
    from steelyard.wrappers import console

    rows = []
    for entry in found:
        if entry.mean is None:
            continue
        text = {
            key: formatted(value, entry.unit)
            for key, value in (("low", entry.low), ("high", entry.high))
        }
        interval = None if entry.low is None else f"{text['low']} … {text['high']}"
        numbers = [formatted(value, entry.unit) for value in (entry.mean, entry.min, entry.max)]
        rows.append((entry.metric, numbers[0], interval, *numbers[1:], entry.n))
    if rows:
        console.print_table(("metric", "mean", "95 % interval", "min", "max", "n"), rows)


def formatted(value: float | None, unit: str) -> str:
    """A value as people read it."""
    from steelyard.wrappers import console

    if unit == "s":
        return console.format_seconds(value)
    if unit == "bytes":
        return console.format_bytes(value)
    return "–" if value is None else f"{value:.4g} {unit}"
