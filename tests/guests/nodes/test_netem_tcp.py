"""Loss, copies, corrupt and reordered packets of a TCP connection, in a guest with sch_netem.

TCP passes pieces of many segments to a device, and a queue counts each as one packet: then 1 % of
loss drops 0.15 % of the segments. The sending socket reports the number of segments (tcp(7),
TCP_INFO).
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import address, tree
from tests.system.network.netem_wire import NODE, RECEIVER

from steelyard.wrappers.cluster.cluster import Cluster
from steelyard.wrappers.cluster.guest_control import Guest

PORT = 5299
SIZE = 8_000_000  # some 5,530 segments

# struct tcp_info of linux/tcp.h: tcpi_total_retrans, tcpi_segs_out.
SEND = """
import json, socket, struct, subprocess, sys
early, size, peer, port, *apply = sys.argv[1:]
def connect():
    return socket.create_connection((peer, int(port)), timeout=60)
cable = connect() if early == "early" else None
subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)
cable = cable or connect()
cable.sendall(bytes(int(size)))
cable.shutdown(socket.SHUT_WR)
cable.recv(1)
info = cable.getsockopt(socket.IPPROTO_TCP, 11, 192)
print(json.dumps({"resent": struct.unpack_from("I", info, 100)[0],
                  "segments": struct.unpack_from("I", info, 136)[0]}))
"""


@pytest.fixture(scope="module")
def peer(virtual_cluster: Cluster) -> Iterator[str]:
    """The physical node, where somebody receives."""
    assert virtual_cluster.state.network is not None
    inside = ["nsenter", f"--net={virtual_cluster.state.network.namespace}", "python3"]
    with subprocess.Popen([*inside, "-c", RECEIVER, str(PORT)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield address(virtual_cluster, "n1")
        finally:
            process.kill()


@pytest.fixture(scope="module")
def guest(virtual_cluster: Cluster) -> Iterator[Guest]:
    """v1, whose device takes 40 segments at a time; all of these tests leave it as it was."""
    made = virtual_cluster.find_guest("v1")
    before = tree(virtual_cluster, "v1")
    run(made, "ip", "link", "set", "dev", "vec0", "gso_max_segs", "40")
    shaped = tree(virtual_cluster, "v1")
    try:
        yield made
        assert "gso_max_segs 40\n" in shaped and tree(virtual_cluster, "v1") == shaped
    finally:
        run(made, "ip", "link", "set", "dev", "vec0", "gso_max_segs", "65535")
    assert tree(virtual_cluster, "v1") == before


def run(guest: Guest, *argv: str) -> str:
    done = guest.run(argv, timeout_s=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def netem(verb: str, *words: str, job: str = "1") -> list[str]:
    whose = ("--run-dir=/run/sy-tcp", "--node=n", f"--job-id={job}")
    return [str(NODE), "netem", verb, *whose, *words]


def apply(spec: str, job: str = "1") -> list[str]:
    return netem("apply", "--uid=0", "--no-policy", "--", spec, job=job)


def finish(guest: Guest, job: str = "1") -> dict[str, Any]:
    run(guest, *netem("finish", job=job))
    done: dict[str, Any] = json.loads(run(guest, "cat", f"/run/sy-tcp/netem/n.{job}.done.json"))
    return done


def send(
    guest: Guest, peer: str, spec: str, early: str = "late"
) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the socket's counts for SIZE bytes under a condition, and the condition's document."""
    argv = ["python3", "-c", SEND, early, str(SIZE), peer, str(PORT), *apply(f"{spec},to={peer}")]
    try:
        told: dict[str, int] = json.loads(run(guest, *argv))
    finally:
        document = finish(guest)
    return told, document


def near(packets: int, chance: float) -> Any:
    """Six standard deviations of the binomial distribution around its mean."""
    return pytest.approx(packets * chance, abs=6 * math.sqrt(packets * chance * (1 - chance)))


@pytest.mark.parametrize("early", ["late", "early"])
def test_a_loss_of_tcp_is_one_of_packets(guest: Guest, peer: str, early: str) -> None:
    """A connection that was open before the condition is no other."""
    told, document = send(guest, peer, "loss=2%", early)
    counters = document["counters"]
    offered = counters["sent_packets"] + counters["dropped_packets"]
    assert offered == pytest.approx(told["segments"], abs=4), "one ACK more, the first ones less"
    assert counters["dropped_packets"] == near(offered, 0.02)
    assert told["resent"] == near(offered, 0.02)
    assert document["devices"][0]["gso_max_segs"] == 1


def test_copies_of_tcp_are_copies_of_packets(guest: Guest, peer: str) -> None:
    told, document = send(guest, peer, "duplicate=5%")
    counters = document["counters"]
    assert counters["sent_packets"] - told["segments"] == near(told["segments"], 0.05)


def test_spoilt_packets_of_tcp_are_sent_again_one_by_one(guest: Guest, peer: str) -> None:
    told, document = send(guest, peer, "corrupt=2%")
    counters = document["counters"]
    assert counters["dropped_packets"] == 0
    assert told["resent"] == near(told["segments"], 0.02)


def test_packets_of_tcp_are_sent_ahead_one_by_one(guest: Guest, peer: str) -> None:
    told, document = send(guest, peer, "delay=5ms,reorder=5%")
    counters = document["counters"]
    assert counters["requeues"] == near(told["segments"], 0.05)


def test_incoming_packets_stay_as_they_come_where_only_outgoing_ones_are_shaped(
    guest: Guest,
) -> None:
    for direction, more in (("egress", []), ("ingress", ["rx-gro"])):
        run(guest, *apply(f"loss=1%,dev=vec0,direction={direction}"))
        (device,) = finish(guest)["devices"]
        assert device["offloads_off"] == ["tx-tcp-segmentation", "tx-generic-segmentation", *more]


@pytest.mark.parametrize("last", ["1", "2"])
def test_the_last_condition_on_a_device_puts_back_what_the_other_one_needed(
    guest: Guest, last: str
) -> None:
    """The first needs no single packets, the second does."""
    run(guest, *apply("delay=1ms,to=192.0.2.1,dev=vec0", "1"))
    run(guest, *apply("loss=1%,to=192.0.2.2,dev=vec0", "2"))
    finish(guest, "2" if last == "1" else "1")
    left = run(guest, "ip", "-d", "link", "show", "vec0")
    assert "gso_max_segs 1 " in left
    finish(guest, last)
    on = netem("apply", "--uid=0", "--no-policy", "--", "loss=1%,dev=vec0")
    off = json.loads(run(guest, *on))["devices"][0]["offloads_off"]
    finish(guest)
    assert off == ["tx-tcp-segmentation", "tx-generic-segmentation"], "they were on again"
