"""The job's own TCP connections: real ones, between two network namespaces made for the test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
]

SERVER = """
import selectors, socket
server = socket.create_server(("10.9.7.2", 5000), backlog=200)
waiting = selectors.DefaultSelector()
waiting.register(server, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in waiting.select():
        if key.fileobj is server:
            waiting.register(server.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(65536):
            waiting.unregister(key.fileobj)
            key.fileobj.close()
"""

# So many connections, each used ten times a second; or as much data as the line takes.
CLIENT = """
import os, socket, sys, time
os.setuid({uid})
ends = [socket.create_connection(("{to}", 5000)) for _ in range({connections})]
print("connected", flush=True)
stop = time.monotonic() + {seconds}
while time.monotonic() < stop:
    for end in ends:
        end.sendall(bytes({size}))
    time.sleep({pause})
"""


def client(
    seconds: float, *, connections: int = 1, bulk: bool = False, uid: int = 0, to: str = "10.9.7.2"
) -> list[str]:
    code = CLIENT.format(
        seconds=seconds, connections=connections, uid=uid, to=to,
        size=4000 if bulk else 100, pause=0 if bulk else 0.1,
    )  # fmt: skip
    return [sys.executable, "-c", code]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=90)


def start(command: list[str], says: bytes) -> subprocess.Popen[bytes]:
    """Start a program and wait for its only line."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == says
    return process


@dataclass
class Net:
    """A namespace for the job, joined to one with a server that swallows what it is sent."""

    job: str
    far: str

    @property
    def prefix(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/run/netns/{self.job}")

    def limit(self, rate: str, queue: str) -> None:
        """A bottleneck: what waits for it raises the round-trip time, what overflows is lost."""
        subprocess.run(
            ["tc", "-n", self.job, "qdisc", "replace", "dev", "sy-t0", "root", "tbf",
             "rate", rate, "burst", "5kb", "limit", queue],
            check=True, timeout=90,
        )  # fmt: skip

    def run(self, command: list[str]) -> subprocess.Popen[bytes]:
        return start([*self.prefix, *command], b"connected\n")


@pytest.fixture
def net() -> Iterator[Net]:
    net = Net(f"sy-sampler-{os.getpid()}-a", f"sy-sampler-{os.getpid()}-b")
    server = None
    try:
        ip("netns", "add", net.job)
        ip("netns", "add", net.far)
        ip("link", "add", "sy-t0", "netns", net.job, "type", "veth",
           "peer", "name", "sy-t1", "netns", net.far)  # fmt: skip
        for name, device, address in (
            (net.job, "sy-t0", "10.9.7.1/24"),
            (net.far, "sy-t1", "10.9.7.2/24"),
        ):
            ip("-n", name, "addr", "add", address, "dev", device)
            ip("-n", name, "link", "set", device, "up")
            ip("-n", name, "link", "set", "lo", "up")
        server = start(
            ["nsenter", f"--net=/run/netns/{net.far}", sys.executable, "-c", SERVER], b"ready\n"
        )
        yield net
    finally:
        if server:
            server.kill()
            server.wait()
        for name in (net.job, net.far):
            subprocess.run(["ip", "netns", "del", name], check=False, timeout=90)


def test_a_full_queue_shows_in_the_round_trip_time(sampler: Any, net: Net) -> None:
    net.limit("4mbit", "200kb")
    done, measured = sampler.run(
        client(3.2, bulk=True), "--rate", "10", prefix=net.prefix, capture_output=True
    )
    assert done.returncode == 0
    tcp = measured.record["tcp"]
    assert (tcp["source"], tcp["connections"]) == ("inet_diag", 1)
    # 20 kB waiting at 4 Mbit/s are 40 ms, 200 kB 400 ms; the line itself takes some µs.
    assert 0.002 < tcp["rtt_median_s"] < 1
    assert tcp["rtt_floor_s"] < 0.002
    assert tcp["rtt_min_s"] <= tcp["rtt_median_s"] <= tcp["rtt_max_s"]
    assert tcp["rtt_min_s"] <= tcp["rtt_mean_s"] <= tcp["rtt_max_s"]
    assert tcp["rtt_sd_s"] > 0
    column = [value for value in measured.column("rtt_s") if value is not None]
    seconds = measured.record["elapsed_s"]  # once a second, not with every sample
    assert 2 <= len(column) == tcp["rtt_readings"] <= seconds + 2
    assert max(column) == pytest.approx(tcp["rtt_max_s"])
    assert sum(column) / len(column) == pytest.approx(tcp["rtt_mean_s"], abs=1e-6)


def test_retransmissions_are_counted_where_there_are_some(sampler: Any, net: Net) -> None:
    _, quiet = sampler.run(client(2.2), prefix=net.prefix, capture_output=True)
    assert quiet.record["tcp"]["job_retransmitted_segments"] == 0
    net.limit("1mbit", "6kb")  # four packets have room: the rest is lost
    _, lossy = sampler.run(client(2.2, bulk=True), prefix=net.prefix, capture_output=True)
    tcp = lossy.record["tcp"]
    assert tcp["job_retransmitted_segments"] > 0
    assert tcp["job_retransmitted_segments"] <= tcp["retransmitted_segments"]  # the node's


def test_windows_are_those_of_the_connection(sampler: Any, net: Net) -> None:
    """An idle connection keeps its windows; the client reads them by getsockopt, too."""
    code = client(0)[2] + (
        "import struct\n"
        "ends[0].sendall(bytes(100))\n"
        "time.sleep(3.3)\n"
        "info = ends[0].getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)\n"
        "print(*struct.unpack_from('I', info, 80), *struct.unpack_from('I', info, 96))\n"
    )
    done, measured = sampler.run(
        [sys.executable, "-c", code], "--rate", "5", prefix=net.prefix, capture_output=True
    )
    cwnd, space = map(int, done.stdout.split()[1:])
    tcp = measured.record["tcp"]
    assert cwnd >= 10 and space > 1000
    assert (tcp["snd_cwnd_median_segments"], tcp["snd_cwnd_max_segments"]) == (cwnd, cwnd)
    assert tcp["rcv_space_max_bytes"] == space
    assert tcp["rcv_space_median_bytes"] == pytest.approx(space, rel=0.008)


def test_connections_of_others_and_within_the_node_are_left_out(sampler: Any, net: Net) -> None:
    other = net.run(client(30))
    inside = start(
        [*net.prefix, sys.executable, "-c", SERVER.replace("10.9.7.2", "0.0.0.0")], b"ready\n"
    )
    try:
        for address in ("127.0.0.1", "10.9.7.1"):
            done, measured = sampler.run(
                client(1.3, to=address), prefix=net.prefix, capture_output=True
            )
            assert done.returncode == 0
            record = measured.record
            assert record["tcp"]["source"] == "inet_diag"
            assert (record["tcp"]["connections"], record["tcp"]["rtt_readings"]) == (0, 0)
            for name in ("rtt_median_s", "rtt_floor_s", "job_retransmitted_segments"):
                assert record["tcp"][name] is None
                assert "to another node" in record["missing"][f"tcp.{name}"]
            assert set(measured.column("rtt_s")) == {None}
    finally:
        for process in (other, inside):
            process.kill()
            process.wait()


def test_many_connections_of_a_process_named_later(sampler: Any, net: Net, waiting: Any) -> None:
    attached = sampler.attach("--rate", "5", prefix=net.prefix)
    root = subprocess.Popen(
        [*net.prefix, sys.executable, "-c",
         f"import subprocess; subprocess.run({client(300, connections=100)!r})"],
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    with root:
        assert root.stdout is not None and root.stdout.readline() == b"connected\n"
        attached.send(f"root {root.pid}")
        waiting("readings of two seconds", lambda: count_values(attached.column("rtt_s")) >= 2)
        os.killpg(root.pid, signal.SIGKILL)
    tcp = attached.end()["tcp"]
    assert tcp["connections"] == 100
    assert tcp["rtt_readings"] >= 200
    assert tcp["rtt_median_s"] < 0.05


def count_values(column: list[float | None]) -> int:
    return sum(value is not None for value in column)


def test_an_idle_connection_counts_once(sampler: Any, net: Net) -> None:
    code = client(0)[2] + "time.sleep(3.3)\n"
    _, measured = sampler.run(
        [sys.executable, "-c", code], "--rate", "5", prefix=net.prefix, capture_output=True
    )
    tcp = measured.record["tcp"]
    assert (tcp["connections"], tcp["rtt_readings"], tcp["rtt_sd_s"]) == (1, 1, None)
    assert "one reading" in measured.record["missing"]["tcp.rtt_sd_s"]


def test_only_connections_of_the_jobs_user(sampler: Any, net: Net, waiting: Any) -> None:
    attached = sampler.attach("--rate", "5", "--owner", "12345", prefix=net.prefix)
    attached.send(f"root {os.getpid()}")
    others = net.run(client(60, uid=12346))
    job = net.run(client(60, uid=12345))
    waiting("a round-trip time", lambda: any(attached.column("rtt_s")))
    assert attached.end()["tcp"]["connections"] == 1
    for process in (others, job):
        process.kill()
        process.wait()


@pytest.mark.parametrize("inner", ["", "/step/task"])
def test_a_cgroup_of_version_2_tells_whose_it_is(
    sampler: Any, net: Net, waiting: Any, inner: str
) -> None:
    mount = next(
        (path for path in map(Path, ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))
         if (path / "cgroup.procs").exists()), None,
    )  # fmt: skip
    if mount is None:
        pytest.skip("no cgroup version 2 is mounted")
    group = mount / f"steelyard-test-{os.getpid()}"
    (mount / f"{group}{inner}").mkdir(parents=True)
    join = f"open('{group}{inner}/cgroup.procs', 'w').write(str(os.getpid()))\n"
    command = client(60)
    command[2] = "import os\n" + join + command[2]
    try:
        attached = sampler.attach("--rate", "5", prefix=net.prefix)
        attached.send(f"cgroup /{group.name}")
        other, job = net.run(client(60)), net.run(command)
        waiting("a round-trip time", lambda: any(attached.column("rtt_s")))
        for process in (other, job):
            process.kill()
            process.wait()
        assert attached.end()["tcp"]["connections"] == 1
    finally:
        for folder in (*sorted(group.rglob("*/"), reverse=True), group):
            folder.rmdir()


def test_what_was_read_survives_a_killed_child(sampler: Any, net: Net, waiting: Any) -> None:
    attached = sampler.attach("--rate", "5", prefix=net.prefix)
    attached.send(f"root {os.getpid()}")
    job = net.run(client(20))
    waiting("a round-trip time", lambda: any(attached.column("rtt_s")))
    os.kill(attached.child_pid, 9)
    record = attached.ended()
    job.kill()
    job.wait()
    assert record["complete"] is False
    assert record["tcp"]["connections"] == 1
    assert record["tcp"]["rtt_median_s"] > 0


def test_without_processes_there_is_a_reason(sampler: Any) -> None:
    record = sampler.attach().end()
    assert record["tcp"]["source"] is None
    assert record["missing"]["tcp.source"] == "no process of the job was named to the sampler"


def test_a_job_without_connections_costs_a_look_at_one_file(
    sampler: Any, waiting: Any, tmp_path: Path
) -> None:
    """No listing (the kernel's whole table) between the first sample and the last."""
    job = subprocess.Popen(["sh", "-c", "sleep 30; true"], start_new_session=True)
    try:
        attached = sampler.attach("--rate", "10", "--pid", str(job.pid),
                                  prefix=("unshare", "--net"))  # fmt: skip
        log = tmp_path / "calls"
        time.sleep(1.3)
        begin = time.monotonic()
        trace = subprocess.Popen(
            ["strace", "-y", "-s", "512", "-p", str(attached.child_pid), "-o", str(log)],
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2.5)
        waiting("20 samples", lambda: log.read_text().count("ppoll(") > 20)
        trace.terminate()
        trace.wait()
        calls = log.read_text()
        # Of all namespaces: other programs of this machine may open sockets meanwhile.
        counts = re.findall(r"sockstat>.*TCP: .* alloc (\d+)", calls)
        changes = sum(a != b for a, b in pairwise(counts))
        assert 2 <= len(counts) <= time.monotonic() - begin + 2
        # What the sampler had seen before the first of them is not known here.
        assert calls.count("sendmsg(") <= 1 + changes
        attached.end()
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()


def test_at_its_end_the_nodes_counters_are_read_after_the_jobs(
    sampler: Any, tmp_path: Path
) -> None:
    """A job was told more retransmitted segments than its node: counted between the two readings."""
    log = tmp_path / "calls"
    trace = ("strace", "-f", "-y", "-e", "trace=sendmsg,pread64", "-o", str(log))
    done, _ = sampler.run(["sleep", "0.5"], "--rate", "5", "--bpf", "no", prefix=trace)
    assert done.returncode == 0
    calls = log.read_text().splitlines()
    readings = ("sendmsg(", "/statistics/tx_bytes>", "/net/snmp>")
    listing, interfaces, segments = (
        [number for number, call in enumerate(calls) if words in call][-1] for words in readings
    )
    assert listing < min(interfaces, segments)
