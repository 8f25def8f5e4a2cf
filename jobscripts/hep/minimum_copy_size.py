"""Computes whether a copy is long enough to measure throughput, from its round trips."""

from __future__ import annotations

import math
import socket
import time
import urllib.parse

PORT = 1094  # XRootD's default
TRIES, PATIENCE_S = 5, 10.0
# Measured for xrdcp (XRootD 5.5.3) of a small file through a proxy with delay: 4.8 round trips of
# XRootD, and one of TCP's handshake.
TRIPS = 6
FIRST_WINDOW = 10 * 1448  # bytes, RFC 6928; each round trip of slow start doubles it (RFC 5681)
MOST_SHARE = 0.1  # largest share of the time that round trips may take


def address_of(url: str) -> tuple[str, int]:
    """Return host and port of root://[USER@]HOST[:PORT]//PATH."""
    parts = urllib.parse.urlsplit(url)
    return parts.hostname or "", parts.port or PORT


def round_trip_s(host: str, port: int) -> float | None:
    """Return the shortest of some TCP handshakes in s; None if there is no answer."""
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
    """Return the round trips of a copy of `size` bytes: requests of xrdcp, and slow start."""
    return TRIPS + math.log2(1 + size / FIRST_WINDOW)


def bytes_needed(size: float, seconds: float, rtt_s: float) -> float:
    """Return how many bytes must be copied for round trips to take MOST_SHARE of the time at most.

    The throughput is computed from this copy's time without its round trips. If these take nearly
    all of the time, the result is a guess, and many times `size`.
    """
    waiting = trips(size) * rtt_s
    rate = size / max(seconds - waiting, MOST_SHARE * seconds)
    return rate * waiting * (1 / MOST_SHARE - 1)
