"""Network conditions and containers with their own network: what is in force in them."""

from __future__ import annotations

import ipaddress
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.wrappers.launchers import launcher_grammar

from .launcher_lab import needs_root, out, tags
from .test_launcher_peer_containers import bash

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

BRIDGE = "unshare,network=bridge"
# As launcher_peer_containers.sh is in when all containers are there; what they answer stands in $2.
MEET = """
sy_tag() { printf '%s=%s\\n' "$1" "$2"; }
sy_launcher_send() { :; }
sy_launcher_read_answer() { answer=$seen_inside; }
sy_condition_measure_round_trip() { printf '%s' "$seen_outside"; }
SY_NETWORK_CONDITION=$1 seen_inside=$2 seen_outside=$3 SY_LAUNCHER=box SY_THIS_NODE=a
SY_PEER_ADDRESSES='10.0.0.1 10.0.0.2' SY_PEERS=${0%/*}
printf '%s\\n' 'localhost a 198.18.0.1/28 -' 'x b 198.18.0.17/28 -' >"$SY_PEERS/list"
SY_PEER_NODES=(a b)
sy_condition_verify
"""


def test_a_run_is_told_of_the_condition_when_its_containers_have_their_own_network() -> None:
    found = launcher_grammar.launcher_variables(launcher_grammar.parse(BRIDGE), "delay=5ms")
    assert found["SY_NETWORK_CONDITION"] == "delay=5ms"
    for text, condition in ((BRIDGE, "none"), ("unshare", "delay=5ms"), ("bare", "delay=5ms")):
        told = launcher_grammar.launcher_variables(launcher_grammar.parse(text), condition)
        assert "SY_NETWORK_CONDITION" not in told


@pytest.mark.parametrize(
    ("spec", "inside_us", "outside_us", "told"),
    [
        ("delay=20ms", 40_312, 40_200, "verified: a round trip between containers of two nodes"),
        ("delay=20ms,to=198.18.0.0/15", 40_312, 300, "verified: a round trip between containers"),
        ("duplicate=1%", 300, 300, "not verified: duplicate= is looked at on the nodes only"),
        ("limit=500", 300, 300, "not verified: limit= is looked at on the nodes only"),
        (
            "delay=20ms,loss=1%,reorder=1%",
            40_312,
            40_200,
            "not verified: loss=, reorder= is looked at on the nodes only; verified: a ",
        ),
        ("rate=1mbit,to=198.18.0.17", 300, 300, "not verified: rate= is looked at on the nodes"),
        ("delay=20ms", 300, 310, "none: it delays neither the nodes"),
        ("delay=20ms,to=10.9.0.0/16", 300, 310, "none: to= names neither the nodes nor their"),
        ("loss=1%,to=fd00::/8", 300, 310, "none: to= names neither the nodes nor their"),
    ],
)
def test_whether_the_condition_holds_for_the_containers_is_tagged(
    tmp_path: Path, spec: str, inside_us: int, outside_us: int, told: str
) -> None:
    done = bash(tmp_path, MEET, spec, str(inside_us), str(outside_us))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"launcher_condition={told}")
    assert inside_us != 40_312 or done.stdout.endswith(" takes 40.312 ms\n")


@pytest.mark.parametrize(
    "spec", ["delay=20ms,to=10.0.0.0/8", "rate=10mbit,to=10.0.0.0/24", "loss=1%,to=10.0.0.2"]
)
def test_a_condition_that_names_the_nodes_and_not_the_containers_ends_the_run(
    tmp_path: Path, spec: str
) -> None:
    done = bash(tmp_path, MEET, spec, "40000", "40000")
    assert (done.returncode, done.stdout) == (4, "")
    assert f"{spec} holds for its nodes and not for its containers" in done.stderr


def test_a_condition_that_delays_the_nodes_and_not_the_containers_ends_the_run(
    tmp_path: Path,
) -> None:
    done = bash(tmp_path, MEET, "delay=20ms", "400", "20100")
    assert done.returncode == 4
    assert "delays its nodes and not its containers" in done.stderr
    assert "20100 us between nodes, 400 us between containers" in done.stderr


@pytest.mark.parametrize(
    ("address", "network", "is_in"),
    [
        ("198.18.0.17", "198.18.0.0/15", True),
        ("198.19.255.255", "198.18.0.0/15", True),
        ("198.20.0.0", "198.18.0.0/15", False),
        ("10.9.0.2", "10.9.0.2", True),
        ("10.9.0.2", "10.9.0.3/32", False),
        ("255.255.255.255", "0.0.0.0/0", True),
        ("10.9.0.2", "fd00::/8", False),
    ],
)
def test_which_addresses_a_network_holds(
    tmp_path: Path, address: str, network: str, is_in: bool
) -> None:
    """The expected result is that of Python's ipaddress."""
    known = ipaddress.ip_address(address) in ipaddress.ip_network(network)
    done = bash(tmp_path, 'sy_condition_is_in_network "$@"', address, network)
    assert (done.returncode == 0) == known == is_in


@pytest.mark.parametrize(
    ("spec", "least_us"),
    [
        ("delay=50ms", "45000"),
        ("delay=2.5ms~1ms/normal,loss=1%", "1250"),
        ("loss=1%,delay=250us", "225"),
        ("delay=1s", "900000"),
        ("delay=0ms", ""),
        ("rate=10mbit", ""),
    ],
)
def test_which_round_trip_a_delay_asks_for(tmp_path: Path, spec: str, least_us: str) -> None:
    assert bash(tmp_path, 'sy_condition_min_delay_us "$1"', spec).stdout == least_us


def test_round_trips_are_of_addresses_that_refuse(tmp_path: Path) -> None:
    script = "sy_condition_measure_round_trip '9 127.0.0.1 127.0.0.2'"
    assert 0 < int(bash(tmp_path, script).stdout) < 1_000_000


@needs_root
def test_rto_min_is_put_into_the_containers_own_routes(study: Study) -> None:
    """The node's routes do not affect packets of another network namespace."""
    study.body("ip route show")
    told = launcher_grammar.launcher_variables(launcher_grammar.parse(BRIDGE), "rto_min=20ms")
    done = study.run(**told)
    assert done.returncode == 0, study.errors()
    routes = [line for line in out(study) if " dev " in line]
    assert len(routes) == 2 and all("rto_min lock 20ms" in route for route in routes)
    assert tags(study)["launcher_rto_min"] == "20ms"
    node = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert "rto_min lock 20ms" not in node


def test_without_root_rto_min_cannot_hold_in_a_container(tmp_path: Path) -> None:
    script = (
        "SY_NETWORK_CONDITION=rto_min=2ms SY_LAUNCHER=box SY_THIS_NODE=a; sy_condition_set_rto_min"
    )
    script = f"eval \"$(declare -f sy_condition_set_rto_min | sed 's/EUID != 0/1/')\"; {script}"
    done = bash(tmp_path, script)
    assert done.returncode == 4
    assert "would hold on a and not in its container" in done.stderr
