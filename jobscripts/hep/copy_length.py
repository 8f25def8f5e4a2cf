"""Whether a copy is long enough to measure throughput: its round trips beside its time."""

from __future__ import annotations

import math
import socket
import time
import urllib.parse

PORT = 1094  # XRootD's own
TRIES, PATIENCE_S = 5, 10.0
# xrdcp of a small file through a proxy that delays: 4.8 round trips of XRootD (XRootD 5.5.3), and
# one of TCP's handshake.
TRIPS = 6
FIRST_WINDOW = 10 * 1448  # bytes, RFC 6928; doubled by every round trip of slow start (RFC 5681)
MOST_SHARE = 0.1  # of the time that may be round trips


def address_of(url: str) -> tuple[str, int]:
    """Host and port of root://[USER@]HOST[:PORT]//PATH."""
    parts = urllib.parse.urlsplit(url)
    return parts.hostname or "", parts.port or PORT


def round_trip_s(host: str, port: int) -> float | None:
    """The least of some TCP handshakes; None where nobody answers."""
    found = []
    for _ in range(TRIES):
        begin = time.perf_counter()
        try:
            socket.create_connection((host, port), PATIENCE_S).close()
        except OSError:
            return None
        found.append(time.perf_counter() - begin)
    return min(found)


def trips(size: float) -> float:
    """Round trips of a copy of so many bytes: what xrdcp asks for, and slow start."""
    return TRIPS + math.log2(1 + size / FIRST_WINDOW)


def bytes_needed(size: float, seconds: float, rtt_s: float) -> float:
    """How much must be copied for round trips to be at most MOST_SHARE of the time.

    The throughput is what is left when the round trips are taken off this copy's time; where
    hardly anything is left it is a guess, and the answer many times `size`.
    """
    waiting = trips(size) * rtt_s
    rate = size / max(seconds - waiting, MOST_SHARE * seconds)
    return rate * waiting * (1 / MOST_SHARE - 1)
