"""Network conditions and containers that have a network of their own: what holds in them."""

from __future__ import annotations

import itertools
import math
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.wrappers.launchers import launcher as launchers

from .launcher_lab import needs_root, out, tags
from .test_places import bash

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

BRIDGE = "unshare,network=bridge"
# As launcher_places.sh is in when all containers are there; what they answer stands in $2.
MEET = """
sy_tag() { printf '%s=%s\\n' "$1" "$2"; }
sy_launcher_tell() { :; }
sy_launcher_answer() { answer=$seen_inside; }
sy_condition_trip() { printf '%s' "$seen_outside"; }
SY_NETWORK_CONDITION=$1 seen_inside=$2 seen_outside=$3 SY_LAUNCHER=box SY_THIS_NODE=a
SY_PLACE_ADDRESSES='10.0.0.1 10.0.0.2' SY_PLACES=${0%/*}
printf '%s\\n' 'localhost a 198.18.0.1/28 -' 'x b 198.18.0.17/28 -' >"$SY_PLACES/list"
SY_PLACE_NODES=(a b)
sy_condition_look
"""


def test_a_run_is_told_of_the_condition_when_its_containers_have_their_own_network() -> None:
    found = launchers.variables(launchers.parse(BRIDGE), "delay=5ms")
    assert found["SY_NETWORK_CONDITION"] == "delay=5ms"
    for text, condition in ((BRIDGE, "none"), ("unshare", "delay=5ms"), ("bare", "delay=5ms")):
        told = launchers.variables(launchers.parse(text), condition)
        assert "SY_NETWORK_CONDITION" not in told


@pytest.mark.parametrize(
    ("spec", "inside_us", "outside_us", "told"),
    [
        ("delay=20ms", 40_312, 40_200, "verified: a round trip between containers of two nodes"),
        ("duplicate=1%", 300, 300, "not verified: duplicate= is not looked at"),
        ("limit=500", 300, 300, "not verified: only delay, loss and rate can be looked at"),
        (
            "delay=20ms,reorder=1%",
            40_312,
            40_200,
            "not verified: reorder= is not looked at; verified: a ",
        ),
        ("loss=gemodel:1%:10%,rate=10mbit:24", 300, 300, "not verified: of loss in bursts a count"),
        ("loss=1%,seed=7", 300, 300, "not verified: with seed= loss is not counted"),
        (
            "rate=1mbit,direction=ingress",
            300,
            300,
            "not verified: of loss and rate only what leaves",
        ),
        ("delay=20ms,to=10.9.0.0/16", 300, 310, "none: it delays neither the nodes"),
    ],
)
def test_whether_the_containers_are_delayed_is_tagged(
    tmp_path: Path, spec: str, inside_us: int, outside_us: int, told: str
) -> None:
    done = bash(tmp_path, MEET, spec, str(inside_us), str(outside_us))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"launcher_condition={told}")
    assert inside_us != 40_312 or done.stdout.endswith(" takes 40.312 ms\n")


def test_a_condition_that_delays_the_nodes_and_not_the_containers_ends_the_run(
    tmp_path: Path,
) -> None:
    done = bash(tmp_path, MEET, "delay=20ms,to=10.0.0.0/8", "400", "20100")
    assert done.returncode == 4
    assert "delays its nodes and not its containers" in done.stderr
    assert "20100 us between nodes, 400 us between containers" in done.stderr


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
    assert bash(tmp_path, 'sy_condition_least_us "$1"', spec).stdout == least_us


@pytest.mark.parametrize(
    ("spec", "chance", "rate"),
    [
        ("loss=0.1%,delay=5ms", "100000", ""),
        ("delay=5ms,loss=12.345678%,rate=1.5mbit", "12345678", "1500000"),
        ("rate=100kbit,loss=100%", "100000000", "100000"),
        ("loss=0%,rate=2gbit", "", "2000000000"),
        ("loss=gemodel:1%:10%,rate=10mbit:24", "", ""),
    ],
)
def test_what_loss_and_rate_are_asked_for(
    tmp_path: Path, spec: str, chance: str, rate: str
) -> None:
    script = 'echo "$(sy_condition_loss_of "$1") $(sy_condition_rate_of "$1")"'
    assert bash(tmp_path, script, spec).stdout == f"{chance} {rate}\n"


