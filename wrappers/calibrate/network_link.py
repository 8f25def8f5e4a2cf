"""TCP over a link with network conditions: two network namespaces and a veth between them (root).

On a node's own uplink other packets would be in the figure; here there are none. The loads count
payload; the device counts headers, too."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import Any

from steelyard.analysis.sources.records import find_number
from steelyard.wrappers.calibrate import table, truth_comparison
from steelyard.wrappers.calibrate.known_loads import RESULT, KnownLoad
from steelyard.wrappers.calibrate.local_runs import Bench, Measurement, NotMeasuredError, Outcome
from steelyard.wrappers.calibrate.table import Cell, Limit, Trouble

NEAR, FAR, PORT = "10.213.7.1", "10.213.7.2", 17_217
BYTES, RATE_BIT_PER_S, DELAY_S = 4_000_000, 20_000_000, 0.02
# Ethernet 14, IP 20, TCP 20 and its time stamps 12; at most 1,448 bytes of payload each.
HEADERS_BYTES, SEGMENT_BYTES = 66, 1_448
# Neighbor discovery, IPv6 announcements, start and end of the connection.
BESIDE_BYTES = 4_000
METHOD = "run: wire"
LOAD = KnownLoad("TCP over a wire", (f"tcp={BYTES}:{FAR}:{PORT}",), (table.SENT, table.RECEIVED))
TIMEOUT_S = 20.0


def measure(bench: Bench) -> Outcome:
    """Measure the bytes of the only device in both directions, then a rate and a delay if the
    kernel has them."""
    if os.geteuid() != 0:
        raise NotMeasuredError("only root makes network namespaces")
    try:
        with make_link() as (near, far):
            inside = replace(bench, prefix=("ip", "netns", "exec", near))
            plain = run_load(inside, far)
            headers = plain.results[0].values["segments"] * HEADERS_BYTES + BESIDE_BYTES
            why = "headers: 66 bytes a segment, and what goes beside the connection"
            for quantity in LOAD.quantities:
                yield truth_comparison.record_cell(
                    METHOD, LOAD, quantity, plain.record, plain.results, Limit(0, headers, why)
                )
            rate = f"rate={RATE_BIT_PER_S // 10**6}mbit"
            yield measure_condition(inside, far, rate, rate_cell)
            delay = f"delay={DELAY_S * 1000:.0f}ms"
            yield measure_condition(inside, far, delay, delay_cell, f"--peer={FAR}")
    except (OSError, subprocess.SubprocessError) as error:
        raise NotMeasuredError(f"no network namespaces here: {error}") from error


@contextmanager
def make_link() -> Iterator[tuple[str, str]]:
    """Create two network namespaces that are connected only to each other; yield their names."""
    near, far = (f"sycal-{os.getpid()}-{end}" for end in ("a", "b"))
    try:
        for name in (near, far):
            run_ip("netns", "add", name)
        run_ip("link", "add", "wire0", "netns", near, "type", "veth", "peer", "name", "wire0",
           "netns", far)  # fmt: skip
        for name, address in ((near, NEAR), (far, FAR)):
            run_ip("-n", name, "address", "add", f"{address}/24", "dev", "wire0")
            run_ip("-n", name, "link", "set", "wire0", "up")
            run_ip("-n", name, "link", "set", "lo", "up")
        run_ip("-n", near, "route", "add", "default", "via", FAR)
        yield near, far
    finally:
        for name in (near, far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def run_ip(*arguments: str) -> None:
    """Run one command of iproute2."""
    subprocess.run(["ip", *arguments], capture_output=True, check=True, timeout=TIMEOUT_S)


def run_load(bench: Bench, far: str, *options: str) -> Measurement:
    """Run the load at the near end; the far end is not measured."""
    bench.folder.mkdir(parents=True, exist_ok=True)
    argv = [str(bench.program), RESULT, f"serve={BYTES}:{PORT}"]
    server = subprocess.Popen(["ip", "netns", "exec", far, *argv], cwd=bench.folder)
    try:
        return bench.measure(LOAD, *options)
    finally:
        server.kill()
        server.wait()


def measure_condition(
    bench: Bench, far: str, spec: str, judge: Any, *options: str
) -> Cell | Trouble:
    """Measure one condition, if this kernel has it."""
    method = f"{METHOD}: {spec}"
    try:
        plain, found = run_load(bench, far), run_load(bench, far, f"--netem={spec}", *options)
    except NotMeasuredError as error:
        return Trouble(method, str(error))
    cell: Cell = judge(method, plain, found)
    return cell


def added_amount(name: str, plain: Measurement, found: Measurement) -> float:
    """Return what the condition added to a figure of the load."""
    return found.results[0].values[name] - plain.results[0].values[name]


def rate_cell(method: str, plain: Measurement, found: Measurement) -> Cell:
    """Return a cell that compares the rate by the load's own clock with the applied rate in the
    record."""
    bits = 8 * (BYTES + ceil(BYTES / SEGMENT_BYTES) * HEADERS_BYTES)
    most = 0.04 * RATE_BIT_PER_S
    why = "the queue's burst goes at once, the time of the way back is taken off"
    return Cell(
        method, LOAD.name, "rate", "bit/s", table.RECORD,
        bits / added_amount("elapsed_s", plain, found), read_applied_rate(found.record),
        Limit(most, most, why), reason=table.reason_at(found.record, "network_conditions"),
    )  # fmt: skip


def read_applied_rate(record: Mapping[str, Any]) -> float | None:
    """Return the rate (bit/s) of a valid condition, as the kernel reported it; else None."""
    conditions = record.get("network_conditions")
    if not isinstance(conditions, Mapping) or not conditions.get("valid"):
        return None
    applied = str(conditions.get("applied"))
    number, unit, rest = applied.removeprefix("rate=").partition("mbit")
    return float(number) * 1e6 if unit and not rest else None


def delay_cell(method: str, plain: Measurement, found: Measurement) -> Cell:
    """Return a cell that compares the longer connection time of the load with the delay in the
    record."""
    conditions = found.record.get("network_conditions") or {}
    during = find_number(conditions, "rtt.during_start.median_s")
    before = find_number(conditions, "rtt.before.median_s")
    return Cell(
        method, LOAD.name, "delay", "s", table.RECORD,
        added_amount("connect_us", plain, found) / 1e6,
        None if during is None or before is None else during - before,
        Limit(0.001, 0.001, "the kernel's timer for queues, and waking up at both ends"),
        reason=table.reason_at(conditions, "rtt.during_start", "rtt.before"),
    )  # fmt: skip
