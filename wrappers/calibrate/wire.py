"""TCP over a wire, and conditions on it: two network namespaces and a veth between them (root).

On a node's own uplink others' packets would be in the figure; here there are none. What the loads
move is payload; the device counts its headers, too.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import Any

from steelyard.wrappers.calibrate import local as runs
from steelyard.wrappers.calibrate import table, ways
from steelyard.wrappers.calibrate.loads import Load
from steelyard.wrappers.calibrate.local import Bench, Outcome, Weighing
from steelyard.wrappers.calibrate.table import Cell, Limit, Trouble

NEAR, FAR, PORT = "10.213.7.1", "10.213.7.2", 17_217
BYTES, RATE_BIT_PER_S, DELAY_S = 4_000_000, 20_000_000, 0.02
# Ethernet 14, IP 20, TCP 20 and its time stamps 12; 1,448 bytes of payload each at most.
HEADERS_BYTES, SEGMENT_BYTES = 66, 1_448
# Neighbours, IPv6's own announcements, the connection's beginning and end.
BESIDE_BYTES = 4_000
WAY = "run: wire"
TIMEOUT_S = 20.0


def every(bench: Bench) -> Outcome:
    """Both directions, then a rate and a delay."""
    if os.geteuid() != 0:
        yield Trouble(WAY, "only root makes network namespaces")
        return
    try:
        with wire() as (near, far):
            inside = replace(bench, prefix=("ip", "netns", "exec", near))
            yield from both_ways(inside, far)
            yield from condition(inside, far, f"rate={RATE_BIT_PER_S // 10**6}mbit", rate_cell)
            yield from condition(
                inside, far, f"delay={DELAY_S * 1000:.0f}ms", delay_cell, f"--peer={FAR}"
            )
    except (OSError, subprocess.SubprocessError) as error:
        yield Trouble(WAY, f"no network namespaces here: {error}")


@contextmanager
def wire() -> Iterator[tuple[str, str]]:
    """The names of two namespaces that see each other, and nobody else."""
    near, far = (f"sycal-{os.getpid()}-{end}" for end in ("a", "b"))
    try:
        for name in (near, far):
            ip("netns", "add", name)
        ip("link", "add", "wire0", "netns", near, "type", "veth", "peer", "name", "wire0",
           "netns", far)  # fmt: skip
        for name, address in ((near, NEAR), (far, FAR)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "wire0")
            ip("-n", name, "link", "set", "wire0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", near, "route", "add", "default", "via", FAR)
        yield near, far
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def ip(*words: str) -> None:
    """One command of iproute2."""
    subprocess.run(["ip", *words], capture_output=True, check=True, timeout=TIMEOUT_S)


def weigh(bench: Bench, far: str, *options: str) -> Weighing | Trouble:
    """The load at this end; the other end is no part of what is weighed."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    argv = [str(bench.program), ways.RESULT, f"serve={BYTES}:{PORT}"]
    server = subprocess.Popen(["ip", "netns", "exec", far, *argv], cwd=bench.folder)
    try:
        load = Load("TCP over a wire", (f"tcp={BYTES}:{FAR}:{PORT}",))
        return bench.weigh(load, *options)
    finally:
        server.kill()
        server.wait()


def both_ways(bench: Bench, far: str) -> Outcome:
    """Bytes of the only device."""
    found = weigh(bench, far)
    if isinstance(found, Trouble):
        yield Trouble(WAY, found.why, found.broken)
        return
    headers = found.results[0].values["segments"] * HEADERS_BYTES + BESIDE_BYTES
    limit = Limit(0, headers, "headers: 66 bytes a segment, and what goes beside the connection")
    load = Load("TCP over a wire", ())
    for quantity in (table.SENT, table.RECEIVED):
        yield runs.cell(WAY, load, quantity, found, limit)


def condition(bench: Bench, far: str, spec: str, judge: Any, *options: str) -> Outcome:
    """One condition, where this kernel has it."""
    plain = weigh(bench, far)
    found = weigh(bench, far, f"--netem={spec}", *options)
    for one in (plain, found):
        if isinstance(one, Trouble):
            yield Trouble(f"{WAY}: {spec}", one.why)
            return
    assert isinstance(plain, Weighing)
    assert isinstance(found, Weighing)
    yield judge(f"{WAY}: {spec}", plain, found)


def rate_cell(way: str, plain: Weighing, found: Weighing) -> Cell:
    """What came through, by the load's own clock; beside what the record says was in force."""
    took = found.results[0].values["elapsed_s"] - plain.results[0].values["elapsed_s"]
    bits = 8 * (BYTES + ceil(BYTES / SEGMENT_BYTES) * HEADERS_BYTES)
    applied = applied_rate(found.record)
    return Cell(
        way, "TCP over a wire", "rate", "bit/s", table.RECORD, bits / took, applied,
        Limit(0.04 * RATE_BIT_PER_S, 0.04 * RATE_BIT_PER_S,
              "the queue's burst goes at once, the time of the way back is taken off"),
        reason=table.reason_at(found.record, "network_conditions"),
    )  # fmt: skip


def applied_rate(record: Mapping[str, Any]) -> float | None:
    """Of a valid condition, as the kernel reported it back."""
    held = record.get("network_conditions")
    if not isinstance(held, Mapping) or not held.get("valid"):
        return None
    applied = str(held.get("applied"))
    number, unit, rest = applied.removeprefix("rate=").partition("mbit")
    return float(number) * 1e6 if unit and not rest else None


def delay_cell(way: str, plain: Weighing, found: Weighing) -> Cell:
    """What a connection took longer, by the load; beside what the record has measured."""
    took = found.results[0].values["connect_us"] - plain.results[0].values["connect_us"]
    held = found.record.get("network_conditions") or {}
    during = table.number_at(held, "rtt.during_start.median_s")
    before = table.number_at(held, "rtt.before.median_s")
    return Cell(
        way, "TCP over a wire", "delay", "s", table.RECORD, took / 1e6,
        None if during is None or before is None else during - before,
        Limit(0.001, 0.001, "the kernel's timer for queues, and waking up at both ends"),
        reason=table.reason_at(held, "rtt.during_start", "rtt.before"),
    )  # fmt: skip
