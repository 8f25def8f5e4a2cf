"""Reads the reports of iperf3 --json in out.CLIENT: all streams and intervals must be there, and the
figures must agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.pairs import Pair, number, read_pairs
from steelyard.jobscripts.registry import Result

Json = dict[str, object]
LATE = 0.1  # how much earlier a transfer may end, as a share of the requested seconds
GAP_S = 0.1  # iperf3 omits a last interval that is shorter and had no data (iperf_api.c)
ROUNDED = 1e-4  # bytes and rates are from one count each; seconds are printed with six decimals


def check_report(where: str, report: object, end: Json, parameters: Mapping[str, object]) -> None:
    """Raise OutputError unless each requested stream is in every interval and in the sums."""
    expected = int(str(parameters["streams"])) * (2 if parameters["direction"] == "both" else 1)
    streams = ends(where, end)
    if len(streams) != expected:
        raise OutputError(where, f"{len(streams)} streams in the end, {expected} were expected")
    _sums(where, end, streams)
    sums = [end[key] for key in ("sum_sent", "sum_received") if key in end]
    _intervals(where, report, expected, min(number(where, total, "seconds") for total in sums))


def requested_seconds(parameters: Mapping[str, object]) -> float:
    """Return the requested duration in s."""
    return float(str(parameters["seconds"]))


def ends(where: str, end: Json) -> list[dict[str, Json]]:
    """Return the final section of each stream: `sender` and `receiver` (TCP) or `udp`."""
    rows = end.get("streams")
    if not isinstance(rows, list) or not all(_is_stream(row) for row in rows):
        raise OutputError(where, "no 'streams' with a 'sender' (TCP) or 'udp' in each")
    return rows


def _is_stream(row: object) -> bool:
    return isinstance(row, dict) and any(
        isinstance(row.get(key), dict) for key in ("sender", "udp")
    )


def rate_of(where: str, total: Json) -> float:
    """Return the reported rate in bit/s, after a comparison with bytes and seconds."""
    reported = number(where, total, "bits_per_second")
    count, seconds = number(where, total, "bytes"), number(where, total, "seconds")
    true = 8 * count / seconds if seconds > 0 else 0.0
    if abs(reported - true) > ROUNDED * true:
        raise OutputError(
            where,
            f"{reported:g} bit/s is reported, {count:.0f} bytes in {seconds:g} s are {true:g} bit/s",
        )
    return reported


def _sums(where: str, end: Json, streams: list[dict[str, Json]]) -> None:
    """Compare the streams' bytes, by direction, with the reported sums."""
    for back, suffix in ((False, ""), (True, "_bidir_reverse")):
        rows = [row for row in streams if _is_back(row, end) == back]
        for kind, name in (
            ("sender", "sum_sent"),
            ("receiver", "sum_received"),
            ("udp", "sum_sent"),
        ):
            parts = [row[kind] for row in rows if kind in row]
            if parts:
                _sum(where, end.get(name + suffix), f"{name}{suffix}", kind, parts)


def _is_back(row: dict[str, Json], end: Json) -> bool:
    """Whether a stream is of the second direction: then the client did not send it."""
    summary = row.get("sender") or row.get("udp") or {}
    return "sum_sent_bidir_reverse" in end and not summary.get("sender")


def _sum(where: str, total: object, name: str, kind: str, parts: list[Json]) -> None:
    reported = number(where, total, "bytes")
    true = sum(number(where, item, "bytes") for item in parts)
    if abs(reported - true) > ROUNDED * true:
        raise OutputError(
            where,
            f"{name} is {reported:.0f} bytes, its {len(parts)} streams ({kind}) have {true:.0f}",
        )


def _intervals(where: str, report: object, streams: int, seconds: float) -> None:
    """Check that the measured intervals are contiguous until the end, with all streams in each."""
    reached = 0.0
    for start, end, count in measured(where, report):
        if abs(start - reached) > GAP_S:
            raise OutputError(
                where, f"an interval begins at {start:g} s, expected was {reached:g} s"
            )
        if count != streams:
            raise OutputError(
                where, f"{count} streams from {start:g} to {end:g} s, {streams} were expected"
            )
        reached = end
    if reached < seconds - GAP_S:
        raise OutputError(where, f"the intervals end at {reached:g} s, {seconds:g} s were expected")


def measured(where: str, report: object) -> Iterator[tuple[float, float, int]]:
    """Yield start (s), end (s) and number of streams of every interval that is not omitted."""
    rows = report.get("intervals") if isinstance(report, dict) else None
    for row in rows if isinstance(rows, list) else []:
        streams = row.get("streams") if isinstance(row, dict) else None
        if not isinstance(streams, list) or not isinstance(row.get("sum"), dict):
            raise OutputError(where, "an interval without 'streams' and 'sum'")
        if not row["sum"].get("omitted"):
            start, end = (number(where, row["sum"], key) for key in ("start", "end"))
            yield start, end, len(streams)


