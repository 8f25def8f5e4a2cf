"""The report's section on tolerances (`tolerate`): sentences, table and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.report.links import variant_anchors
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.margin_crossing import State
from steelyard.analysis.stats.number_format import (
    MISSING,
    count_decimals,
    format_level_number,
    format_number,
)
from steelyard.analysis.summary.numeric_factors import Axis
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.tolerated_levels import BELOW, Tolerance, find_tolerances

HEADINGS = ("Variant", "Metric", "Other factors", "Limit (95 % interval)", "Between levels", "n")
MAX_SENTENCES = 12


def build_tolerance_section(summary: Summary) -> dict[str, Any] | None:
    """Return sentences and table; None without `tolerate` and without a numeric factor."""
    found = find_tolerances(summary)
    if not found:
        return None
    anchors = variant_anchors(summary)
    return {
        "sentences": build_sentences(found, format_percent(summary)),
        "caption": f"Level at which a main figure is {format_percent(summary)} worse than at the baseline",
        "table": Table(
            HEADINGS, [table_row(one) for one in found], [anchors[one.variant] for one in found]
        ),
    }


def build_tolerance_sentences(summary: Summary) -> list[str]:
    """Describe the benchmarks' main figures; empty without `tolerate`."""
    return build_sentences(find_tolerances(summary), format_percent(summary))


def build_sentences(found: Sequence[Tolerance], share: str) -> list[str]:
    """Describe the main figures; the table has all."""
    main = [one for one in found if one.is_primary]
    sentences = [describe_tolerance(one, share) for one in main[:MAX_SENTENCES]]
    remaining = len(main) - len(sentences)
    return [*sentences, *([f"{remaining} more in the report's table."] if remaining else [])]


def format_percent(summary: Summary) -> str:
    """Return `10 %`."""
    return f"{100 * (summary.data.meta.tolerate or 0.0):g} %"


def describe_tolerance(one: Tolerance, share: str) -> str:
    """Return `app: elapsed_s is 10 % worse than at the baseline from 34 ms of delay on (28 to
    41)`.
    """
    who = f"{one.variant}{f' ({one.others})' if one.others else ''}: {one.metric}"
    predicate = {
        State.CROSSED: describe_crossing,
        State.AT_ONCE: describe_immediate,
        State.BEYOND: describe_beyond,
        State.NOT_REACHED: describe_not_reached,
        State.UNKNOWN: describe_unknown,
    }[one.crossing.state](one, share)
    again = ""
    if one.crossing.returns is not None:
        again = f" At {format_position(one.axis, one.crossing.returns)} it is less than {share} worse again."
    return f"{who} {predicate}.{again}"


def describe_crossing(one: Tolerance, share: str) -> str:
    found, on = one.crossing, "down" if one.side == BELOW else "on"
    value = format_position(one.axis, found.value, format_limit(one))
    around = f"{format_level(found.before)} and {format_level(found.behind)}"
    return (
        f"is {share} worse than at {format_base(one)} from {value} {on} ({format_interval(one)}; interpolated "
        f"between the levels {around})"
    )


def format_interval(one: Tolerance) -> str:
    """Return `28 to 41`; a missing end is described in words."""
    low, high = sort_ends(one)
    if low is not None and high is not None:
        places = count_limit_decimals(one)
        return f"{format_number(low, 1.0, places)} to {format_number(high, 1.0, places)}"
    if low is None and high is None:
        return "no end of the interval is inside the levels"
    end = f"at least {format_digits(low)}" if low is not None else f"at most {format_digits(high)}"
    is_far = (low is None) == (one.side == BELOW)
    where = f"{format_level(one.farthest)}, the farthest level" if is_far else "the baseline"
    return f"{end}, the interval's other end is beyond {where}"


def describe_immediate(one: Tolerance, share: str) -> str:
    found, first = one.crossing, format_position(one.axis, one.first)
    more = "more" if one.side == BELOW else "less"
    text = (
        f"is more than {share} worse at {first}, the first level {one.side} {format_base(one)}: the limit is "
        f"{more} than that"
    )
    if found.high == one.first:
        return text
    if found.high is None:
        return f"{text} by the means; no level is shown to be past it"
    return (
        f"{text} by the means, and shown to be {more} than {format_position(one.axis, found.high)}"
    )


def describe_beyond(one: Tolerance, share: str) -> str:
    to, more = ("down", "less") if one.side == BELOW else ("up", "more")
    farthest = format_position(one.axis, one.farthest)
    return (
        f"is less than {share} worse than at {format_base(one)} {to} to {farthest}, the farthest level: the "
        f"limit is {more} than {farthest}"
    )


