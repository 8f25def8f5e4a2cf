"""Part of `netem.py`: conditions as packets that leave a guest meet them.

A guest of a throwaway cluster (User Mode Linux, kernel with sch_netem) sends to the physical node,
which delays nothing. The receiver runs on the host and is fast.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.cluster.guest_control import Guest

RUN_DIR = "/run/sy-bench"
UDP_PORT, IPERF_PORT, TCP_PORT = 5391, 5392, 5393
FLOWS = 4  # a single one does not always fill a queue of 1 Gbit/s here
SEGMENT, FRAME, HEADERS = 1448, 1514, 66  # bytes: TCP payload, on the wire, Ethernet + IP + TCP
QUIET_MS = 0.05
TRIM = 0.05  # share of the round-trip times cut at each end: stalls of a machine with two cores

SEND = """
import socket, sys, time
number, gap = int(sys.argv[3]), float(sys.argv[4])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], int(sys.argv[2])))
begin = time.monotonic()
for i in range(number):
    s.send(i.to_bytes(4, "big") + bytes(60))
    if i % 32 == 31:
        time.sleep(max(0, begin + i * gap - time.monotonic()))
"""

RECEIVE = """
import json, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)  # SO_RCVBUFFORCE
s.bind((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
seen, copies, behind, highest = set(), 0, 0, -1
s.settimeout(60)
try:
    while True:
        i = int.from_bytes(s.recv(100)[:4], "big")
        s.settimeout(2)
        copies += i in seen
        behind += i < highest and i not in seen
        seen.add(i)
        highest = max(highest, i)
except TimeoutError:
    pass
print(json.dumps({"distinct": len(seen), "copies": copies, "behind": behind}))
"""

# struct tcp_info of linux/tcp.h: tcpi_total_retrans, tcpi_segs_out.
SEND_TCP = """
import json, socket, struct, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as cable:
    cable.sendall(bytes(int(sys.argv[3])))
    cable.shutdown(socket.SHUT_WR)
    cable.recv(1)
    info = cable.getsockopt(socket.IPPROTO_TCP, 11, 192)
print(json.dumps([struct.unpack_from("I", info, at)[0] for at in (100, 136)]))
"""

RECEIVE_TCP = """
import socket, sys
door = socket.create_server((sys.argv[1], int(sys.argv[2])))
print("ready", flush=True)
cable = door.accept()[0]
while cable.recv(1 << 20):
    pass
"""


@dataclass
class Pair:
    """The guest that sends, and the physical node that answers."""

    cluster: Cluster
    node: Path

    @property
    def guest(self) -> Guest:
        return self.cluster.find_guest("v1")

    @property
    def peer(self) -> str:
        assert self.cluster.state.network is not None
        return self.cluster.state.network.physical

    def there(self, *argv: str) -> list[str]:
        """Return the command line that runs a command in the physical node's network."""
        assert self.cluster.state.network is not None
        return ["nsenter", f"--net={self.cluster.state.network.namespace}", *argv]

    def run(self, *argv: str, timeout_s: float = 120) -> str:
        """Run a command in the guest; raise RuntimeError if it fails."""
        done = self.guest.run(argv, timeout_s=timeout_s)
        if done.returncode != 0:
            raise RuntimeError(f"{argv[0]} in the guest: {done.stderr.strip() or done.stdout}")
        return done.stdout

    def netem(self, verb: str, *words: str) -> str:
        job_options = (f"--run-dir={RUN_DIR}", "--node=g", "--job-id=b")
        return self.run(str(self.node), "netem", verb, *job_options, *words)

    @contextmanager
    def condition(self, spec: str, verified: bool = True) -> Iterator[dict[str, Any]]:
        """Apply a condition in the `with` statement; afterwards the document is complete.

        With `verified` it also contains the verification's echoes, which are packets, too.
        """
        document: dict[str, Any] = {}
        asked = [f"--peer={self.peer}"] if verified else []
        self.netem("apply", "--uid=0", "--no-policy", *asked, "--", f"{spec},to={self.peer}")
        try:
            yield document
        finally:
            self.netem("finish")
            document.update(json.loads(self.run("cat", f"{RUN_DIR}/netem/g.b.done.json")))

    def round_trips_ms(self, count: int) -> list[float]:
        """Return the round-trip times of echoes 5 ms apart, ascending."""
        text = self.run("ping", "-n", "-i0.005", f"-c{count}", self.peer)
        times = sorted(float(word) for word in re.findall(r"time=([\d.]+) ms", text))
        if len(times) < count * 0.9:
            raise RuntimeError(f"{len(times)} of {count} echoes came back: {text[-200:]}")
        return times


def trimmed_mean(ascending: list[float]) -> float:
    """Return the mean without the first and the last 5 %."""
    cut = int(len(ascending) * TRIM)
    return statistics.fmean(ascending[cut : len(ascending) - cut])


def is_quiet(ascending: list[float]) -> bool:
    """Whether nothing else delays packets: then the mean is close to the median."""
    return abs(trimmed_mean(ascending) - statistics.median(ascending)) < QUIET_MS


def delay(pair: Pair, asked_ms: int, count: int) -> dict[str, Any]:
    """Measure the addition to the mean round trip; on a busy machine, up to three times."""
    for _ in range(3):
        before = pair.round_trips_ms(count)
        with pair.condition(f"delay={asked_ms}ms") as document:
            during = pair.round_trips_ms(count)
        if is_quiet(before) and is_quiet(during):
            break
    return {
        "asked_ms": asked_ms,
        "added_ms": trimmed_mean(during) - trimmed_mean(before),
        "added_plain_ms": statistics.fmean(during) - statistics.fmean(before),
        "count": count,
        "verify_s": document["verify_s"],
        "valid": document["valid"],
        "reason": document["invalid_reason"],
    }


def wilson(hits: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95 % interval of a share: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209."""
    share, z2 = hits / of, z * z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = z / (1 + z2 / of) * math.sqrt(share * (1 - share) / of + z2 / (4 * of * of))
    return middle - half, middle + half


def flood(pair: Pair, count: int, gap_s: float = 1e-4) -> dict[str, int]:
    """Send small numbered UDP packets; return how many arrived, twice, and out of order."""
    argv = pair.there("python3", "-c", RECEIVE, pair.peer, str(UDP_PORT))
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as receiver:
        assert receiver.stdout is not None
        receiver.stdout.readline()
        pair.run("python3", "-c", SEND, pair.peer, str(UDP_PORT), str(count), str(gap_s))
        found: dict[str, int] = json.loads(receiver.stdout.readline())
    return found


def loss(pair: Pair, percent: float, count: int) -> dict[str, Any]:
    """Measure the loss as the receiver counts it, and as the qdisc does.

    One correct run in twenty is outside a 95 % interval; such a run is repeated once.
    """
    for _ in range(2):
        with pair.condition(f"loss={percent:g}%") as document:
            lost = count - flood(pair, count)["distinct"]
        low, high = wilson(lost, count)
        inside = low <= percent / 100 <= high
        if inside:
            break
    return {
        "asked": percent / 100,
        "lost": lost,
        "low": low,
        "high": high,
        "inside": inside,
        "count": count,
        "qdisc": document["loss"],
        "valid": document["valid"],
        "reason": document["invalid_reason"],
    }


def counters(pair: Pair) -> tuple[float, int, int]:
    """Return the time, and bytes and packets that left the guest, counted on the host."""
    begin = time.monotonic()
    text = subprocess.run(
        pair.there("cat", "/proc/net/dev"), capture_output=True, text=True, check=True
    ).stdout
    (line,) = (line for line in text.splitlines() if line.strip().startswith("v1:"))
    words = line.split()
    return (begin + time.monotonic()) / 2, int(words[1]), int(words[2])


def rate(pair: Pair, asked_mbit: int, seconds: float) -> dict[str, float]:
    """Return the first of up to three transfers that kept the queue filled, or the last one."""
    for _ in range(3):
        achieved_mbit = transfer(pair, asked_mbit, seconds)
        if abs(achieved_mbit / asked_mbit - 1) < 0.03:
            break
    return {"asked_mbit": asked_mbit, "achieved_mbit": achieved_mbit}


def transfer(pair: Pair, asked_mbit: int, seconds: float) -> float:
    """Return Mbit/s on the wire by the device's counters, in the middle of a bulk transfer.

    The device counts one header for several segments (segmentation offload). On the wire each
    segment has its own header, which netem's rate includes.
    """
    argv = pair.there("iperf3", "-s", "-1", "-p", str(IPERF_PORT))
    with (
        subprocess.Popen(argv, stdout=subprocess.DEVNULL),
        pair.condition(f"rate={asked_mbit}mbit"),
    ):
        client = ("iperf3", "-c", pair.peer, "-p", str(IPERF_PORT), "-t", str(seconds + 3))
        sender = threading.Thread(target=pair.guest.run, args=([*client, "-P", str(FLOWS)],))
        sender.start()
        time.sleep(2)
        begin = counters(pair)
        time.sleep(seconds)
        end = counters(pair)
        sender.join()
    payload = (end[1] - begin[1]) - HEADERS * (end[2] - begin[2])
    return payload * FRAME / SEGMENT * 8 / (end[0] - begin[0]) / 1e6


def seen(pair: Pair, count: int) -> dict[str, Any]:
    """Count duplicated, corrupted and reordered packets, of 10 % requested each."""
    with pair.condition("duplicate=10%"):
        copies = flood(pair, count)["copies"]
    with pair.condition("corrupt=10%"):
        spoilt = count - flood(pair, count)["distinct"]
    with pair.condition("delay=10ms,reorder=10%") as document:
        behind = flood(pair, count, gap_s=1e-3)["behind"]
    return {
        "count": count,
        "copies": copies,
        "spoilt": spoilt,
        "behind": behind,
        "sent_ahead": document["counters"]["requeues"],
    }


def stream(pair: Pair, spec: str, size: int) -> dict[str, Any]:
    """Send `size` bytes over TCP under a condition.

    Segments and retransmissions are those of the sender's socket, the others those of the qdisc.
    """
    argv = pair.there("python3", "-c", RECEIVE_TCP, pair.peer, str(TCP_PORT))
    with (
        subprocess.Popen(argv, stdout=subprocess.PIPE) as receiver,
        pair.condition(spec, verified=False) as document,
    ):
        assert receiver.stdout is not None
        receiver.stdout.readline()
        words = ("python3", "-c", SEND_TCP, pair.peer, str(TCP_PORT), str(size))
        resent, segments = json.loads(pair.run(*words))
    found = document["counters"]
    hits = {
        "loss": found["dropped_packets"],
        "duplicate": found["sent_packets"] - segments,
        "corrupt": resent,
        "reorder": found["requeues"],
    }[spec.split(",")[-1].split("=")[0]]
    low, high = wilson(hits, segments)
    return {"spec": spec, "segments": segments, "share": hits / segments, "low": low, "high": high}
