"""J. Kommeri and others: what distant data cost an analysis, in seconds and in joules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.analysis.papers.claim_files import ABSENT, Claim, Facts, PrintedValue, read_csv_rows
from steelyard.analysis.papers.conditions import DELAY, MACHINES, Studies, has_facts
from steelyard.analysis.papers.kommeri2016.figures import draws
from steelyard.analysis.papers.paper import read_paper
from steelyard.analysis.papers.verdicts import Evidence, Kind, decide_outcome
from steelyard.analysis.stats.number_format import MISSING, format_number
from steelyard.analysis.summary.latency_share import build_split_rows
from steelyard.analysis.summary.numeric_factors import find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.slopes import FactorLine, fit_factor_lines
from steelyard.analysis.summary.summary import Summary

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
CLEAN: Facts = {
    "loss_percent": ABSENT,
    "duplicate_percent": ABSENT,
    "corrupt_percent": ABSENT,
}
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
