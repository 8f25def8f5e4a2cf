"""Network conditions of a study by condition: requested, applied and measured values."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.stats.basics import Share, wilson

if TYPE_CHECKING:
    import duckdb

    from steelyard.analysis.summary.study_run import Run


@dataclass(frozen=True, slots=True)
class NodeNetwork:
    """A job on a node with network conditions, or with round-trip times of its own sockets."""

    run_id: str
    node: str
    requested: str | None  # None: no network condition was requested
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
    # Of the job's own sockets, as the sampler read them from the kernel (docs/formats.md part 1).
    connections: int | None = None
    readings: int | None = None
    tcp_floor_s: float | None = None  # the smallest single round trip
    tcp_min_s: float | None = None  # this and the next three: of smoothed round-trip times
    tcp_mean_s: float | None = None
    tcp_sd_s: float | None = None
    tcp_max_s: float | None = None
    cwnd_segments: float | None = None  # median congestion window
    cwnd_max_segments: int | None = None
    rcv_space_bytes: float | None = None  # median
    rcv_space_max_bytes: int | None = None

    @property
    def rtt_during_s(self) -> float | None:
        """The mean of the measurements at the job's begin and end, in seconds."""
        known = [v for v in (self.rtt_during_start_s, self.rtt_during_end_s) if v is not None]
        return statistics.fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class LevelNetwork:
    """Network values of one condition: medians over its nodes, None if not measured."""

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
    jobs: int  # number of nodes of jobs with these values
    runs: int  # completed runs of the condition
    valid: int  # of these
    not_undone: int


@dataclass(frozen=True, slots=True)
class LevelTcp:
    """The job's own TCP under one condition: all readings of the nodes of its valid jobs."""

    label: str
    jobs: int
    connections: int
    readings: int
    floor_s: float | None  # the smallest single round trip
    low_s: float | None  # the smallest smoothed round-trip time
    median_s: float | None  # of the jobs' medians
    mean_s: float | None
    sd_s: float | None
    high_s: float | None
    retransmitted: int | None  # segments; None: unknown for all jobs
    cwnd_segments: float | None  # congestion window, median of the jobs' medians
    cwnd_max_segments: int | None
    rcv_space_bytes: float | None  # median of the jobs' medians
    rcv_space_max_bytes: int | None


def group_tcp_by_level(runs: Sequence[Run], nodes: Sequence[NodeNetwork]) -> list[LevelTcp]:
    """Return the conditions with readings, in the order of `runs`."""
    label_of = {run.run_id: run.label for run in runs if run.counts}
    members: dict[str, list[NodeNetwork]] = {label: [] for label in label_of.values()}
    for node in nodes:
        if node.run_id in label_of and node.tcp_rtt_s is not None:
            members[label_of[node.run_id]].append(node)
    return [build_tcp_level(label, mine) for label, mine in members.items() if mine]


def build_tcp_level(label: str, nodes: Sequence[NodeNetwork]) -> LevelTcp:
    """Pool the readings of one condition."""
    mean, sd = pool_readings(nodes)
    again = [node.retransmitted for node in nodes if node.retransmitted is not None]
    return LevelTcp(
        label=label,
        jobs=len(nodes),
        connections=sum(node.connections or 0 for node in nodes),
        readings=sum(node.readings or 0 for node in nodes),
        floor_s=min((n.tcp_floor_s for n in nodes if n.tcp_floor_s is not None), default=None),
        low_s=min((n.tcp_min_s for n in nodes if n.tcp_min_s is not None), default=None),
        median_s=find_middle(node.tcp_rtt_s for node in nodes),
        mean_s=mean,
        sd_s=sd,
        high_s=max((n.tcp_max_s for n in nodes if n.tcp_max_s is not None), default=None),
        retransmitted=sum(again) if again else None,
        cwnd_segments=find_middle(node.cwnd_segments for node in nodes),
        cwnd_max_segments=max(
            (n.cwnd_max_segments for n in nodes if n.cwnd_max_segments is not None), default=None
        ),
        rcv_space_bytes=find_middle(node.rcv_space_bytes for node in nodes),
        rcv_space_max_bytes=max(
            (n.rcv_space_max_bytes for n in nodes if n.rcv_space_max_bytes is not None),
            default=None,
        ),
    )


def pool_readings(nodes: Sequence[NodeNetwork]) -> tuple[float | None, float | None]:
    """Return mean and sd of all readings from those of each job.

    The sums of squares within and between jobs add up.
    """
    parts = [(n.readings, n.tcp_mean_s, n.tcp_sd_s or 0.0) for n in nodes]
    known = [(n, mean, sd) for n, mean, sd in parts if n and mean is not None]
    total = sum(n for n, _, _ in known)
    if not total:
        return None, None
    mean = math.fsum(n * m for n, m, _ in known) / total
    squares = math.fsum((n - 1) * sd**2 + n * (m - mean) ** 2 for n, m, sd in known)
    return mean, math.sqrt(squares / (total - 1)) if total > 1 else None


