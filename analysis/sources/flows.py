"""Packets of a capture into flows: round-trip times, retransmissions and windows as tshark sees them.

Each TCP connection gives a row per direction. tshark's own fields
are used (tshark -G fields; wireshark-filter(4), tcp): tcp.analysis.ack_rtt stands in the packet that
acknowledges, so it is a figure of the other direction; tcp.window_size is scaled.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.base.errors import SteelyardError

TIME_LIMIT_S = 120.0  # a capture of 100 MB takes tshark about 20 s

FIELDS = (
    "tcp.stream",
    "frame.time_epoch",
    "ip.src",
    "ipv6.src",
    "tcp.srcport",
    "ip.dst",
    "ipv6.dst",
    "tcp.dstport",
    "tcp.len",
    "tcp.flags.syn",
    "tcp.flags.ack",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.ack_rtt",
    "tcp.window_size",
    "tcp.window_size_scalefactor",
)
# A capture that began after the handshake does not tell how windows are scaled.
SCALE_NOT_KNOWN = "-1"

TO_SERVER, TO_CLIENT = "to_server", "to_client"


class CaptureError(SteelyardError):
    """A capture that tshark could not read, in one sentence."""


@dataclass(slots=True)
class Flow:
    """One direction of a connection."""

    flow: int
    client: str
    server: str
    direction: str
    packets: int = 0
    bytes: int = 0
    retransmissions: int = 0
    rtts: array[float] = field(default_factory=lambda: array("d"))
    windows: array[float] = field(default_factory=lambda: array("d"))
    first_unix_s: float | None = None
    last_unix_s: float | None = None

    def row(self) -> tuple[object, ...]:
        """The columns of the table `flows` behind `node`; None: not seen."""
        rtts, windows = self.rtts, self.windows
        return (
            self.flow,
            self.client,
            self.server,
            self.direction,
            self.packets,
            self.bytes,
            self.retransmissions,
            *((min(rtts), statistics.fmean(rtts), statistics.median(rtts)) if rtts else [None] * 3),
            max(rtts, default=None),
            int(min(windows)) if windows else None,
            statistics.fmean(windows) if windows else None,
            int(max(windows)) if windows else None,
            self.first_unix_s,
            self.last_unix_s,
        )


def find_tshark() -> str | None:
    """Its path; None when it is not installed."""
    return shutil.which("tshark")


def read_capture(tshark: str, capture: Path, scratch: Path) -> tuple[list[Flow], str | None]:
    """The flows of a capture, and what tshark complained of; CaptureError when it gave none.

    No shell, fixed arguments, bounded time, none of the user's own settings of Wireshark.
    """
    argv = [tshark, "-n", "-Y", "tcp", "-o", "tcp.desegment_tcp_streams:FALSE", "-r", str(capture)]
    argv += ["-T", "fields", "-E", "separator=/t", "-E", "occurrence=l"]
    argv += [word for name in FIELDS for word in ("-e", name)]
    settings = scratch / "wireshark"
    settings.mkdir(exist_ok=True)
    table = scratch / "packets.tsv"
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "WIRESHARK_CONFIG_DIR": str(settings)}
    try:
        with table.open("wb") as out:
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
                timeout=TIME_LIMIT_S, env=environment, check=False,
            )  # fmt: skip
        with table.open(encoding="utf-8", errors="replace") as lines:
            flows = list(flows_of(lines))
    except subprocess.TimeoutExpired:
        raise CaptureError(f"tshark did not end within {TIME_LIMIT_S:.0f} s") from None
    except (OSError, ValueError) as error:
        raise CaptureError(f"tshark's answer could not be read: {error}") from None
    finally:
        table.unlink(missing_ok=True)
    problem = complaint(done.stderr) if done.returncode else None
    if not flows:
        raise CaptureError(problem or "it holds no TCP packet")
    return flows, problem


def complaint(stderr: bytes) -> str:
    """tshark's last line: those before may be about running as root."""
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else "tshark failed and did not say why"


def flows_of(lines: Iterable[str]) -> Iterator[Flow]:
    """Two flows per connection, in the order of tshark's streams; a direction without packets too."""
    connections: dict[int, dict[str, Flow]] = {}
    for line in lines:
        values = line.rstrip("\n").split("\t")
        if len(values) == len(FIELDS):
            add_packet(connections, dict(zip(FIELDS, values, strict=True)))
    for number in sorted(connections):
        yield from connections[number].values()


def add_packet(connections: dict[int, dict[str, Flow]], packet: dict[str, str]) -> None:
    """Count a packet in its own direction, the time it acknowledges in the other."""
    number = int(packet["tcp.stream"])
    source, target = ends(packet)
    if number not in connections:
        client, server = (source, target) if opens(packet) else (target, source)
        connections[number] = {
            way: Flow(number, client, server, way) for way in (TO_SERVER, TO_CLIENT)
        }
    both = connections[number]
    way, other = TO_SERVER, TO_CLIENT
    if source != both[TO_SERVER].client:
        way, other = other, way
    count(both[way], packet)
    if packet["tcp.analysis.ack_rtt"]:
        both[other].rtts.append(float(packet["tcp.analysis.ack_rtt"]))


def ends(packet: dict[str, str]) -> tuple[str, str]:
    """ADDRESS:PORT of sender and receiver, IPv6 in brackets."""
    found = []
    for side, port in (("src", "tcp.srcport"), ("dst", "tcp.dstport")):
        address = packet[f"ip.{side}"] or f"[{packet[f'ipv6.{side}']}]"
        found.append(f"{address}:{packet[port]}")
    return found[0], found[1]


def opens(packet: dict[str, str]) -> bool:
    """Whether the sender is the client: by SYN, else it has the higher port."""
    if is_set(packet["tcp.flags.syn"]):
        return not is_set(packet["tcp.flags.ack"])
    return int(packet["tcp.srcport"]) > int(packet["tcp.dstport"])


def is_set(flag: str) -> bool:
    """tshark 4.0 writes 1, later ones True."""
    return flag in ("1", "True")


def count(flow: Flow, packet: dict[str, str]) -> None:
    """One packet of a flow's own direction."""
    time = float(packet["frame.time_epoch"])
    flow.packets += 1
    flow.bytes += int(packet["tcp.len"] or 0)
    kinds = ("retransmission", "fast_retransmission", "spurious_retransmission")
    flow.retransmissions += any(packet[f"tcp.analysis.{kind}"] for kind in kinds)
    flow.first_unix_s = time if flow.first_unix_s is None else min(flow.first_unix_s, time)
    flow.last_unix_s = time if flow.last_unix_s is None else max(flow.last_unix_s, time)
    # A SYN announces an unscaled window, and has no factor.
    if packet["tcp.window_size_scalefactor"] not in ("", SCALE_NOT_KNOWN):
        flow.windows.append(float(packet["tcp.window_size"]))