OLD = "missing: iperf3 3.9 or newer is needed"


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the figures of every pair, one iteration each, and the sum of their rates."""
    found, total = [], 0.0
    pairs = read_pairs(folder, client, "iperf3")
    for iteration, pair in enumerate(pairs, 1):
        end = _end(pair, parameters)
        for metric, value, unit in _figures(pair.where, end, parameters):
            found.append(Result(metric, value, unit, iteration))
            total += value if metric.endswith("received_bits_per_s") else 0
        check_report(pair.where, pair.report, end, parameters)
        if parameters["protocol"] == "tcp" and parameters["direction"] != "reverse":
            found += _windows(pair, end, iteration)
    found.append(Result("total_received_bits_per_s", total, "bit/s", 1))
    return found


def _end(pair: Pair, parameters: Mapping[str, object]) -> Json:
    """Return the section `end` of a complete report of the requested test."""
    report = pair.report
    if not isinstance(report, dict):
        raise OutputError(pair.where, f"no report, but: {str(report)[:200]!r}")
    if report.get("error"):
        raise FailedError(f"{pair.where}: {report['error']}")
    start = _read_table(pair.where, _read_table(pair.where, report, "start"), "test_start")
    expected = {
        "protocol": str(parameters["protocol"]).upper(),
        "num_streams": parameters["streams"],
        "duration": parameters["seconds"],
        "reverse": int(parameters["direction"] == "reverse"),
    }
    for key, value in expected.items():
        if start.get(key) != value:
            raise OutputError(pair.where, f"{key} is {start.get(key)} instead of {value}")
    return _read_table(pair.where, report, "end")


def _read_table(where: str, table: Json, key: str) -> Json:
    found = table.get(key)
    if not isinstance(found, dict):
        raise OutputError(where, f"no '{key}'" + (f", {OLD}" if key.startswith("sum_") else ""))
    return found


def _figures(
    where: str, end: Json, parameters: Mapping[str, object]
) -> Iterator[tuple[str, float, str]]:
    sent, received = _read_table(where, end, "sum_sent"), _read_table(where, end, "sum_received")
    yield "received_bits_per_s", _rate(where, received, parameters), "bit/s"
    yield "sent_bits_per_s", _rate(where, sent, parameters), "bit/s"
    if parameters["direction"] == "both":
        back = _read_table(where, end, "sum_received_bidir_reverse")
        yield "reverse_received_bits_per_s", _rate(where, back, parameters), "bit/s"
    if parameters["protocol"] == "udp":
        lost, packets = (number(where, received, key) for key in ("lost_packets", "packets"))
        if not 0 < packets >= lost:
            raise OutputError(where, f"{lost:.0f} of {packets:.0f} datagrams lost cannot be")
        yield "jitter_s", number(where, received, "jitter_ms") / 1000, "s"
        yield "lost_share", lost / packets, "1"
    else:
        yield "retransmits", number(where, sent, "retransmits"), "segments"
    cpu = _read_table(where, end, "cpu_utilization_percent")
    yield "cpu_client", number(where, cpu, "host_total") / 100, "1"
    yield "cpu_server", number(where, cpu, "remote_total") / 100, "1"


def _rate(where: str, table: Json, parameters: Mapping[str, object]) -> float:
    """Return the rate in bit/s; raise if the transfer was too short or empty."""
    seconds = number(where, table, "seconds")
    if seconds < (1 - LATE) * requested_seconds(parameters):
        raise OutputError(where, f"{seconds} s instead of {parameters['seconds']} s were measured")
    rate = rate_of(where, table)
    if rate == 0:
        raise FailedError(f"{where}: nothing was transferred")
    return rate


def _windows(pair: Pair, end: Json, iteration: int) -> list[Result]:
    """Return congestion windows and round-trip time of the streams that the client sent."""
    where = pair.where
    rows = [row.get("sender", {}) for row in ends(where, end)]
    senders = [row for row in rows if row.get("sender")]
    if not senders:
        raise OutputError(where, "no stream that the client sent")
    largest = max(number(where, row, "max_snd_cwnd") for row in senders)
    rtt_us = sum(number(where, row, "mean_rtt") for row in senders) / len(senders)
    found = [
        Result("cwnd_max_bytes", largest, "bytes", iteration),
        Result("rtt_s", rtt_us / 1e6, "s", iteration),
    ]
    windows = [number(where, row, "snd_cwnd") for row in _seconds(pair.report)]
    if windows:
        mean = sum(windows) / len(windows)
        found.append(Result("cwnd_mean_bytes", mean, "bytes", iteration))
    return found


def _seconds(report: object) -> Iterator[Json]:
    """Yield each measured second of each stream that the client sent."""
    intervals = report.get("intervals") if isinstance(report, dict) else None
    for interval in intervals if isinstance(intervals, list) else []:
        for row in interval.get("streams", []):
            if "snd_cwnd" in row and not row.get("omitted"):
                yield row
