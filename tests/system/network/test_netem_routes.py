"""Which device a condition goes to, and rto_min in its routes, in network namespaces made here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.network.netem_wire import Lab, two_namespaces

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with two_namespaces(tmp_path) as made:
        yield made


ROUTES = (
    "10.90.0.0/16 via 10.77.0.2 mtu lock 1400",
    "10.91.0.0/16 via 10.77.0.2 rto_min 7ms window 9000 metric 5",
    "10.92.0.0/16 nexthop via 10.77.0.2 weight 2 nexthop via 10.77.0.3 weight 1",
    "10.93.0.0/16 via 10.99.0.1 dev v0 onlink",
    "fd90::/32 via fd77::2 mtu 1400",
)


def test_routes_of_every_kind_have_rto_min_and_come_back(lab: Lab) -> None:
    for route in ROUTES:
        lab.inside("ip", "route", "add", *route.split())
    before = lab.tree()
    done = lab.apply("rate=10mbit,dev=v0,rto_min=5ms")
    assert done.returncode == 0, done.stderr
    kinds = (("-4", "10.9"), ("-6", "fd90::"))
    shown = [lab.inside("ip", "-o", f, "route").stdout.splitlines() for f, _ in kinds]
    ours = [
        line for lines, (_, to) in zip(shown, kinds, strict=True) for line in lines if to in line
    ]
    made = [line for line in ours if line.startswith(("10.9", "fd90"))]
    assert len(made) == len(ROUTES)
    assert all("rto_min lock 5ms" in line for line in made), made
    assert "mtu lock 1400" in made[0]
    assert lab.finish()["undone"] is True
    assert lab.tree() == before


def test_a_route_that_expires_is_refused(lab: Lab) -> None:
    lab.inside("ip", "route", "add", "fd91::/32", "via", "fd77::2", "expires", "1000")
    done = lab.apply("rate=10mbit,dev=v0,rto_min=5ms")
    assert done.returncode == 4
    assert "rto_min: the route to fd91::/32 cannot be put back as it is: it expires" in done.stderr


def test_without_a_default_route_the_only_device_is_taken_and_never_one_of_two(lab: Lab) -> None:
    before = lab.tree()
    lab.inside("ip", "link", "add", "d1", "type", "veth", "peer", "name", "d2")
    lab.inside("ip", "address", "add", "172.17.0.1/16", "dev", "d1")
    lab.inside("ip", "link", "set", "d1", "up")  # no carrier, as docker0 where no container runs
    for spec in ("rate=10mbit", "rate=10mbit,to=10.0.0.0/8"):
        done = lab.apply(spec)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["devices"][0]["device"] == "v0"
        assert lab.finish()["undone"] is True
    lab.inside("ip", "link", "set", "d2", "up")
    assert "dev=NAME names it" in lab.apply("rate=10mbit,to=11.0.0.0/8").stderr
    assert "no default route: name the device" in lab.apply("rate=10mbit").stderr
    lab.inside("ip", "link", "delete", "d1")
    assert lab.tree() == before


def test_what_leaves_by_another_device_is_told(lab: Lab) -> None:
    """to=NETWORK shapes the device to its first address; a part of it may lie elsewhere."""
    before = lab.tree()
    lab.inside("ip", "link", "add", "d1", "type", "veth", "peer", "name", "d2")
    lab.inside("ip", "address", "add", "10.78.0.1/16", "dev", "d1")
    lab.inside("ip", "link", "set", "d2", "up")
    lab.inside("ip", "link", "set", "d1", "up")
    lab.inside("ip", "route", "add", "10.0.0.0/8", "via", "10.77.0.2")
    notes = []
    for spec in ("to=10.0.0.0/8", "to=10.0.0.0/8,to=10.78.0.0/16", "to=10.0.0.0/8,dev=v0"):
        done = lab.apply(f"rate=10mbit,{spec}")
        assert done.returncode == 0, done.stderr
        notes.append([n for n in json.loads(done.stdout).get("notes", []) if "shaped" in n])
        assert lab.finish()["undone"] is True
    told = "to=10.0.0.0/8: what goes to 10.78.0.0/16 leaves by d1 and was not shaped; "
    assert notes == [[told + "a to= of its own shapes it"], [], []]
    lab.inside("ip", "route", "delete", "10.0.0.0/8")
    lab.inside("ip", "link", "delete", "d1")
    assert lab.tree() == before
