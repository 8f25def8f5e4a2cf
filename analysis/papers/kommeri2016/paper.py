"""Three tables, claims on slopes and shares, and figures: over time, and over the network's delay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, DASHES, MARKERS, Drawing
from steelyard.analysis.figures.time_series import draw_times
from steelyard.analysis.papers.claim_files import ABSENT, Claim, Facts, PrintedValue, read_csv_rows
from steelyard.analysis.papers.conditions import (
    DELAY,
    MACHINES,
    Studies,
    format_fact_value,
    has_facts,
)
from steelyard.analysis.papers.paper import read_paper
from steelyard.analysis.papers.printed_comparisons import PrintedComparison
from steelyard.analysis.papers.verdicts import Evidence, Kind, decide_outcome
from steelyard.analysis.report.figures import Draw
from steelyard.analysis.stats.number_format import MISSING, choose_prefix, format_number
from steelyard.analysis.summary.latency_share import build_split_rows
from steelyard.analysis.summary.numeric_factors import find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.slopes import FactorLine, fit_factor_lines
from steelyard.analysis.summary.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DELAY_COLUMNS = ("metric", "others", "round_trip_ms", "n", "mean", "low", "high", "unit")
ENERGY = ("energy_j", "energy_low_j")


def draws(studies: Studies, values: Sequence[PrintedComparison]) -> Iterator[Draw]:
    """Yield figures 1, 2 and 3."""
    del values
    for summary in studies.summaries:
        mine = [
            row for row in studies.rows.get("seconds", []) if studies.find_study(row) is summary
        ]
        for variant in dict.fromkeys(row.group.variant for row in mine):
            yield partial(draw_over_time, studies, summary, variant)
    yield partial(draw_over_delay, studies)


def draw_over_time(studies: Studies, summary: Summary, variant: str) -> Drawing | None:
    """Draw power and traffic in one figure; None if no run has samples."""
    found = dict(draw_times(summary, [variant])).get(variant)
    if found is None:
        return None
    label = studies.add_study_name(summary, variant)
    return replace(
        found,
        name=drawing.make_slug("kommeri2016-time", label),
        title=f"Figure 1 of Kommeri et al.: power and traffic over time, here ({label})",
        caption=f"Theirs moves in cycles, power and traffic together, and a short constant peak "
        f"uses all of the bandwidth; it is printed as a figure only. Here: {found.caption}",
    )


def draw_over_delay(studies: Studies) -> Drawing | None:
    """Draw run time at the left, joules at the right; None with fewer than two measured delays."""
    times = delay_series(studies, "seconds")
    if not times:
        return None
    energy = next((s for name in ENERGY if (s := delay_series(studies, name))), {})
    with drawing.use_style():
        figure = drawing.new_figure(3.4)
        left, right = figure.subplots(1, 2)
        draw_delay_lines(left, times, "run time")
        draw_delay_lines(right, energy, "energy")
        if not energy:
            right.text(0.5, 0.5, "no energy was measured", transform=right.transAxes, ha="center",
                       style="italic")  # fmt: skip
        handles, labels = left.get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
    rows = [cells for series in (times, energy) for cells in delay_rows(series)]
    return Drawing(
        name="kommeri2016-delay",
        title="Figures 2 and 3 of Kommeri et al.: run time and energy over delay, here",
        caption=(
            "Mean run time and energy over the round trip that the network conditions add, with 95 % "
            "intervals. The paper's own values are printed as figures only."
        ),
        figure=figure,
        columns=DELAY_COLUMNS,
        rows=rows,
    )


Line = list[tuple[float, Row]]


def delay_series(studies: Studies, metric: str) -> dict[str, Line]:
    """Return rows over the round-trip time by other facts; only lines of two or more delays."""
    rows = [row for row in studies.rows.get(metric, []) if has_delay(studies, row)]
    several = len({row.group.variant for row in rows}) > 1
    found: dict[str, Line] = {}
    for row in rows:
        label = format_other_facts(studies, row)
        if several:
            label = f"{row.group.variant} {label}".strip()
        name = studies.add_study_name(studies.find_study(row), label)
        found.setdefault(name, []).append((studies.find_facts(row)[DELAY], row))
    return {
        name: sorted(line, key=lambda pair: pair[0])
        for name, line in found.items()
        if len({delay for delay, _ in line}) > 1
    }


def has_delay(studies: Studies, row: Row) -> bool:
    """Return whether a row is of an analysis with a delay and an interval."""
    facts = studies.find_facts(row)
    return DELAY in facts and facts.get("mode") != "xrdcp" and row.interval is not None


NETWORK_NAMES = ("rate_mbit", "loss_percent", "duplicate_percent", "corrupt_percent", "rto_min_ms")


def format_other_facts(studies: Studies, row: Row) -> str:
    """Return `rate_mbit=100, clients=2`: all facts of a condition except the delay."""
    facts = studies.find_facts(row)
    names = [n for n in row.group.condition if n != "network"] + [
        n for n in NETWORK_NAMES if n in facts
    ]
    if "clients" in facts and "clients" not in names:
        names.append("clients")
    return ", ".join(f"{name}={format_fact_value(facts[name])}" for name in names)


def draw_delay_lines(axes: Axes, series: dict[str, Line], label: str) -> None:
    """Draw each series as a line with its intervals."""
    rows = [row for line in series.values() for _, row in line]
    factor, unit = choose_prefix(max((row.maximum or 0.0 for row in rows), default=None),
                         rows[0].metric.unit if rows else "J")  # fmt: skip
    for number, (name, line) in enumerate(series.items()):
        places = [delay for delay, _ in line]
        means = [row.interval.mean / factor for _, row in line if row.interval]
        reach = [
            ((row.interval.half_width or 0.0) / factor if row.interval else 0.0) for _, row in line
        ]
        axes.errorbar(
            places, means, yerr=reach, color=COLOURS[number % len(COLOURS)], capsize=3,
            linestyle=DASHES[number % len(DASHES)], marker=MARKERS[number % len(MARKERS)],
            markersize=4.5, linewidth=1.3, label=name or "all runs",
        )  # fmt: skip
    axes.set_xlabel("round trip added (ms)")
    axes.set_ylabel(f"{label} ({unit})")
    axes.set_ylim(bottom=0)


def delay_rows(series: dict[str, Line]) -> Iterator[tuple[object, ...]]:
    for name, line in series.items():
        for delay, row in line:
            ends = row.interval and (row.interval.mean, row.interval.low, row.interval.high)
            yield (row.metric.name, name, delay, row.n, *(ends or (None,) * 3), row.metric.unit)


FOLDER = Path(__file__).parent
# The paper's analysis, or the user's program instead, without other traffic on the path to its
# data.
ANALYSIS: Facts = {
    "benchmark": ["xrootd", "app"],
    "mode": ["analysis", "command", "parallel", ABSENT],
    "order": ["parallel", ABSENT],
    "background": [0, ABSENT],
}
ONE: Facts = {"clients": [1, ABSENT]}
WARM: Facts = {"cache": ["warm", ABSENT]}
# A network that neither loses nor corrupts packets.
CLEAN: Facts = {"loss_percent": ABSENT, "duplicate_percent": ABSENT, "corrupt_percent": ABSENT}
NEAR: Facts = {**ANALYSIS, **WARM, **CLEAN, DELAY: 0}

# --- printed tables ------------------------------------------------------------------------------

PARALLELISM: dict[str, Facts] = {
    "1 VM": ONE,
    "2 jobs, 1 VM": {"clients": 2, MACHINES: 1},
    "2 jobs, 2 VMs": {"clients": 2, MACHINES: 2},
}
RATES_MBIT = {"execution_s_100mbit": 100, "execution_s_1gbit": 1000}
# Column: (metric, unit, scale).
OF_CACHE = {
    "data_from_cern_mb_first_run": ("cvmfs_fetched_bytes_first", "MB", 1e-6),
    "data_from_cern_mb_following_runs": ("cvmfs_fetched_bytes_following", "MB", 1e-6),
    "execution_s_following_runs": ("seconds_following", "s", 1.0),
}
CLIENTS = {"vm_1": 1, "vm_10": 10}


def table_1() -> Iterator[PrintedValue]:
    """Yield the run time of one job and of two concurrent jobs."""
    for row in read_csv_rows(FOLDER / "table1.csv"):
        for column, rate in RATES_MBIT.items():
            yield PrintedValue(
                table="Table 1: run time and jobs at once (s)",
                place=(row["parallelism"],),
                column=column,
                printed=float(row[column]),
                unit="s",
                metric="seconds",
                facts={**NEAR, "rate_mbit": rate, **PARALLELISM[row["parallelism"]]},
                study="kommeri2016-jobs",
                size={},
            )


def table_2() -> Iterator[PrintedValue]:
    """Yield the limits of the CVMFS cache; an empty cell means that the load cannot run."""
    for row in read_csv_rows(FOLDER / "table2.csv"):
        limit = row["cvmfs_cache_limit_mb"]
        for column, (metric, unit, scale) in OF_CACHE.items():
            yield PrintedValue(
                table="Table 2: limits of the CVMFS cache",
                place=(limit,),
                column=column,
                printed=float(row[column]) if row[column] else None,
                unit=unit,
                metric=metric,
                facts={"cvmfs_limit_mb": int(limit)},
                study="kommeri2016-cvmfs",
                size={},
                scale=scale,
            )


def table_3() -> Iterator[PrintedValue]:
    """Yield round-trip times, from all readings of a run."""
    for row in read_csv_rows(FOLDER / "table3.csv"):
        which = row["round_trip_ms"]
        for column, clients in CLIENTS.items():
            yield PrintedValue(
                table="Table 3: round trips with one virtual machine and with ten (ms)",
                place=(which,),
                column=column,
                printed=float(row[column]),
                unit="ms",
                metric=f"tcp_rtt_{'sd' if which == 'stdev' else which}_s",
                facts={**NEAR, "rate_mbit": ABSENT, "clients": clients},
                study="kommeri2016-blades",
                size={},
                scale=1e3,
            )


# --- kinds of claims that no other paper has -----------------------------------------------------


def judge_delay_slopes(studies: Studies, claim: Claim) -> Iterator[Evidence]:
    """Judge the interval of each line's slope, in seconds per ms of delay."""
    for summary in studies.summaries:
        for line in fit_factor_lines(summary):
            rows = select_line_rows(studies, summary, line)
            is_wanted = "of delay" in line.factor_unit and line.metric in claim.metrics
            if (
                is_wanted
                and rows
                and all(has_facts(studies.find_facts(r), claim.where) for r in rows)
            ):
                yield judge_slope(line, claim)


