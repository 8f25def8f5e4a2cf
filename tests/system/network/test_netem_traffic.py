"""Whose traffic a condition is for: one job's, a node's but ssh and what is protected, IPv6 too.

Everything happens in network namespaces made here. A rate needs sch_tbf and sch_htb or sch_prio.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.network.netem_wire import Lab, cgroup, receiver, seconds, two_namespaces

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with two_namespaces(tmp_path) as made:
        yield made


def test_one_jobs_traffic_alone(lab: Lab) -> None:
    before = lab.tree()
    with cgroup() as job, receiver(lab, "22", "5201", "5202"):
        spec = "rate=1mbit,dev=v0,to=10.77.0.0/24,port=5201"
        done = lab.apply(spec, "1", f"--cgroup=/{job.name}")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["scope_by"] == "cgroup-bpf"
        mine = seconds(lab, str(job / "cgroup.procs"), "22", "5201", "5202")
        others = seconds(lab, "/dev/null", "5201")
        document = lab.finish()
        after = seconds(lab, str(job / "cgroup.procs"), "5201")
    assert mine[5201] > 1.5
    assert max(mine[22], mine[5202], others[5201], after[5201]) < 1.5
    counters = document["counters"]
    assert isinstance(counters, dict)
    assert counters["sent_bytes"] > 300_000
    assert lab.tree() == before


@pytest.mark.parametrize("spec", ["rate=1mbit,dev=v0", "rate=1mbit,to=10.77.0.2,dev=v0",
                                  "rate=1mbit,to=0.0.0.0/0,port=5201,dev=v0"])  # fmt: skip
def test_a_node_is_shaped_but_ssh_and_what_is_protected(lab: Lab, spec: str) -> None:
    with receiver(lab, "22", "5201"):
        assert lab.apply(spec).returncode == 0
        slow = seconds(lab, "/dev/null", "22", "5201")
        lab.finish()
        assert lab.apply(spec, "2", "--protect=10.77.0.2").returncode == 0
        free = seconds(lab, "/dev/null", "5201")
        lab.finish("2")
    assert slow[5201] > 1.5
    assert max(slow[22], free[5201]) < 1.5


@pytest.mark.parametrize("scope", ["node", "job"])
def test_ipv6_is_shaped_by_its_own_networks_and_ports(lab: Lab, scope: str) -> None:
    with cgroup() as job, receiver(lab, "22", "5201", "5202"):
        procs, six = str(job / "cgroup.procs"), "fd77::2"
        whose = (f"--cgroup=/{job.name}",) if scope == "job" else ()
        assert lab.apply("rate=1mbit,dev=v0,to=fd77::/64,port=5201", "1", *whose).returncode == 0
        slow = seconds(lab, procs, "22", "5201", "5202", to=six)
        four = seconds(lab, procs, "5201")
        lab.finish("1")
        assert lab.apply("rate=1mbit,dev=v0", "2", *whose).returncode == 0
        all_of_it = seconds(lab, procs, "5201", to=six)
        lab.finish("2")
        spared = ("--protect=fd77::/120", *whose)
        assert lab.apply("rate=1mbit,dev=v0", "3", *spared).returncode == 0
        free = seconds(lab, procs, "5201", to=six)
        lab.finish("3")
    assert min(slow[5201], all_of_it[5201]) > 1.5
    assert max(slow[22], slow[5202], four[5201], free[5201]) < 1.5