@pytest.mark.parametrize(
    ("chance", "n"), [(0.001, 100_500), (0.01, 10_500), (0.2, 1_000), (0.9, 611)]
)
def test_the_counts_that_chance_explains_are_those_of_the_binomial_distribution(
    tmp_path: Path, chance: float, n: int
) -> None:
    """Its exact tails, 0.05 % on each side: at the limits within three packets; another loss, half
    or twice it, is found 98 times in 100."""
    script = """for ((lost = 0; lost <= $3; lost++)); do
        ! sy_loss_fits $lost $1 $2 || echo $lost
    done | sed -n '1p;$p'"""
    said = bash(
        tmp_path, script, str(n), str(round(chance * 1e8)), str(min(n, 1000))
    ).stdout.split()
    least, most = map(int, said)
    below = binomial(n, chance)
    exact = (
        next(k for k in range(n) if below[k] > 0.0005),
        next(k for k in range(n) if below[k] > 0.9995),
    )
    assert abs(least - exact[0]) <= 3 and abs(most - exact[1]) <= 3
    assert binomial(n, chance / 2)[least - 1] > 0.98
    if chance < 0.5:
        assert binomial(n, chance * 2)[most] < 0.02


def binomial(n: int, chance: float) -> list[float]:
    """The probabilities of at most 0, 1, 2 … of n."""
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        + k * math.log(chance) + (n - k) * math.log1p(-chance)
        for k in range(n + 1)
    ]  # fmt: skip
    return list(itertools.accumulate(math.exp(one) for one in logs))


def test_a_queue_is_found_in_what_tc_says(tmp_path: Path) -> None:
    """Of a kernel's own words, another's queues beside."""
    script = """declare -A counts=()
    sy_counts_of 'qdisc prio 57e1: root refcnt 2 bands 16' ' Sent 1 bytes 2 pkt (dropped 3, overlimits 0 requeues 0) ' \
        ' backlog 1b 1p requeues 0' 'qdisc netem 5802: parent 57e1:2 limit 1000 loss 20%' \
        ' Sent 42480 bytes 828 pkt (dropped 199, overlimits 0 requeues 0) ' ' backlog 12Kb 9p requeues 0' \
        'qdisc netem 9: parent 1:4 limit 5' ' Sent 7 bytes 7 pkt (dropped 7, overlimits 0 requeues 0) '
    for queue in "${!counts[@]}"; do echo "$queue ${counts[$queue]}"; done"""
    assert bash(tmp_path, script).stdout == "5802: 42480 828 199 12288 9\n"


@pytest.mark.parametrize(
    ("readings", "found"),
    [
        # 10 Mbit/s are 1250 bytes a ms; 100 ms between readings.
        (
            "0 0 200000|125000 200000|250000 200000|375000 200000|500000 0",
            "10000000 10000000 400000",
        ),
        (
            "0 0 200000|125000 100000|250000 200000|375000 200000|500000 0",
            "10000000 10000000 200000",
        ),
        ("0 0 0|125000 0|250000 0", ""),
    ],
)
def test_the_time_with_a_full_queue_is_when_enough_waited_until_the_next_reading(
    tmp_path: Path, readings: str, found: str
) -> None:
    rows = [words.split()[-2:] for words in readings.split("|")]
    listed = " ".join(f"'{i * 100_000} {i * 100_000} {a} {b}'" for i, (a, b) in enumerate(rows))
    script = f'readings=({listed}); sy_rate_full 10000000 0 && echo "$most $least $lasted"'
    assert bash(tmp_path, script).stdout.strip() == found


def test_round_trips_are_of_addresses_that_refuse(tmp_path: Path) -> None:
    script = "sy_condition_trip '9 127.0.0.1 127.0.0.2'"
    assert 0 < int(bash(tmp_path, script).stdout) < 1_000_000


@needs_root
def test_rto_min_is_put_into_the_containers_own_routes(study: Study) -> None:
    """The node's say nothing of what is sent in another network namespace."""
    study.body("ip route show")
    told = launchers.variables(launchers.parse(BRIDGE), "rto_min=20ms")
    done = study.run(**told)
    assert done.returncode == 0, (study.attempt() / "err.0").read_text()
    routes = [line for line in out(study) if " dev " in line]
    assert len(routes) == 2 and all("rto_min lock 20ms" in route for route in routes)
    assert tags(study)["launcher_rto_min"] == "20ms"
    node = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert "rto_min lock 20ms" not in node


def test_without_root_rto_min_cannot_hold_in_a_container(tmp_path: Path) -> None:
    script = "SY_NETWORK_CONDITION=rto_min=2ms SY_LAUNCHER=box SY_THIS_NODE=a; sy_condition_routes"
    script = f"eval \"$(declare -f sy_condition_routes | sed 's/EUID != 0/1/')\"; {script}"
    done = bash(tmp_path, script)
    assert done.returncode == 4
    assert "would hold on a and not in its container" in done.stderr