def read_network(connection: duckdb.DuckDBPyConnection) -> list[NodeNetwork]:
    """Read the network values of the counted attempts."""
    rows = connection.execute(
        """
        SELECT n.run_id, n.node, w.requested, w.applied, w.scope, w.qdisc, w.devices, w.peer,
            w.rtt_before_s, w.rtt_during_start_s, w.rtt_during_end_s, w.rtt_after_s,
            w.loss_achieved, w.loss_packets, w.dropped_packets, n.rtt_median_s,
            n.job_retransmitted_segments, w.undone, n.tcp_connections, n.rtt_readings,
            TRY_CAST(json_extract_string(n.record, '$.tcp.rtt_floor_s') AS DOUBLE),
            n.rtt_min_s, n.rtt_mean_s, n.rtt_sd_s, n.rtt_max_s, n.snd_cwnd_median_segments,
            n.snd_cwnd_max_segments, n.rcv_space_median_bytes, n.rcv_space_max_bytes
        FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt
        LEFT JOIN network AS w ON w.run_id = n.run_id AND w.attempt = n.attempt AND w.node = n.node
        WHERE w.run_id IS NOT NULL OR n.rtt_median_s IS NOT NULL
        ORDER BY n.run_id, n.node
        """
    ).fetchall()
    return [node_network(list(row)) for row in rows]


def node_network(row: list[Any]) -> NodeNetwork:
    row[6] = tuple(row[6] or ())
    fields: list[Any] = [None if is_no_number(value) else value for value in row]
    return NodeNetwork(*fields)


def is_no_number(value: object) -> bool:
    """Return whether a value is nan or infinity, which are no measurements."""
    return isinstance(value, float) and not math.isfinite(value)


def group_by_level(runs: Sequence[Run], nodes: Sequence[NodeNetwork]) -> list[LevelNetwork]:
    """Return one entry per condition in the order of `runs`; empty if nothing is known of any."""
    if not nodes:
        return []
    of_run: dict[str, list[NodeNetwork]] = {}
    for node in nodes:
        of_run.setdefault(node.run_id, []).append(node)
    members: dict[str, list[Run]] = {}
    for run in runs:
        members.setdefault(run.label, []).append(run)
    return [
        build_level(label, mine, [node for run in mine for node in of_run.get(run.run_id, ())])
        for label, mine in members.items()
    ]


def build_level(label: str, runs: Sequence[Run], nodes: Sequence[NodeNetwork]) -> LevelNetwork:
    """Describe one condition: requests of all its runs, measurements of its valid runs."""
    done = [run for run in runs if run.state == "completed"]
    counted = {run.run_id for run in done if run.counts}
    conditioned = [node for node in nodes if node.requested is not None]
    good = [node for node in nodes if node.run_id in counted]
    return LevelNetwork(
        label=label,
        requested=list_distinct(node.requested for node in conditioned),
        applied=list_distinct(node.applied for node in conditioned),
        scopes=list_distinct(
            f"{', '.join(dict.fromkeys(n.devices)) or '?'} ({n.qdisc or '?'}, {n.scope or '?'})"
            for n in conditioned
        ),
        peers=list_distinct(node.peer for node in conditioned),
        before_s=find_middle(node.rtt_before_s for node in good),
        during_s=find_middle(node.rtt_during_s for node in good),
        after_s=find_middle(node.rtt_after_s for node in good),
        tcp_rtt_s=find_middle(node.tcp_rtt_s for node in good),
        loss=pool_loss(good),
        dropped_packets=sum(node.dropped_packets or 0 for node in conditioned),
        jobs=len(good),
        runs=len(done),
        valid=sum(run.valid is not False for run in done),
        not_undone=sum(node.undone is False for node in conditioned),
    )


def list_distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Return each text once, in order, without None."""
    return tuple(dict.fromkeys(text for text in texts if text is not None))


def find_middle(values: Iterable[float | None]) -> float | None:
    """Return the median of the known values."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def pool_loss(nodes: Sequence[NodeNetwork]) -> Share | None:
    """Return the share of lost packets among all packets of these nodes."""
    known = [(n.loss, n.loss_packets) for n in nodes if n.loss is not None and n.loss_packets]
    packets = sum(number for _, number in known)
    if not packets:
        return None
    return wilson(min(sum(loss * number for loss, number in known), packets), packets)
