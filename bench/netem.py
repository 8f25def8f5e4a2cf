"""Network conditions: how exact they are, what applying them costs, and whether they are undone.

Delay, loss and rate, and the observed duplication, corruption and reordering are measured on
packets that leave a guest of a throwaway cluster (User Mode Linux, with sch_netem) for the physical
node. Cost: apply and finish, without the verification's own traffic, on this machine (a rate, on a
veth pair) and in the guest (a delay), where starting a program takes forty times as long. The peer
is tcconfig of PyPI, in turn with it, where it runs. Kills: at random moments of apply and finish.
Needs root, iperf3 and the requirements of virtual nodes. Budget (DESIGN): 20 ms to apply and undo.

Last line: JSON with delay_error_ms_max (of means without the slowest and the fastest 5 %; plain
means are in the table), rate_error_max (a fraction), loss_inside_interval, tcp_loss (of TCP's
segments: 1 % is requested; of tcp_duplicate, tcp_corrupt, tcp_reorder: 5, 1 and 5 %), apply_ms and
apply_cpu_ms (this machine; medians), undo_failures, undo_tries (both machines), and more.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import netem_accuracy
import netem_apply_undo

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

BUDGET_MS = 20.0
PEER = Path(__file__).resolve().parents[1] / "build" / "venv-tcconfig"
DELAYS_MS = (1, 10, 25, 50, 75, 100)
LOSSES = (0.1, 1.0, 5.0)  # percent
RATES_MBIT = (10, 100, 1000)
STREAMS = ("loss=1%", "duplicate=5%", "corrupt=1%", "delay=5ms,reorder=5%")  # over TCP


class Extent:
    """The extent of the measurement: figures to publish, or a quick test."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.delays = DELAYS_MS[1:2] if quick else DELAYS_MS
        self.losses = LOSSES[2:] if quick else LOSSES
        self.rates = RATES_MBIT[:1] if quick else RATES_MBIT
        self.echoes = 50 if quick else 400
        self.packets = 1000 if quick else 20000
        self.streams = STREAMS[:1] if quick else STREAMS
        self.stream_bytes = 1_000_000 if quick else 30_000_000
        self.seconds = 1.0 if quick else 4.0
        self.repeats = 2 if quick else 30
        self.kills = 4 if quick else 100
        self.guest_repeats = 1 if quick else 3
        self.guest_kills = 1 if quick else 10


def install_peer(quick: bool) -> Path | None:
    """Install tcconfig in its own virtual environment; None if PyPI is unreachable."""
    if quick:
        return None
    if (PEER / "bin" / "tcset").exists():
        return PEER / "bin"
    venv.create(PEER, with_pip=True)
    done = subprocess.run([PEER / "bin" / "pip", "-q", "install", "tcconfig"], check=False)
    return PEER / "bin" if done.returncode == 0 else None


def table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print one table of the report."""
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    for row in (head, *rows):
        print("  " + "  ".join(f"{word:>{width}}" for word, width in zip(row, widths, strict=True)))


def bench_delay(pair: netem_accuracy.Pair, extent: Extent) -> dict[str, Any]:
    """Measure the delay added to the mean round trip, and compare it with the requested one."""
    found = [netem_accuracy.delay(pair, ms, extent.echoes) for ms in extent.delays]
    table(
        f"delay (egress), n = {extent.echoes} echoes before and during",
        ("asked", "added, mean", "error", "error, plain mean", "verification", "valid"),
        [
            (
                f"{f['asked_ms']} ms",
                f"{f['added_ms']:.3f} ms",
                f"{f['added_ms'] - f['asked_ms']:+.3f} ms",
                f"{f['added_plain_ms'] - f['asked_ms']:+.3f} ms",
                f"{f['verify_s']:.2f} s",
                "yes" if f["valid"] else f["reason"],
            )
            for f in found
        ],
    )
    return {
        "delay_error_ms_max": max(abs(f["added_ms"] - f["asked_ms"]) for f in found),
        "delay_error_plain_ms_max": max(abs(f["added_plain_ms"] - f["asked_ms"]) for f in found),
        "verify_s_max": max(f["verify_s"] for f in found),
    }


def bench_loss(pair: netem_accuracy.Pair, extent: Extent) -> dict[str, Any]:
    """Measure the loss, as the receiver and the qdisc count it."""
    found = [netem_accuracy.loss(pair, percent, extent.packets) for percent in extent.losses]
    table(
        f"loss, {extent.packets} UDP packets; 95 % intervals (Wilson)",
        ("asked", "lost, receiver", "interval", "lost, qdisc", "interval", "inside", "valid"),
        [
            (
                f"{f['asked']:.2%}",
                f"{f['lost'] / f['count']:.3%}",
                f"{f['low']:.3%} to {f['high']:.3%}",
                f"{f['qdisc']['achieved']:.3%}",
                f"{f['qdisc']['low']:.3%} to {f['qdisc']['high']:.3%}",
                "yes" if f["inside"] else "NO",
                "yes" if f["valid"] else f["reason"],
            )
            for f in found
        ],
    )
    return {"loss_inside_interval": all(f["inside"] for f in found)}


def bench_rate(pair: netem_accuracy.Pair, extent: Extent) -> dict[str, Any]:
    """Measure bytes per second on the wire."""
    found = [netem_accuracy.rate(pair, mbit, extent.seconds) for mbit in extent.rates]
    errors = [f["achieved_mbit"] / f["asked_mbit"] - 1 for f in found]
    table(
        f"rate, {netem_accuracy.FLOWS} TCP connections, {extent.seconds:g} s of a transfer",
        ("asked", "on the wire", "error"),
        [
            (f"{f['asked_mbit']:g} Mbit/s", f"{f['achieved_mbit']:.2f} Mbit/s", f"{error:+.2%}")
            for f, error in zip(found, errors, strict=True)
        ],
    )
    return {"rate_error_max": max(abs(error) for error in errors)}


def bench_seen(pair: netem_accuracy.Pair, extent: Extent) -> dict[str, Any]:
    """Measure duplication, corruption, reordering."""
    found = netem_accuracy.seen(pair, min(extent.packets, 2000))
    count = found["count"]
    table(
        f"10 % asked of each, {count} UDP packets",
        ("duplicate: came twice", "corrupt: thrown away", "reorder: sent ahead", "overtaken"),
        [
            tuple(
                f"{found[key] / count:.1%}" for key in ("copies", "spoilt", "sent_ahead", "behind")
            )
        ],
    )
    return {f"seen_{key}": found[key] for key in ("copies", "spoilt", "sent_ahead")}


def bench_streams(pair: netem_accuracy.Pair, extent: Extent) -> dict[str, Any]:
    """Measure the same on TCP's segments."""
    found = [netem_accuracy.stream(pair, spec, extent.stream_bytes) for spec in extent.streams]
    table(
        f"of the segments of {extent.stream_bytes / 1e6:g} MB over TCP; 95 % intervals (Wilson)",
        ("asked", "segments", "lost, twice, sent again, ahead", "interval"),
        [
            (
                f["spec"],
                str(f["segments"]),
                f"{f['share']:.3%}",
                f"{f['low']:.3%} to {f['high']:.3%}",
            )
            for f in found
        ],
    )
    return {f"tcp_{f['spec'].split(',')[-1].split('=')[0]}": f["share"] for f in found}


