"""Prints the results of `steelyard run`; about 80 columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TextIO

from steelyard.analysis.stats import number_format
from steelyard.jobscripts.plurals import counted, counted_range
from steelyard.wrappers.base import console
from steelyard.wrappers.netem import condition_descriptions
from steelyard.wrappers.run import comparisons
from steelyard.wrappers.run.comparisons import Comparison
from steelyard.wrappers.run.measurement import Measurement, Summary
from steelyard.wrappers.run.results import CommandResults, RunResults

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
    own = f"  by itself it takes {comparisons.format_seconds(cost.mean_s)} ({name} -c :, n = {cost.n})"
    mean = one.elapsed.mean
    less = f"; without it {comparisons.format_seconds(max(mean - cost.mean_s, 0))}" if mean else ""
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
