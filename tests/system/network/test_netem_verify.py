"""What is verified of a condition, between two network namespaces made for it (tbf; no netem here)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("STEELYARD_NODE") or str(ROOT / "build" / "bin" / "steelyard-node")
SPEC = "rate=10mbit,dev=wire"
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and qdiscs need root"),
]


def sh(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


class Wire:
    """Two namespaces with a device `wire` each, 10.9.0.1 and 10.9.0.2, and fd09::1, ::2."""

    def __init__(self, run_dir: Path) -> None:
        self.names = [f"sy-verify-{os.getpid()}-{side}" for side in "ab"]
        self.run_dir = run_dir

    def make(self) -> None:
        for name in self.names:
            sh("ip", "netns", "add", name)
        sh("ip", "-n", self.names[0], "link", "add", "wire", "type", "veth",
           "peer", "name", "wire", "netns", self.names[1])  # fmt: skip
        for last, name in enumerate(self.names, 1):
            sh("ip", "-n", name, "address", "add", f"10.9.0.{last}/24", "dev", "wire")
            sh("ip", "-n", name, "address", "add", f"fd09::{last}/64", "dev", "wire", "nodad")
            sh("ip", "-n", name, "link", "set", "wire", "up")

    def settle(self) -> None:
        """Until IPv6 addresses of the link can be used, else neighbours are not found at once."""
        show = ("-6", "address", "show", "tentative")
        wait_for(
            "no tentative address", lambda: not any(sh("ip", "-n", n, *show) for n in self.names)
        )

    def remove(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)

    def here(self, *words: str) -> str:
        return sh("nsenter", f"--net=/run/netns/{self.names[0]}", *words)

    def netem(self, verb: str, *words: str) -> str:
        name = [f"--run-dir={self.run_dir}", "--node=n1", "--job-id=1"]
        return self.here(PROGRAM, "netem", verb, *name, *words)

    def apply(self, spec: str, peer: str = "10.9.0.2") -> dict[str, Any]:
        text = self.netem("apply", "--uid=0", "--no-policy", f"--peer={peer}", "--", spec)
        found: dict[str, Any] = json.loads(text)
        return found

    def finish(self) -> dict[str, Any]:
        self.netem("finish")
        text = (self.run_dir / "netem" / "n1.1.done.json").read_text()
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture(name="wire")
def make_wire(tmp_path: Path) -> Iterator[Wire]:
    wire = Wire(tmp_path / "run")
    try:
        wire.make()
        yield wire
    finally:
        wire.remove()


@pytest.mark.parametrize("peer", ["10.9.0.2", "fd09::2"])
def test_a_condition_that_holds_is_valid(wire: Wire, peer: str) -> None:
    if ":" in peer:
        wire.settle()
    assert wire.apply(SPEC, peer)["valid"] is True
    done = wire.finish()
    assert (done["valid"], done["undone"], done["peer"]) == (True, True, peer)
    for moment in ("before", "during_start", "during_end", "after"):
        rtt = done["rtt"][moment]
        assert rtt, done["missing"]
        assert rtt["sent"] == rtt["received"] > 0
        assert 0 < rtt["min_s"] <= rtt["median_s"] <= rtt["max_s"] < 0.5


def test_counters_are_those_of_tc(wire: Wire) -> None:
    wire.apply(SPEC)
    shown = json.loads(wire.here("tc", "-s", "-j", "qdisc", "show", "dev", "wire"))
    (tbf,) = (qdisc for qdisc in shown if qdisc["kind"] == "tbf")
    done = wire.finish()
    counters, rtt = done["counters"], done["rtt"]["during_end"]
    assert counters["sent_packets"] - tbf["packets"] >= rtt["sent"]  # its own echo requests
    assert counters["dropped_packets"] == tbf["drops"] == 0
    assert done["loss"]["packets"] == counters["sent_packets"]


def test_a_qdisc_that_was_taken_away_is_seen(wire: Wire) -> None:
    wire.apply(SPEC)
    wire.here("tc", "qdisc", "delete", "dev", "wire", "root")
    done = wire.finish()
    assert done["valid"] is False
    assert "the qdisc of wire was gone at the end" in done["invalid_reason"]


def test_a_qdisc_that_was_changed_is_seen(wire: Wire) -> None:
    handle = wire.apply(SPEC)["devices"][0]["kernel"].split()[2]
    parent = f"57e1:{int(handle.rstrip(':'), 16) & 0xFF:x}"
    wire.here("tc", "qdisc", "change", "dev", "wire", "parent", parent, "handle", handle,
              "tbf", "rate", "20mbit", "burst", "12500", "limit", "1000000")  # fmt: skip
    done = wire.finish()
    assert done["valid"] is False
    assert "the qdisc of wire was changed during the job" in done["invalid_reason"]
    assert "20Mbit" in done["invalid_reason"]


def test_packets_dropped_by_a_full_queue_are_noted_where_limit_or_rate_was_asked_for(
    wire: Wire,
) -> None:
    flood = (
        "import socket\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "s.setsockopt(socket.SOL_SOCKET, 32, 1 << 24)\n"  # SO_SNDBUFFORCE
        "for _ in range(400): s.sendto(b'x' * 1000, ('10.9.0.2', 9))\n"
    )
    wire.apply(f"{SPEC},limit=20")
    wire.here("python3", "-c", flood)
    done = wire.finish()
    assert done["counters"]["dropped_packets"] > 0
    assert done["valid"] is True
    (note,) = done["notes"]
    assert note.startswith("the queue of 20 packets was full ") and note.endswith("limit= asked")
    wire.apply("rate=1mbit,dev=wire")
    wire.here("python3", "-c", flood.replace("400", "3000"))
    done = wire.finish()
    assert done["counters"]["dropped_packets"] > 0
    assert done["valid"] is True
    assert "as a link of that rate does" in done["notes"][0]


def test_a_peer_that_does_not_answer_is_missing_with_its_reason(wire: Wire) -> None:
    wire.apply(SPEC, "10.9.0.77")
    done = wire.finish()
    assert done["rtt"]["before"] is None and done["valid"] is True
    assert done["missing"]["rtt.before"] == "10.9.0.77 answered none of 25 echo requests (ICMP)"


def test_port_is_measured_by_tcp_connections(wire: Wire) -> None:
    done = wire.apply(f"{SPEC},port=1094")
    assert done["rtt"]["before"]["sent"] == 10
    assert done["rtt"]["during_start"]["received"] == 10  # refused: an answer, too
    assert wire.finish()["counters"]["sent_packets"] >= 20
