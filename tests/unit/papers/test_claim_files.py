"""Facts that a claim wants, as claims.csv writes them, and facts of a study's conditions."""

from __future__ import annotations

import pytest

from steelyard.analysis.papers.claim_files import ABSENT, Above, parse_facts
from steelyard.analysis.papers.conditions import (
    cache_facts,
    has_fact,
    launcher_facts,
    machine_facts,
    network_facts,
    rank_facts,
)
from steelyard.analysis.summary.numeric_factors import parse_specification


@pytest.mark.parametrize(
    ("cell", "facts"),
    [
        ("", {}),
        ("kernel=mg", {"kernel": "mg"}),
        ("kernel=mg|lu ranks=4|8", {"kernel": ["mg", "lu"], "ranks": [4, 8]}),
        ("nodes>1", {"nodes": Above(1.0)}),
        ("container=yes ranks_across=no", {"container": True, "ranks_across": False}),
        ("loss_percent=- rto_min_ms=-|200", {"loss_percent": ABSENT, "rto_min_ms": [ABSENT, 200]}),
        ("kernel_release=3.16* rate=1.5", {"kernel_release": "3.16*", "rate": 1.5}),
        ("npb class=B", {"benchmark": "npb", "class": "B"}),
    ],
)
def test_a_cell_of_facts(cell: str, facts: dict[str, object]) -> None:
    assert parse_facts(cell, {"npb": {"benchmark": "npb"}}) == facts


def test_a_later_fact_replaces_one_of_the_scope() -> None:
    assert parse_facts("near nodes=2", {"near": {"nodes": 1, "x": 0}}) == {"nodes": 2, "x": 0}


@pytest.mark.parametrize("cell", ["unknown", "kernel=", "kernel<4"])
def test_what_is_no_fact_and_no_scope_is_an_error(cell: str) -> None:
    with pytest.raises(KeyError):
        parse_facts(cell, {"npb": {}})


@pytest.mark.parametrize(
    ("found", "wanted", "answer"),
    [
        ("podman:x,containers=8", "podman:*", True),
        (8, Above(1), True),
        (1, Above(1), False),
        (None, "absent", True),
        (2.0, "absent", False),
        (37.5, 75, False),
        (75.0, 75, True),
        (False, False, True),
        (None, False, False),
        ("ep", ["cg", "ep"], True),
    ],
)
def test_a_wanted_value(found: object, wanted: object, answer: bool) -> None:
    assert has_fact(found, wanted) is answer


def test_launchers_and_networks_in_the_words_of_the_claims() -> None:
    assert launcher_facts("lxc:x,network=macvlan,containers=4,ranks=across") == {
        "launcher_kind": "lxc", "container": True, "containers": 4, "launcher_network": "macvlan",
        "ranks_across": True,
    }  # fmt: skip
    assert launcher_facts("unshare")["ranks_across"] is False
    own = launcher_facts("unshare,network=phys,device=eth1,ranks=across")
    assert (own["launcher_network"], own["containers"]) == ("phys", 1)
    assert cache_facts("cold:cvmfs=300") == {"cache": "cold", "cvmfs_limit_mb": 300}
    assert cache_facts("warm") == {"cache": "warm"}
    assert launcher_facts("bare") == {"launcher_kind": "bare", "container": False}
    level = "delay=37500us,rate=100mbit,loss=0.1%,rto_min=2ms"
    assert network_facts(parse_specification(level), ends=2) == pytest.approx(
        {"round_trip_ms": 75, "rate_mbit": 100, "loss_percent": 0.1, "rto_min_ms": 2}
    )
    with_jitter = network_facts(parse_specification("delay=50ms~5ms"), ends=1)
    assert "round_trip_ms" not in with_jitter and with_jitter["network_delay"]


@pytest.mark.parametrize(
    ("level", "nodes", "each"),
    [
        ({"ranks": 16, "containers": 8, "ranks_across": True}, 1, 2),
        ({"ranks": 64, "containers": 8, "ranks_across": True}, 8, 1),
        ({"ranks": 128, "containers": 1, "ranks_across": False}, 8, 16),
        ({"ranks": 16, "containers": 8, "ranks_across": False}, 1, None),  # programs of their own
        ({"ranks": 4, "containers": 8, "ranks_across": True}, 1, None),
        ({"ranks": 16}, 1, None),
    ],
)
def test_ranks_of_a_container(level: dict[str, object], nodes: int, each: int | None) -> None:
    assert rank_facts(level, nodes).get("ranks_per_container") == each


@pytest.mark.parametrize(
    ("clients", "client_nodes", "nodes", "more", "machines"),
    [
        (2, 0, 3, {}, 2),
        (2, 1, 3, {}, 1),
        (2, 0, 2, {}, 1),
        (2, 0, 1, {}, 1),
        (10, 0, 12, {}, 10),
        (2, 0, 3, {"server": "same"}, 1),
        (3, 0, 3, {"url": "root://far//x"}, 3),
        (2, 0, 3, {"mode": "local"}, 1),
    ],
)
def test_machines_of_the_clients(
    clients: int, client_nodes: int, nodes: int, more: dict[str, str], machines: int
) -> None:
    facts = {"clients": clients, "client_nodes": client_nodes, "nodes": nodes}
    facts |= {"mode": "analysis", "server": "other", "url": ""} | more
    assert machine_facts(facts) == {"client_machines": machines}
