"""The results of `steelyard run`: printed in about 80 columns, and exported as JSON, CSV or Markdown."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO

from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.jobscripts.plurals import counted, counted_range
from steelyard.wrappers.base import console
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.netem import condition_descriptions
from steelyard.wrappers.run import comparisons as run_comparisons
from steelyard.wrappers.run import measurement
from steelyard.wrappers.run.comparisons import Comparison
from steelyard.wrappers.run.measurement import Measurement, Summary
from steelyard.wrappers.run.measurement_rounds import Course
from steelyard.wrappers.run.run_plan import Command, Plan


@dataclass(frozen=True)
class CommandResults:
    """One command: its runs, its figures, and notes on them."""

    command: Command
    runs: Sequence[Measurement]
    metrics: Sequence[Summary]
    notes: Sequence[str]
    folder: Path | None  # with its records; None: they were removed

    @property
    def elapsed(self) -> Summary:
        """The summary of the elapsed time, which every command has."""
        return next(one for one in self.metrics if one.metric == run_comparisons.METRIC)


@dataclass(frozen=True)
class RunResults:
    """The results of all commands."""

    commands: Sequence[CommandResults]
    plan: Plan
    course: Course
    shells: Mapping[str, measurement.ShellCost] = field(default_factory=dict)
    benchmark: str | None = None
    records: Path | None = None
    names: Sequence[str] = ()
    load_average: float = 0.0  # over a minute, before the first run

    @property
    def comparisons(self) -> list[Comparison]:
        """Comparisons with the fastest command; empty for a single command."""
        runs = [one.runs for one in self.commands]
        best = run_comparisons.find_fastest(runs)
        if best is None:
            return []
        return run_comparisons.compare_commands(
            runs, best, self.plan.interleaved, self.plan.confidence
        )

    def as_json(self) -> dict[str, object]:
        """Return the document of docs/formats.md part 12."""
        ended = self.course.ended
        return {
            "format": "steelyard-measured",
            "version": 1,
            "benchmark": self.benchmark,
            "confidence": CONFIDENCE,
            "plan": asdict(self.plan),
            "order": self.course.order,
            "load_average": self.load_average,
            "ended_early": None if ended is None else ended.text,
            "commands": [self.command_json(one) for one in self.commands],
            "comparisons": [asdict(one) for one in self.comparisons],
            "scopes": {"energy": "node"},
            "records": None if self.records is None else str(self.records.absolute()),
        }

    def command_json(self, one: CommandResults) -> dict[str, object]:
        """Return one entry of `commands`."""
        cost = self.shells.get(one.command.shell or "")
        return {
            "command": one.command.text,
            "argv": one.command.argv,
            "parameters": one.command.parameters,
            "shell": one.command.shell,
            "shell_s": None if cost is None else cost.mean_s,
            "runs": [asdict(entry) for entry in one.runs],
            "metrics": [asdict(entry) for entry in one.metrics],
            "notes": list(one.notes),
        }


HEADINGS = ("metric", "mean ± sd", "95 % interval", "min … max", "n")
LONGEST_NAME = 56
BUSY = 0.5  # load average per processor that causes a warning


def print_results(outcome: RunResults) -> None:
    """Print the comparison, if there are several commands, then each command's figures."""
    several = len(outcome.commands) > 1
    if several:
        print_elapsed(outcome)
        print_comparisons(outcome)
    for index, one in enumerate(outcome.commands):
        if several:
            print()
            console.print_line(f"{index + 1}: {one.command.text}")
        print_command(outcome, one)
    print_missing([metric for one in outcome.commands for metric in one.metrics if one.runs])
    print_load(outcome)
    print_end(outcome, sys.stdout)