def milliseconds(pair: tuple[float | None, float | None], missing: str) -> tuple[str, str]:
    """Format wall and CPU time for a table."""
    if pair[0] is None or pair[1] is None:
        return f"— ({missing[:70]})", "—"
    return f"{pair[0]:.1f}", f"{pair[1]:.1f}"


def bench_cost(pair: netem_accuracy.Pair, extent: Extent, peer: Path | None) -> dict[str, Any]:
    """Measure apply and finish against tcset and tcdel; test kills."""
    node, programs = str(pair.node), str(peer or "")
    run_dir = f"/dev/shm/sy-bench-{os.getpid()}"
    host = netem_apply_undo.on_this_machine(
        netem_apply_undo.Bench(
            node, run_dir, "v0", "rate=10mbit,dev=v0", ["--rate", "10Mbps"], programs,
            extent.repeats, extent.kills,
        )
    )  # fmt: skip
    shutil.rmtree(run_dir, ignore_errors=True)
    tcset = ["--delay", "10ms", "--rate", "10Mbps", "--network", pair.peer]
    there = netem_apply_undo.Bench(
        node, "/run/sy-cost", "vec0", f"delay=10ms,rate=10mbit,to={pair.peer}",
        tcset, programs, extent.guest_repeats, extent.guest_kills,
    )  # fmt: skip
    guest = json.loads(pair.run("python3", *there.command_line(), timeout_s=300))
    if host["missing"]:
        raise RuntimeError(f"a rate cannot be put in place here: {host['missing']}")
    table(
        f"apply and undo, ms, medians of {extent.repeats} (guest: {extent.guest_repeats})",
        ("", "wall", "CPU"),
        [
            ("this machine: apply + finish", *milliseconds(host["ours"], "")),
            ("this machine: tcset + tcdel", *milliseconds(host["peer"], host["peer_missing"])),
            ("guest: apply + finish", *milliseconds(guest["ours"], guest["missing"])),
            ("guest: tcset + tcdel", *milliseconds(guest["peer"], guest["peer_missing"])),
        ],
    )
    print(f"  budget: {BUDGET_MS:g} ms on this machine")
    table(
        "killed at a random moment of apply or finish, then reaped",
        ("", "tries", "not as before"),
        [
            ("this machine", str(host["tries"]), str(host["failures"])),
            ("guest", str(guest["tries"]), str(guest["failures"])),
        ],
    )
    return {
        "apply_ms": host["ours"][0],
        "apply_cpu_ms": host["ours"][1],
        "tcconfig_ms": host["peer"][0],
        "guest_apply_ms": guest["ours"][0],
        "guest_tcconfig_ms": guest["peer"][0],
        "undo_failures": host["failures"] + guest["failures"],
        "undo_tries": host["tries"] + guest["tries"],
    }


def measure(folder: Path, extent: Extent) -> dict[str, Any]:
    """Measure everything in a temporary cluster."""
    config = ClusterConfig(dir=folder / "c", physical_nodes=1, virtual_nodes=0, guests=1)
    peer = install_peer(extent.quick)
    with cluster.start_cluster(config) as running:
        pair = netem_accuracy.Pair(running, find_node_program())
        print(f"{datetime.datetime.now(tz=datetime.UTC).date()}, {platform.machine()}, {os.cpu_count()} cores, "
              f"kernel {platform.release()}; guest: {pair.run('uname', '-r').strip()}")  # fmt: skip
        figures = bench_delay(pair, extent)
        for part in (bench_loss, bench_streams, bench_rate, bench_seen):
            figures.update(part(pair, extent))
        figures.update(bench_cost(pair, extent, peer))
    return figures


def main() -> int:
    """Measure and print; if something is missing, print one line and return 3."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="one of each: does it all run?")
    extent = Extent(parser.parse_args().quick)
    if os.geteuid() != 0 or not shutil.which("iperf3"):
        print("bench netem: it needs root, and iperf3 (Debian: iperf3)", file=sys.stderr)
        return 3
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            figures = measure(Path(folder), extent)
    except (SteelyardError, RuntimeError) as error:
        print(f"bench netem: {error}", file=sys.stderr)
        return 3
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
