"""Jobs between sites: two guests and their host are three sites of one file.

The conditions of a job's packets on each path are those of the file; its records list each link.
After kills everything is undone.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from tests.guests.nodes.netem_guests import address, states, submit, tree
from tests.guests.nodes.test_netem_guest_ends import kill, sampler, stepd
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster.cluster import Cluster

GUESTS = ("v1", "v2")
FOLDER = "/etc/steelyard/netem"
# One way each, in ms; the machine itself is at the site `host`, and shapes nothing.
WAYS = {("left", "right"): 20, ("right", "left"): 35, ("left", "host"): 60}
TOLERANCE_MS = 8  # added to a ping between guests on a busy machine


def compiled(cluster: Cluster) -> str:
    """The file, as `steelyard netem sites FILE --write` makes it."""
    places = {"left": "v1", "right": "v2", "host": "n1"}
    addresses = {site: address(cluster, node) for site, node in places.items()}
    lines = []
    for site, own in addresses.items():
        lines.append(f"site {site} {own}")
        lines += [
            f"to {end} delay={ms}ms,to={addresses[end]}"
            for (begin, end), ms in WAYS.items()
            if begin == site
        ]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def before(virtual_cluster: Cluster) -> Iterator[dict[str, str]]:
    """The guests' queues before anything; their administrator has put the file there."""
    text = compiled(virtual_cluster)
    line = f"mkdir -p {FOLDER} && printf %s {shlex.quote(text)} >{FOLDER}/wan.sites"
    alone = "site other 192.0.2.1\nto b delay=1ms,to=192.0.2.2\nsite b 192.0.2.2\n"
    line += f" && printf %s {shlex.quote(alone)} >{FOLDER}/elsewhere.sites"
    for name in GUESTS:
        done = virtual_cluster.find_guest(name).run(["sh", "-c", line])
        assert done.returncode == 0, done.stderr
    yield {name: tree(virtual_cluster, name) for name in GUESTS}
    for name in GUESTS:
        virtual_cluster.find_guest(name).run(["rm", "-r", FOLDER])


def undone(cluster: Cluster, before: dict[str, str]) -> bool:
    return all(
        not states(cluster, name) and tree(cluster, name) == text for name, text in before.items()
    )


def fastest_ms(out: str, mark: str) -> float:
    """Of the echoes that were sent after a line with this mark."""
    part = out.split(f"{mark}:", 1)[1].split("statistics", 1)[0]
    return min(float(ms) for ms in re.findall(r"time=([\d.]+)", part))


def added_ms(link: dict[str, Any], moment: str) -> float:
    return float(link["rtt"][moment]["min_s"] - link["rtt"]["before"]["min_s"]) * 1e3


def is_told(record: dict[str, Any], here: str, cluster: Cluster) -> None:
    """The record of one node: which file it was, where the node is, what each link was."""
    conditions = record["network_conditions"]
    assert conditions["valid"] is True, conditions["invalid_reason"]
    assert (conditions["requested"], conditions["undone"]) == ("sites=wan", True)
    sites = conditions["sites"]
    assert (sites["name"], sites["here"]) == ("wan", here)
    assert sites["sha256"] == hashlib.sha256(compiled(cluster).encode()).hexdigest()
    wanted = {end: ms for (begin, end), ms in WAYS.items() if begin == here}
    assert {link["to_site"] for link in sites["links"]} == set(wanted)
    for link in sites["links"]:
        ms = wanted[link["to_site"]]
        assert link["valid"] is True, link
        assert link["applied"] == link["requested"] == f"delay={ms}ms,to={link['peer']}"
        for moment in ("during_start", "during_end"):
            # A busy `before` takes from it, a busy `during` adds.
            assert ms - 4 < added_ms(link, moment) < ms + TOLERANCE_MS, (link, moment)


def test_each_way_is_as_long_as_the_file_says(virtual_lab: Lab, before: dict[str, str]) -> None:
    cluster = virtual_lab.cluster
    left, right, host = (address(cluster, name) for name in ("v1", "v2", "n1"))
    script = "srun -N2 -n2 true\n" + "\n".join(
        f"echo {mark}:; {run}ping -c20 -i0.1 {to}"
        for mark, run, to in (
            ("left-right", "", right), ("left-host", "", host),
            ("right-left", "srun -N1 -n1 -wv2 ", left), ("right-host", "srun -N1 -n1 -wv2 ", host),
        )
    )  # fmt: skip
    job = submit(virtual_lab, "sites=wan", "-N2", "-wv1,v2", "--exclusive", script=script)
    assert virtual_lab.wait_state(job.id, "COMPLETED", "FAILED") == "COMPLETED", job.out
    until(lambda: undone(cluster, before), "it is undone")
    there_and_back = WAYS["left", "right"] + WAYS["right", "left"]
    wanted = {"left-right": there_and_back, "right-left": there_and_back,
              "left-host": WAYS["left", "host"], "right-host": 0}  # fmt: skip
    for mark, ms in wanted.items():
        assert ms <= fastest_ms(job.out, mark) < ms + TOLERANCE_MS, mark
    for record in virtual_lab.records(job.id, 2, complete=False):
        is_told(record, {"v1": "left", "v2": "right"}[record["node"]], cluster)


def test_what_is_refused_is_told_by_one_line(virtual_lab: Lab, before: dict[str, str]) -> None:
    rows = {
        "nosuch": f"sites {FOLDER}/nosuch.sites: cannot be opened; on each node root puts it there",
        "elsewhere": "is in no site of it",
    }
    jobs = {
        name: submit(virtual_lab, f"sites={name}", "-wv1", "--exclusive", script="true")
        for name in rows
    }
    for name, line in rows.items():
        assert virtual_lab.wait_state(jobs[name].id, "FAILED", "COMPLETED") == "FAILED"
        assert line in jobs[name].out
    assert undone(virtual_lab.cluster, before)


def test_a_job_killed_at_work_leaves_nothing(virtual_lab: Lab, before: dict[str, str]) -> None:
    cluster = virtual_lab.cluster
    job = submit(virtual_lab, "sites=wan", "-wv1", "--exclusive",
                 script="touch running.$SLURM_JOB_ID; exec sleep 600").id  # fmt: skip
    virtual_lab.wait_running(job)
    assert tree(cluster, "v1").count(": netem ") + tree(cluster, "v1").count("qdisc netem") >= 2
    kill(virtual_lab, sampler(job), stepd(job, "extern"), stepd(job, "batch"), "^sleep 600")
    virtual_lab.run("scancel", job)
    virtual_lab.srun("-wv1")  # the next job undoes it
    until(lambda: undone(cluster, before), "it is undone", 120)