def print_command(outcome: RunResults, one: CommandResults) -> None:
    """Print one command's table and notes."""
    rows = [format_row(entry) for entry in one.metrics if entry.mean is not None]
    if rows:
        console.print_table(HEADINGS, rows)
    for text in (*one.notes, *describe_shell(outcome, one)):
        console.print_line(text)
    print_scopes(one.runs, one.metrics)
    print_conditions(one.runs)
    for run in one.runs:
        if not run.failed and run.invalid_reason is not None:
            print(
                f"run {run.number} {'is not in the figures' if rows else 'does not count'}: {run.invalid_reason}"
            )
        if run.failed:
            print(
                f"run {run.number} failed ({run.end}){': it is not in the figures' if rows else ''}"
            )
    if one.runs and not rows:
        failed = sum(run.failed for run in one.runs)
        print(f"no figures: {failed} of {counted(len(one.runs), 'run')} failed")


def format_row(entry: Summary) -> tuple[str, str, str | None, str | None, int]:
    """Format all numbers of a row in one unit with the same number of decimals."""
    mean, ends = entry.mean or 0.0, (entry.min, entry.max)
    factor, unit = number_format.choose_prefix(mean, entry.unit)
    half = None if entry.low is None or entry.high is None else (entry.high - entry.low) / 2
    widths = [width / factor for width in (half, entry.sd) if width]
    places = number_format.count_decimals(mean / factor, min(widths, default=None))

    def text(value: float | None) -> str:
        return number_format.format_number(value, factor, places)

    middle = text(mean) if entry.sd is None else f"{text(mean)} ± {text(entry.sd)}"
    interval = None if half is None else f"{text(entry.low)} … {text(entry.high)}"
    spread = " … ".join(map(text, ends)) if entry.n > 1 else None
    return entry.metric, f"{middle} {unit}".removesuffix(" 1"), interval, spread, entry.n


def print_elapsed(outcome: RunResults) -> None:
    """Print the elapsed time, a row per command, with its ratio to the fastest."""
    ratios = {one.place: format_ratio(one) for one in outcome.comparisons}
    if ratios:
        ratios[outcome.comparisons[0].baseline] = "1"
    rows = [
        (
            f"{index + 1}: {name_command(outcome, index)}",
            *format_row(one.elapsed)[1:],
            ratios.get(index, number_format.MISSING),
        )
        for index, one in enumerate(outcome.commands)
        if one.elapsed.mean is not None
    ]
    if rows:
        console.print_table(("elapsed of", *HEADINGS[1:], "times the fastest"), rows)


def print_missing(metrics: Sequence[Summary]) -> None:
    """Print the reasons for missing metrics, each once."""
    metrics_by_text: dict[str, dict[str, None]] = {}
    for entry in metrics:
        if entry.reason is None or (entry.mean is None and entry.reason == "no run counts"):
            continue
        known = (
            f"known of {counted(entry.n, 'run')} only" if entry.mean is not None else "not measured"
        )
        metrics_by_text.setdefault(f"{known}: {entry.reason}", {})[entry.metric] = None
    for text, names in metrics_by_text.items():
        console.print_line(f"{', '.join(names)}: {text}")
    if any(entry.metric == "energy" and entry.mean is not None for entry in metrics):
        print("energy is the whole machine's, whoever used it: let nothing else run")


def print_load(outcome: RunResults) -> None:
    """Warn about load of other processes before the first run."""
    cpus = os.cpu_count() or 1
    if outcome.load_average >= BUSY * cpus:
        load = f"load average {outcome.load_average:.1f} on {counted(cpus, 'processor')} before the runs"
        print(f"{load}: others' work is in elapsed")


def describe_shell(outcome: RunResults, one: CommandResults) -> list[str]:
    """Return text that says that a shell was used, why, and its share of the figures."""
    name, cost = one.command.shell, outcome.shells.get(one.command.shell or "")
    if name is None:
        return []
    shell_text = f"through {name}, for {one.command.why_shell}"
    if cost is None:
        return [f"{shell_text}: its own time is in the figures, and was not measured"]
    own = f"  by itself it takes {run_comparisons.format_seconds(cost.mean_s)} ({name} -c :, n = {cost.n})"
    mean = one.elapsed.mean
    less = (
        f"; without it {run_comparisons.format_seconds(max(mean - cost.mean_s, 0))}" if mean else ""
    )
    return [f"{shell_text}: the shell is in the figures", f"{own}{less}"]


