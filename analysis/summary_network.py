"""Network conditions of a study: what was asked for, put in place and measured, per condition."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.stats_proportion import Share, wilson

if TYPE_CHECKING:
    import duckdb

    from steelyard.analysis.summary_read import Run


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """A job on a node with network conditions, or round-trip times of its own sockets."""

    run_id: str
    node: str
    requested: str | None  # None: none were asked for
    applied: str | None
    scope: str | None
    qdisc: str | None
    devices: tuple[str, ...]
    peer: str | None
    rtt_before_s: float | None
    rtt_during_start_s: float | None
    rtt_during_end_s: float | None
    rtt_after_s: float | None
    loss: float | None
    loss_packets: int | None
    dropped_packets: int | None
    tcp_rtt_s: float | None  # median of the job's own sockets
    retransmitted: int | None
    undone: bool | None

    @property
    def rtt_during_s(self) -> float | None:
        """The mean of what was measured when the job began and when it ended."""
        known = [v for v in (self.rtt_during_start_s, self.rtt_during_end_s) if v is not None]
        return statistics.fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class LevelNetwork:
    """All of one condition; medians over its nodes' values, None where nothing was measured."""

    label: str
    requested: tuple[str, ...]
    applied: tuple[str, ...]
    scopes: tuple[str, ...]  # `eth0 (netem, node)`
    peers: tuple[str, ...]
    before_s: float | None
    during_s: float | None
    after_s: float | None
    tcp_rtt_s: float | None
    loss: Share | None
    dropped_packets: int
    jobs: int  # jobs on nodes behind these figures
    runs: int  # completed runs of the condition
    valid: int  # of these
    not_undone: int


def read_network(connection: duckdb.DuckDBPyConnection) -> list[NodeNetwork]:
    """Of the attempts that count."""
    rows = connection.execute(
        """
        SELECT n.run_id, n.node, w.requested, w.applied, w.scope, w.qdisc, w.devices, w.peer,
            w.rtt_before_s, w.rtt_during_start_s, w.rtt_during_end_s, w.rtt_after_s,
            w.loss_achieved, w.loss_packets, w.dropped_packets, n.rtt_median_s,
            n.job_retransmitted_segments, w.undone
        FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt
        LEFT JOIN network AS w ON w.run_id = n.run_id AND w.attempt = n.attempt AND w.node = n.node
        WHERE w.run_id IS NOT NULL OR n.rtt_median_s IS NOT NULL
        ORDER BY n.run_id, n.node
        """
    ).fetchall()
    return [node_network(list(row)) for row in rows]


def node_network(row: list[Any]) -> NodeNetwork:
    row[6] = tuple(row[6] or ())
    return NodeNetwork(*row)


def by_level(runs: Sequence[Run], nodes: Sequence[NodeNetwork]) -> list[LevelNetwork]:
    """Per condition, in the order in which `runs` name them; [] when nothing is known of any."""
    if not nodes:
        return []
    of_run: dict[str, list[NodeNetwork]] = {}
    for node in nodes:
        of_run.setdefault(node.run_id, []).append(node)
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(run.label, []).append(run)
    return [
        level_of(label, mine, [node for run in mine for node in of_run.get(run.run_id, ())])
        for label, mine in members.items()
    ]


def level_of(label: str, runs: Sequence[Run], nodes: Sequence[NodeNetwork]) -> LevelNetwork:
    """One condition: what it asked for is of all its runs, what was measured of the valid ones."""
    done = [run for run in runs if run.state == "completed"]
    counted = {run.run_id for run in done if run.counts}
    asked = [node for node in nodes if node.requested is not None]
    good = [node for node in nodes if node.run_id in counted]
    return LevelNetwork(
        label=label,
        requested=distinct(node.requested for node in asked),
        applied=distinct(node.applied for node in asked),
        scopes=distinct(
            f"{', '.join(n.devices) or '?'} ({n.qdisc or '?'}, {n.scope or '?'})" for n in asked
        ),
        peers=distinct(node.peer for node in asked),
        before_s=middle(node.rtt_before_s for node in good),
        during_s=middle(node.rtt_during_s for node in good),
        after_s=middle(node.rtt_after_s for node in good),
        tcp_rtt_s=middle(node.tcp_rtt_s for node in good),
        loss=pooled_loss(good),
        dropped_packets=sum(node.dropped_packets or 0 for node in asked),
        jobs=len(good),
        runs=len(done),
        valid=sum(run.valid is not False for run in done),
        not_undone=sum(node.undone is False for node in asked),
    )


def distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Each text once, in its order; None left out."""
    return tuple(dict.fromkeys(text for text in texts if text is not None))


def middle(values: Iterable[float | None]) -> float | None:
    """The median of what is known."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def pooled_loss(nodes: Sequence[NodeNetwork]) -> Share | None:
    """Packets lost of all packets of these nodes."""
    known = [(n.loss, n.loss_packets) for n in nodes if n.loss is not None and n.loss_packets]
    packets = sum(number for _, number in known)
    if not packets:
        return None
    return wilson(min(sum(loss * number for loss, number in known), packets), packets)
