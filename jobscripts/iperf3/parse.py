"""Reads the reports of iperf3 --json in out.CLIENT.

iperf3 ends with 0 after a refused connection, so the key `error` decides. Versions before 3.9 do
not report how much UDP data arrived, or report only one of two directions; such reports are
rejected. The parameters in `start.test_start` are compared with the requested ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.iperf3 import report_checks
from steelyard.jobscripts.pairs import Pair, number, read_pairs
from steelyard.jobscripts.registry import Result

Json = dict[str, object]
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
        report_checks.check_report(pair.where, pair.report, end, parameters)
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
    if seconds < (1 - report_checks.LATE) * report_checks.requested_seconds(parameters):
        raise OutputError(where, f"{seconds} s instead of {parameters['seconds']} s were measured")
    rate = report_checks.rate(where, table)
    if rate == 0:
        raise FailedError(f"{where}: nothing was transferred")
    return rate


def _windows(pair: Pair, end: Json, iteration: int) -> list[Result]:
    """Return congestion windows and round-trip time of the streams that the client sent."""
    where = pair.where
    rows = [row.get("sender", {}) for row in report_checks.ends(where, end)]
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
