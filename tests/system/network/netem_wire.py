"""Two network namespaces with a cable between them for one test, and traffic through it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import wait_for

NODE = Path(__file__).parents[3] / "build/bin/steelyard-node"
UNIFIED = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))

# linux/ethtool.h: ETHTOOL_GSG, GTSO, GGSO, GGRO, and GFLAGS, whose bits contain lro and more.
OFFLOADS = """
import array, fcntl, socket, struct, sys
door = socket.socket()
for name, number in (("sg", 0x18), ("tso", 0x1e), ("gso", 0x23), ("gro", 0x2b), ("flags", 0x25)):
    value = array.array("I", [number, int(sys.argv[2]) if len(sys.argv) > 2 else 0])
    if len(sys.argv) < 3 or sys.argv[1] == name:
        value[0] += len(sys.argv) > 2
        fcntl.ioctl(door, 0x8946, struct.pack("16sP", b"v0", value.buffer_info()[0]))
        print(name, value[1])
"""

SHOW = """
set -e
tc qdisc show; ip route; ip -o link
tc filter show dev v0; tc filter show dev v0 ingress
ip -6 route; python3 -ES -c "$1"
"""


@dataclass
class Lab:
    """Two namespaces with a cable between them, and a run folder."""

    here: str
    there: str
    run: Path

    def inside(self, *words: str, name: str | None = None) -> subprocess.CompletedProcess[str]:
        argv = ["nsenter", f"--net=/run/netns/{name or self.here}", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)

    def netem(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.inside(str(NODE), "netem", verb, f"--run-dir={self.run}", *words)

    def apply(self, spec: str, job: str = "1", *words: str) -> subprocess.CompletedProcess[str]:
        whose = ("--node=n", f"--job-id={job}", "--uid=1000", "--no-policy")
        return self.netem("apply", *whose, *words, "--", spec)

    def finish(self, job: str = "1") -> dict[str, object]:
        done = self.netem("finish", "--node=n", f"--job-id={job}")
        assert done.returncode == 0, done.stderr
        document: dict[str, object] = json.loads(
            (self.run / f"netem/n.{job}.done.json").read_text()
        )
        return document

    def tree(self) -> str:
        """Return all that may differ: queues, filters' handles, routes, offloads, devices."""
        done = self.inside("sh", "-c", SHOW, "sh", OFFLOADS)
        assert done.returncode == 0, done.stderr
        # htb's packet counter may change at any time (neighbor discovery); it is not configuration
        return re.sub(r"direct_packets_stat \d+|LOWER_UP", "", done.stdout)


@dataclass
class EtcLab(Lab):
    """The namespaces, with a private /etc for their commands."""

    etc: Path

    def inside(self, *words: str, name: str | None = None) -> subprocess.CompletedProcess[str]:
        mounted = ("sh", "-c", 'mount --bind "$0" /etc && exec "$@"', str(self.etc), *words)
        return super().inside("unshare", "--mount", *mounted, name=name)

    def put(self, name: str, text: str) -> None:
        self.etc.joinpath("steelyard/netem", name).write_text(text)


@contextlib.contextmanager
def two_namespaces_with_etc(folder: Path) -> Iterator[EtcLab]:
    """Make two_namespaces() with an empty /etc/steelyard/netem."""
    etc = folder / "etc"
    etc.mkdir()
    for name in ("passwd", "group", "nsswitch.conf", "ld.so.cache", "iproute2"):
        found = Path("/etc", name)
        if found.exists():
            (shutil.copytree if found.is_dir() else shutil.copy)(found, etc / name)
    (etc / "steelyard/netem").mkdir(parents=True)
    with two_namespaces(folder) as made:
        yield EtcLab(made.here, made.there, made.run, etc)


@contextlib.contextmanager
def two_namespaces(folder: Path) -> Iterator[Lab]:
    """Make two namespaces; their addresses are 10.77.0.1 and .2, fd77::1 and ::2."""
    here, there = (f"sy-host-{os.getpid()}-{side}" for side in "ab")
    made = Lab(here, there, folder / "run")
    try:
        for name in (here, there):
            subprocess.run(["ip", "netns", "add", name], check=True)
            made.inside("ip", "link", "set", "lo", "up", name=name)
        made.inside("ip", "link", "add", "v0", "numtxqueues", "2", "type", "veth", "peer", "name",
                    "v1", "netns", there)  # fmt: skip
        for name, device, last in ((here, "v0", 1), (there, "v1", 2)):
            made.inside("ip", "addr", "add", f"10.77.0.{last}/24", "dev", device, name=name)
            made.inside("ip", "addr", "add", f"fd77::{last}/64", "dev", device, "nodad", name=name)
            made.inside("ip", "link", "set", device, "up", name=name)
        wait_for_link(made)
        yield made
    finally:
        for name in (here, there):
            subprocess.run(["ip", "netns", "del", name], check=False)


def wait_for_link(lab: Lab) -> None:
    """Wait until carrier and IPv6 addresses are constant, so that the tree does not change."""
    addresses, routes = partial(lab.inside, "ip", "addr"), partial(lab.inside, "ip", "route")
    wait_for("addresses", lambda: "tentative" not in addresses().stdout)
    wait_for("carrier", lambda: "linkdown" not in routes().stdout)


@contextlib.contextmanager
def cgroup() -> Iterator[Path]:
    """Make a cgroup of the unified hierarchy, like a job's."""
    top = next((path for path in UNIFIED if (path / "cgroup.controllers").exists()), None)
    if top is None:
        pytest.skip("no cgroup2 is mounted here")
    made = top / f"sy-host-{os.getpid()}"
    made.mkdir()
    try:
        yield made
    finally:
        made.rmdir()


SENDER = """
import socket, sys, time, os
open(sys.argv[1], "w").write(str(os.getpid()))
for port in map(int, sys.argv[2:]):
    start = time.monotonic()
    with socket.create_connection(("TO", port)) as cable:
        cable.sendall(b"x" * 300_000)
        cable.shutdown(socket.SHUT_WR)
        cable.recv(1)
    print(port, time.monotonic() - start)
"""

RECEIVER = """
import socket, sys, threading
def serve(door):
    while True:
        cable, _ = door.accept()
        while cable.recv(65536):
            pass
        cable.close()
for port in map(int, sys.argv[1:]):
    door = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve, args=(door,)).start()
print("ready", flush=True)
"""


@contextlib.contextmanager
def receiver(lab: Lab, *ports: str) -> Iterator[None]:
    argv = ["nsenter", f"--net=/run/netns/{lab.there}", "python3", "-c", RECEIVER, *ports]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def seconds(lab: Lab, procs: str, *ports: str, to: str = "10.77.0.2") -> dict[int, float]:
    """Return how long 300 KB take to each port, in s; 1 mbit needs 2.4 s minus its burst."""
    said = lab.inside("python3", "-c", SENDER.replace("TO", to), procs, *ports)
    assert said.returncode == 0, said.stderr
    return {int(line.split()[0]): float(line.split()[1]) for line in said.stdout.splitlines()}
