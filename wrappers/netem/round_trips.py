"""Round-trip times in what was recorded: captures of packets, samples of jobs."""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.sources import flows, thinned
from steelyard.wrappers.base.errors import MissingError, UsageError

CAPTURES = (".pcap", ".pcapng", ".cap")
RTT_COLUMN = "rtt_s"  # facts/quantities.def


@dataclass(frozen=True)
class RoundTrips:
    """In seconds, and of what they are."""

    seconds: list[float]
    what: str


def is_capture(text: str) -> bool:
    """By its name."""
    return Path(text).suffix in CAPTURES


def of_capture(path: Path, peer: str | None) -> RoundTrips:
    """TCP's, segment to acknowledgement, of the way that crosses the network; without any, those of
    ICMP echoes. UsageError where it has neither."""
    tshark = flows.find_tshark()
    if tshark is None:
        raise MissingError("tshark is missing, which reads captures: apt install tshark")
    if not path.is_file():
        raise UsageError(f"{path}: expected a capture of packets, found no file", str(path))
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found, _ = flows.read_capture(tshark, path, Path(scratch))
        except flows.CaptureError as error:
            found, problem = [], str(error)
        else:
            problem = "no acknowledgement of a segment that it holds"
        seconds = list(of_flows(found, peer))
        if seconds:
            return RoundTrips(seconds, f"TCP, {path.name}")
        echoes = list(of_echoes(tshark, path, Path(scratch), peer))
    if not echoes:
        whom = f" with {peer}" if peer else ""
        raise UsageError(f"{path}: no round-trip time{whom}: {problem}, no answered ICMP echo")
    return RoundTrips(echoes, f"ICMP echoes, {path.name}")


def of_flows(found: list[flows.Flow], peer: str | None) -> Iterator[float]:
    """Of each connection the slower way: the other is how soon the end that was captured answers."""
    connections: dict[int, list[flows.Flow]] = {}
    for flow in found:
        connections.setdefault(flow.flow, []).append(flow)
    for ways in connections.values():
        ends = {ways[0].client.rpartition(":")[0], ways[0].server.rpartition(":")[0]}
        if peer is None or {peer, f"[{peer}]"} & ends:
            measured = [way.rtts for way in ways if way.rtts]
            yield from max(measured, key=min, default=[])


def of_echoes(tshark: str, path: Path, scratch: Path, peer: str | None) -> Iterator[float]:
    """icmp.resptime, in ms, stands in the answer (wireshark-filter(4), icmp and icmpv6)."""
    fields = ("icmp.resptime", "icmpv6.resptime", "ip.src", "ipv6.src")
    argv = [tshark, "-n", "-r", str(path), "-Y", "icmp.resptime or icmpv6.resptime", "-T", "fields"]
    argv += [word for name in fields for word in ("-e", name)]
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=flows.TIME_LIMIT_S, check=False,
            env={"LC_ALL": "C.UTF-8", "WIRESHARK_CONFIG_DIR": str(scratch)},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise UsageError(f"{path}: tshark did not end in {flows.TIME_LIMIT_S:.0f} s") from None
    for line in done.stdout.splitlines():
        four, six, *sources = line.split("\t")
        if peer is None or peer in sources:
            yield float(four or six) / 1e3


def of_samples(path: Path) -> RoundTrips:
    """The job's own TCP, as the kernel smooths it (tcp_info's srtt): spread out less than packets
    are, which `what` says."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        seconds = [float(row[RTT_COLUMN]) for row in rows if row.get(RTT_COLUMN)]
    what = f"the kernel's smoothed times of TCP, {path.name}"
    return RoundTrips(seconds, ", ".join(filter(None, (what, thinned.told(path)))))
