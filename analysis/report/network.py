"""The report's section on network conditions: sentences and a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steelyard.analysis.report.links import label_anchors
from steelyard.analysis.report.tables import Table, join_names
from steelyard.analysis.stats.basics import Share
from steelyard.analysis.stats.number_format import MISSING, format_quantity
from steelyard.analysis.summary.network import (
    LevelNetwork,
    LevelTcp,
    group_by_level,
    group_tcp_by_level,
)
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    from steelyard.analysis.summary.summary import Summary

MAX_SENTENCES = 6  # for more conditions only the table has the round trips

HEADINGS = (
    "Condition",
    "Requested",
    "Applied",
    "Where",
    "Round trip before",
    "… during",
    "… after",
    "… of the job's own TCP",
    "Loss (95 % interval)",
    "Valid runs",
)


TCP_HEADINGS = (
    "Condition",
    "Jobs on a node",
    "Connections",
    "Readings",
    "Smallest round trip",
    "Smoothed: smallest",
    "… median",
    "… mean",
    "… sd",
    "… largest",
    "Retransmitted segments",
    "Congestion window: median",
    "… largest",
    "Receive space: median",
    "… largest",
)


def build_network_section(summary: Summary) -> dict[str, Any] | None:
    """Return sentences and table; None if no node had conditions or measured round-trip times."""
    levels = group_by_level(summary.data.runs, summary.data.network)
    levels = sorted(levels, key=lambda level: summary.labels.index(level.label))
    if not levels:
        return None
    return {
        "sentences": list(build_sentences(summary, levels)),
        "table": Table(
            HEADINGS, [table_row(level) for level in levels], find_places(summary, levels)
        ),
        "tcp": build_tcp_table(summary),
    }


def build_tcp_table(summary: Summary) -> Table | None:
    """Return the kernel's values of the jobs' own sockets; None without readings."""
    levels = group_tcp_by_level(summary.data.runs, summary.data.network)
    levels = sorted(levels, key=lambda level: summary.labels.index(level.label))
    if not levels:
        return None
    return Table(TCP_HEADINGS, [tcp_row(level) for level in levels], find_places(summary, levels))


def find_places(summary: Summary, levels: Sequence[LevelNetwork | LevelTcp]) -> list[str]:
    """Return the anchors of the runs of each row."""
    anchors = label_anchors(summary)
    return [anchors[level.label] for level in levels]


def tcp_row(level: LevelTcp) -> tuple[str, ...]:
    times = (level.floor_s, level.low_s, level.median_s, level.mean_s, level.sd_s, level.high_s)
    return (
        level.label or "all runs",
        *map(str, (level.jobs, level.connections, level.readings)),
        *(format_quantity(time_s, "s") for time_s in times),
        MISSING if level.retransmitted is None else str(level.retransmitted),
        MISSING if level.cwnd_segments is None else f"{level.cwnd_segments:.4g}",
        MISSING if level.cwnd_max_segments is None else str(level.cwnd_max_segments),
        format_quantity(level.rcv_space_bytes, "bytes"),
        format_quantity(level.rcv_space_max_bytes, "bytes"),
    )


def network_document(summary: Summary) -> dict[str, Any]:
    """Return two lists for `--json`, which are empty without measurements."""
    data = summary.data
    levels, tcp = (
        group_by_level(data.runs, data.network),
        group_tcp_by_level(data.runs, data.network),
    )
    return {
        "conditions": [asdict(level) for level in levels],
        "tcp": [asdict(level) for level in tcp],
    }


def table_row(level: LevelNetwork) -> tuple[str, ...]:
    return (
        level.label or "all runs",
        join_names(level.requested) or "none",
        join_names(level.applied) or MISSING,
        join_names(level.scopes) or MISSING,
        format_quantity(level.before_s, "s"),
        format_quantity(level.during_s, "s"),
        format_quantity(level.after_s, "s"),
        format_quantity(level.tcp_rtt_s, "s"),
        format_loss(level.loss),
        f"{level.valid} of {level.runs}",
    )


def format_loss(loss: Share | None) -> str:
    """Return `0.98 % (0.71 … 1.4) of 4000 packets`."""
    if loss is None:
        return MISSING
    value, low, high = (f"{100 * number:.2g}" for number in (loss.value, loss.low, loss.high))
    return f"{value} % ({low} … {high}) of {counted(loss.n, 'packet')}"


def build_sentences(summary: Summary, levels: list[LevelNetwork]) -> Iterator[str]:
    """Yield what a reader needs before the table."""
    probed = [level for level in levels if level.requested and level.during_s is not None]
    yield from (
        map(describe_round_trip, probed)
        if len(probed) <= MAX_SENTENCES
        else [format_rtt_range(probed)]
    )
    requested = [level for level in levels if level.requested or level.valid < level.runs]
    runs, valid = sum(level.runs for level in requested), sum(level.valid for level in requested)
    if requested and runs == valid:
        yield f"All {counted(runs, 'completed run')} with network conditions kept them."
    elif requested:
        yield format_valid_runs(summary, runs, valid)
    leftover = sum(level.not_undone for level in levels)
    if leftover:
        yield (
            f"After {counted(leftover, 'job')} on a node the conditions were not undone: "
            "`steelyard netem show` there, then `steelyard netem clear --all`."
        )
    if any(level.tcp_rtt_s is not None for level in levels):
        yield (
            "Round-trip times of the job's own TCP are the kernel's smoothed ones, read once a second "
            "at most; the median is that of the jobs' medians. The smallest round trip is a single one "
            "(TCP_INFO tcpi_min_rtt): what the way itself takes, without any queue."
        )


def describe_round_trip(level: LevelNetwork) -> str:
    """Return `network=delay=50ms: a round trip to n9 took 50.4 ms, 50.1 ms more than before …`."""
    where = f" to {join_names(level.peers)}" if level.peers else ""
    text = f"{level.label or 'All runs'}: a round trip{where} took {format_quantity(level.during_s, 's')}"
    if level.before_s is not None and level.during_s is not None:
        more = level.during_s - level.before_s
        text += f", {format_quantity(abs(more), 's')} {'more' if more >= 0 else 'less'} than before"
    return f"{text} (median over {counted(level.jobs, 'job')} on a node)."


def format_rtt_range(levels: list[LevelNetwork]) -> str:
    """Describe all conditions in one sentence, if a sentence each would be too many."""
    medians = [level.during_s or 0.0 for level in levels]
    return (
        f"Under {counted(len(levels), 'condition')} a round trip took {format_quantity(min(medians), 's')} to "
        f"{format_quantity(max(medians), 's')} (medians over jobs on a node); the table has each."
    )


def format_valid_runs(summary: Summary, runs: int, valid: int) -> str:
    """Describe how many runs were left out and why."""
    invalid = [run for run in summary.data.runs if run.valid is False]
    reasons = Counter(run.invalid_reason or "no reason given" for run in invalid)
    by_reason = "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common(3))
    used = any(run.counts for run in invalid)
    what = "they are in the means, as asked for" if used else "they are in no mean"
    return (
        f"{runs - valid} of {counted(runs, 'completed run')} with network conditions did not keep "
        f"them, and {what}: {by_reason}."
    )
