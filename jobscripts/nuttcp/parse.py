"""Reads the output of nuttcp -fparse for every pair in out.CLIENT: one line of key=value.

nuttcp ends with 0 if its server disappeared, and then prints 0 megabytes in 0 seconds. So time and
amount are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.pairs import Pair, number, read_pairs
from steelyard.jobscripts.registry import Result

LINE = re.compile(r"megabytes=[0-9.]+(?: [a-z_A-Z]+=[0-9.]+)+", re.ASCII)
LATE = 0.1  # how much earlier a transfer may end, as a share of the requested seconds


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the figures of every pair, one iteration each, and the sum of their rates."""
    found, total = [], 0.0
    for iteration, pair in enumerate(read_pairs(folder, client, "nuttcp"), 1):
        for metric, value, unit in _figures(pair, parameters):
            found.append(Result(metric, value, unit, iteration))
            total += value if metric == "received_bits_per_s" else 0
    found.append(Result("total_received_bits_per_s", total, "bit/s", 1))
    return found


def _figures(pair: Pair, parameters: Mapping[str, object]) -> Iterator[tuple[str, float, str]]:
    where, fields = pair.where, _fields(pair)
    rate_mbps = number(where, fields, "rate_Mbps")
    seconds, megabytes = number(where, fields, "real_seconds"), number(where, fields, "megabytes")
    if megabytes == 0 or rate_mbps == 0:
        raise FailedError(f"{where}: nothing was transferred")
    if seconds < (1 - LATE) * float(str(parameters["seconds"])):
        raise OutputError(where, f"{seconds} s instead of {parameters['seconds']} s were measured")
    # Megabytes are 2^20 bytes; the time has two decimals.
    if abs(megabytes * 8.388608 / seconds / rate_mbps - 1) > 0.01 + 0.01 / seconds:
        raise OutputError(where, "amount, time and rate do not go together")
    yield "received_bits_per_s", rate_mbps * 1e6, "bit/s"
    if ("pkt" in fields) != (parameters["protocol"] == "udp"):
        raise OutputError(where, f"not a report of {parameters['protocol']}")
    if parameters["protocol"] == "udp":
        lost, packets = number(where, fields, "drop"), number(where, fields, "pkt")
        if not 0 < packets >= lost:
            raise OutputError(where, f"{lost:.0f} of {packets:.0f} datagrams lost cannot be")
        yield "lost_share", lost / packets, "1"
    if "retrans" in fields:
        yield "retransmits", number(where, fields, "retrans"), "segments"
    if "rtt_ms" in fields:
        yield "rtt_s", number(where, fields, "rtt_ms") / 1000, "s"
    yield "cpu_sender", number(where, fields, "tx_cpu") / 100, "1"
    yield "cpu_receiver", number(where, fields, "rx_cpu") / 100, "1"


def _fields(pair: Pair) -> dict[str, float]:
    text = pair.report.strip() if isinstance(pair.report, str) else ""
    if not LINE.fullmatch(text):
        raise OutputError(pair.where, f"no line of nuttcp -fparse: {text[:200]!r}")
    try:
        return {key: float(value) for key, _, value in (w.partition("=") for w in text.split(" "))}
    except ValueError as error:
        raise OutputError(pair.where, str(error)) from error