def print_comparisons(outcome: RunResults) -> None:
    """Print how the fastest command compares with each of the others."""
    found = outcome.comparisons
    if not found:
        return
    console.print_line(f"{name_command(outcome, found[0].baseline)} was")
    designs = {one.design for one in found}
    for one in found:
        text = format_comparison(one, name_command(outcome, one.place))
        console.print_line(f"  {text}" if len(designs) == 1 else f"  {text}, {one.design}")
    order = (
        "interleaved, in random order"
        if outcome.plan.interleaved
        else "not interleaved: drift is in this"
    )
    of_all = f"95 %, {found[0].design}" if len(designs) == 1 else "95 %"
    print(f"  ({of_all}; runs were {order})")


def format_comparison(one: Comparison, name: str) -> str:
    """Return, for example, `2.31 times faster (2.25 … 2.38) than NAME`."""
    if one.ratio is None:
        return f"not to be compared with {name}: {one.reason}"
    if one.low is None or one.high is None:
        return f"{one.ratio:.3g} times faster than {name}, without an interval: {one.reason}"
    ratio, between = number_format.format_times(one.ratio, one.low, one.high)
    if not one.is_shown:
        return f"not shown to be faster ({between} times) than {name}"
    ends = f" ({between})" if between else ""
    return f"{ratio} times faster{ends} than {name}"


def format_ratio(one: Comparison | None) -> str:
    """Return `2.31 (2.25 … 2.38)`; `2.31` without an interval, and a dash without a ratio."""
    if one is None or one.ratio is None:
        return number_format.MISSING
    if one.low is None or one.high is None:
        return f"{one.ratio:.3g}"
    ratio, between = number_format.format_times(one.ratio, one.low, one.high)
    return f"{ratio} ({between})" if between else ratio


def name_command(outcome: RunResults, index: int) -> str:
    """Return the command's name for a sentence, shortened to LONGEST_NAME."""
    name = outcome.names[index]
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def print_end(outcome: RunResults, out: TextIO) -> None:
    """Print why the session ended early, unless a failed single run says it already."""
    plan, counts = outcome.plan, [len(one.runs) for one in outcome.commands]
    if plan.until is not None and outcome.course.enough is not None:
        print(format_precision(outcome), file=out)
    ended = outcome.course.ended
    if ended is None or sum(counts) == len(counts) == plan.repeat and not plan.warm_up:
        return
    is_run = ended.text.startswith(("run ", "warm-up "))
    hint = "; -i goes on" if is_run and not plan.continue_on_failure else ""
    runs = f"{counted_range(counts, 'run')}{' each' if len(counts) > 1 else ''}"
    sys.stdout.flush()
    text = console.plain(ended.text.replace("\n", "?"))
    print(f"steelyard run: {text}: stopped after {runs}{hint}", file=sys.stderr)


def format_precision(outcome: RunResults) -> str:
    """Return text on the precision reached, and on the limit that ended the runs if it is not
    enough."""
    widths = [
        (one.elapsed.high - one.elapsed.low) / 2 / one.elapsed.mean
        for one in outcome.commands
        if one.elapsed.mean and one.elapsed.low is not None and one.elapsed.high is not None
    ]
    most = max((len(one.runs) for one in outcome.commands), default=0)
    width = f"± {100 * max(widths):.2g} %" if widths else "no interval"
    plan = outcome.plan
    if outcome.course.enough:
        return f"enough after {counted(most, 'run')}: elapsed is known to {width}"
    limit = "--max-repeat" if most >= plan.max_repeat else "--max-time"
    return f"--until {100 * (plan.until or 0):g}% was not reached: {width} after {counted(most, 'run')} ({limit})"