def select_line_rows(studies: Studies, summary: Summary, line: FactorLine) -> list[Row]:
    """Return the rows that a line was fitted to."""
    return [
        row
        for axis in find_axes(summary.data.meta.factors)
        if (axis.factor, axis.unit) == (line.factor, line.factor_unit)
        for row in studies.rows.get(line.metric, [])
        if studies.find_study(row) is summary
        and row.group.variant == line.variant
        and axis.position(row.group.condition) is not None
        and axis.others(row.group.levels) == line.others
    ]


def judge_slope(found: FactorLine, claim: Claim) -> Evidence:
    """Judge one slope."""
    slope = found.line.slope
    low, high, value = (
        MISSING if v is None else format_number(v, 1, 3 if abs(v) < 10 else 1)
        for v in (slope.low, slope.high, slope.value)
    )
    return Evidence(
        decide_outcome(slope.low, slope.high, claim),
        f"{found.variant} {found.others}".strip()
        + f": {value} ({low} … {high}) {found.unit} of {found.metric} per {found.factor_unit}, "
        f"n = {slope.n}",
        found.others,
        value=slope.value,
        low=slope.low,
        high=slope.high,
        variant=found.variant,
    )


def judge_throughput_shares(studies: Studies, claim: Claim) -> Iterator[Evidence]:
    """Judge the share of throughput in a difference, by the model of docs/report.md."""
    for found in (row for summary in studies.summaries for row in build_split_rows(summary)):
        share = found.split.throughput_share if found.split else None
        if not found.is_valid or share is None:
            continue
        if not has_facts(studies.find_facts(found.row), claim.where):
            continue
        label = found.row.group.label
        text = f"{label}: throughput's share {100 * share.value:.0f} %"
        if share.low is not None and share.high is not None:
            text += f" ({100 * share.low:.0f} … {100 * share.high:.0f})"
        yield Evidence(
            decide_outcome(share.low, share.high, claim),
            text,
            label,
            found.base.group.label,
            value=share.value,
            low=share.low,
            high=share.high,
            variant=found.row.group.variant,
        )


KINDS: Mapping[str, Kind] = {
    "slope": Kind(judge_delay_slopes, "no line over delay with three levels or more"),
    "throughput_share": Kind(judge_throughput_shares),
}
VALUES: Sequence[PrintedValue] = [*table_1(), *table_2(), *table_3()]

PAPER = read_paper(
    FOLDER,
    "J. Kommeri, A. Vartiainen, S. Heikkilä, T. Niemi: energy and run time of physics analysis with "
    "remote data (XRootD, CVMFS), 2016, two versions",
    "Kommeri et al. 2016",
    draws,
    scopes={"analysis": ANALYSIS, "one": ONE, "warm": WARM, "clean": CLEAN},
    values=VALUES,
    kinds=KINDS,
)