def describe_not_reached(one: Tolerance, share: str) -> str:
    to, farthest = "down" if one.side == BELOW else "up", format_position(one.axis, one.farthest)
    low = one.crossing.low
    if low is None:
        return (
            f"is less than {share} worse than at {format_base(one)} by its means {to} to {farthest}, the "
            "farthest level, which no level shows for sure: take more runs"
        )
    return (
        f"is shown to be less than {share} worse than at {format_base(one)} {to} to {format_position(one.axis, low)}; by its "
        f"means {to} to {farthest}, the farthest level"
    )


def describe_unknown(one: Tolerance, share: str) -> str:
    found = one.crossing
    if found.behind is None:
        return f"has no known limit: {found.reason}"
    unit = f" {one.axis.unit}" if one.axis.factor == FACTOR else f" of {one.axis.factor}"
    return (
        f"is {share} worse than at {format_base(one)} somewhere between {format_level(found.before)} and "
        f"{format_level(found.behind)}{unit}, by the means alone: {found.reason}"
    )


def format_base(one: Tolerance) -> str:
    """Return `the baseline (0 ms of delay)`."""
    return f"the baseline ({format_position(one.axis, one.baseline)})"


def format_position(axis: Axis, value: float | None, text: str | None = None) -> str:
    """Return `34 ms of delay`, `threads = 4`, `no limit of rate`."""
    if value is None:
        return f"no limit of {axis.label.split()[0]}"
    if axis.factor == FACTOR:
        return f"{text or format_digits(value)} {axis.unit}"
    return f"{axis.factor} = {text or format_digits(value)}"


def format_level(value: float | None) -> str:
    """Return a level's own number."""
    return "no limit" if value is None else format_level_number(value)


def format_digits(value: float | None) -> str:
    """Return three digits; a level's own number is unchanged."""
    if value is None:
        return MISSING
    return format_level(value if float(value).is_integer() else float(f"{value:.3g}"))


def sort_ends(one: Tolerance) -> tuple[float | None, float | None]:
    """Return the interval's ends in ascending order: below the baseline the nearer is larger."""
    found = one.crossing
    return (found.high, found.low) if one.side == BELOW else (found.low, found.high)


def count_limit_decimals(one: Tolerance) -> int:
    """Return the decimals of a limit and its interval."""
    found = one.crossing
    if found.value is None or found.low is None or found.high is None:
        return 0
    return count_decimals(found.value, abs(found.high - found.low) / 2)


def format_limit(one: Tolerance) -> str:
    """Return the limit alone, in as many digits as the interval has."""
    found = one.crossing
    if found.low is None or found.high is None:
        return format_digits(found.value)
    return format_number(found.value, 1.0, count_limit_decimals(one))


def table_row(one: Tolerance) -> tuple[str, ...]:
    found = one.crossing
    enclosed = f"{format_level(found.before)} and {format_level(found.behind)}"
    fewest, most = one.runs
    runs = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    blocks = f", by {one.blocks} blocks" if one.blocks else ""
    return (
        one.variant,
        one.metric,
        one.others or MISSING,
        format_limit_cell(one),
        MISSING if found.behind is None else enclosed,
        f"{runs} runs a level, {one.levels} levels{blocks}",
    )


def format_limit_cell(one: Tolerance) -> str:
    """Return `34 ms of delay (28 to 41)`, `more than 50 ms of delay`."""
    found = one.crossing
    less, more = ("more", "less") if one.side == BELOW else ("less", "more")
    match found.state:
        case State.CROSSED:
            return f"{format_position(one.axis, found.value, format_limit(one))} ({format_interval(one)})"
        case State.AT_ONCE if found.high is not None:
            return f"{less} than {format_position(one.axis, found.high)}"
        case State.AT_ONCE:
            return f"{less} than {format_position(one.axis, one.first)} by the means"
        case State.BEYOND:
            return f"{more} than {format_position(one.axis, one.farthest)}, the farthest level"
        case State.NOT_REACHED if found.low is not None:
            return f"{more} than {format_position(one.axis, found.low)}"
        case State.NOT_REACHED:
            return "not shown"
    return f"{MISSING} ({found.reason})"


def tolerance_document(one: Tolerance) -> dict[str, Any]:
    """Return a tolerance for `--json` and exports; null is not known."""
    found = one.crossing
    return {
        "variant": one.variant,
        "metric": one.metric,
        "unit": one.unit,
        "factor": one.axis.factor,
        "per": one.axis.unit,
        "others": one.others,
        "side": one.side or None,
        "baseline": one.baseline,
        "state": found.state.value,
        "limit": found.value,
        "low": sort_ends(one)[0],
        "high": sort_ends(one)[1],
        "before": found.before,
        "behind": found.behind,
        "returns": found.returns,
        "farthest": one.farthest,
        "levels": one.levels,
        "n_least": one.runs[0],
        "n_most": one.runs[1],
        "blocks": one.blocks,
        "reason": found.reason,
    }