def print_scopes(runs: Sequence[Measurement], found: Sequence[Summary]) -> None:
    """Print what the figures of a run in containers include besides the command."""
    of_whole_run = [one.metric for one in found if one.mean is not None and one.scope != "command"]
    if of_whole_run:
        print(
            f"{', '.join(of_whole_run)}: of the whole run, the container's start and end are in it"
        )
    count = max((run.containers for run in runs), default=1)
    if count > 1:
        print(f"elapsed: of the slowest of {count} containers; cpu, memory, bytes: sums over them")


def print_conditions(runs: Sequence[Measurement]) -> None:
    """Print the conditions as requested, applied and measured; one line for each further run."""
    conditioned = [run for run in runs if run.network_conditions is not None]
    for run in conditioned[:1]:
        print("network conditions" + (f" of run {run.number}" if len(runs) > 1 else ""))
        print(
            "\n".join(
                f"  {line}"
                for line in condition_descriptions.format_document(run.network_conditions or {})
            )
        )
    for run in conditioned[1:]:
        trips = condition_descriptions.format_round_trips(run.network_conditions or {})
        print(f"  run {run.number}: " + (trips or "round trips were not measured"))


FORMATS = ("csv", "json", "md")
COLUMNS = ("metric", "unit", "mean", "sd", "low", "high", "min", "max", "n", "scope", "reason")
RATIOS = ("times_fastest", "times_low", "times_high")


def parse_export(text: str) -> tuple[str, Path | None]:
    """Return format and path of `csv` or `results.csv`; without a file the path is None, for
    stdout."""
    if text in FORMATS:
        return text, None
    path = Path(text)
    if path.suffix.removeprefix(".") not in FORMATS or not path.parent.is_dir():
        folder = "" if path.parent.is_dir() else f"; there is no folder {path.parent}"
        raise UsageError(
            f"--export {text}: expected csv, json or md, or a file such as results.csv{folder}",
            part=text,
        )
    return path.suffix.removeprefix("."), path


def write_export(outcome: RunResults, kind: str, path: Path | None) -> None:
    """Write one export."""
    text = {"csv": as_csv, "json": as_json, "md": as_markdown}[kind](outcome)
    if path is None:
        print(text, end="")
    else:
        path.write_text(text, encoding="utf-8")


def as_json(outcome: RunResults) -> str:
    """Return the JSON document with every run."""
    return json.dumps(outcome.as_json(), indent=2, ensure_ascii=False, default=str) + "\n"


def as_csv(outcome: RunResults) -> str:
    """Return CSV with a row per command and metric, in seconds and bytes; unknown values are
    empty."""
    names = sorted({name for one in outcome.commands for name in one.command.parameters})
    ratios = {one.place: (one.ratio, one.low, one.high) for one in outcome.comparisons}
    if ratios:
        ratios[outcome.comparisons[0].baseline] = (1.0, None, None)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["command", *(f"parameter_{name}" for name in names), *COLUMNS, *RATIOS])
    for index, one in enumerate(outcome.commands):
        head = [one.command.text, *(one.command.parameters.get(name, "") for name in names)]
        for entry in one.metrics:
            times = ratios.get(index, ()) if entry is one.elapsed else ()
            cells = [getattr(entry, column) for column in COLUMNS]
            writer.writerow([*head, *cells, *times, *[None] * (len(RATIOS) - len(times))])
    return out.getvalue()


def as_markdown(outcome: RunResults) -> str:
    """Return a Markdown table with a row per command: its time, and its ratio to the fastest."""
    ratios = {one.place: one for one in outcome.comparisons}
    best = next(iter(ratios.values())).baseline if ratios else None
    lines = [
        "| command | mean ± sd | 95 % interval | min … max | n | times the fastest |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for index, one in enumerate(outcome.commands):
        if one.elapsed.mean is None:
            cells: list[object] = ["–"] * 4
        else:
            cells = ["–" if cell is None else cell for cell in format_row(one.elapsed)[1:]]
        text = one.command.text.replace("|", "\\|").replace("\n", " ")
        ratio = "1" if index == best else format_ratio(ratios.get(index))
        lines.append(f"| `{text}` | {' | '.join(map(str, cells))} | {ratio} |")
    return "\n".join(lines) + "\n"
