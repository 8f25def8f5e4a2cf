"""A file of sites as one condition: every link has its own queue, one way each, all undone
together.

Everything happens in network namespaces made here, with a private /etc. A rate needs sch_tbf and
sch_htb or sch_prio. STEELYARD_FAULT_TRIES multiplies the number of kills (1; `tests/run.sh soak`:
30).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.network.netem_wire import (
    NODE,
    EtcLab,
    Lab,
    cgroup,
    receiver,
    seconds,
    two_namespaces_with_etc,
)

KILLS = 3 * int(os.environ.get("STEELYARD_FAULT_TRIES", "1"))
STEPS = "!wait4,clock_nanosleep"  # how often tc is waited for varies
SITES = """
site a 10.77.0.1
to b rate=8mbit,to=10.77.0.2
to c rate=24mbit,loss=0%,to=10.77.1.0/24
site b 10.77.0.2
to a rate=16mbit,to=10.77.0.1
site c 10.77.1.0/24
"""
RATES = {"b": "rate 8Mbit", "c": "rate 24Mbit"}
FAR = "10.77.1.9"  # of site c
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[EtcLab]:
    with two_namespaces_with_etc(tmp_path) as made:
        made.inside("ip", "addr", "add", f"{FAR}/32", "dev", "v1", name=made.there)
        made.inside("ip", "route", "add", "10.77.1.0/24", "dev", "v0")
        made.put("wan.sites", SITES.replace(",loss=0%", ""))
        yield made


def links(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the links by the sites that they lead to."""
    return {link["to_site"]: link for link in document["sites"]["links"]}


def apply(lab: Lab, *words: str) -> dict[str, Any]:
    done = lab.apply("sites=wan", "1", *words)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_each_link_is_as_the_file_says_and_all_are_undone(lab: EtcLab) -> None:
    before = lab.tree()
    document = apply(lab, f"--peer={FAR}")
    assert (document["requested"], document["applied"]) == ("sites=wan", "sites=wan")
    assert document["sites"]["here"] == "a"
    assert {link["applied"] for link in links(document).values()} == {
        "rate=8mbit,to=10.77.0.2", "rate=24mbit,to=10.77.1.0/24"
    }  # fmt: skip
    assert re.findall(r"sites=wan to \w", lab.netem("show").stdout) == [
        "sites=wan to b", "sites=wan to c"
    ]  # fmt: skip
    queues = lab.tree()
    for device in document["devices"]:
        assert RATES[device["to_site"]] in device["kernel"]
        assert device["kernel"].split(" lat")[0].replace(": ", ": dev v0 ", 1) in queues
    peers = {site: link["peer"] for site, link in links(document).items()}
    assert peers == {"b": "10.77.0.2", "c": FAR}, "the site's one address, a node of the job"
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"], done["undone_by"]) == (True, True, "job")
    for link in links(done).values():
        assert link["valid"] is True
        assert all(link["rtt"][moment]["received"] == 25 for moment in link["rtt"])
    assert lab.tree() == before


def test_the_other_end_has_the_other_way(lab: EtcLab) -> None:
    said = lab.inside(str(NODE), "netem", "sites", "wan", name=lab.there)
    assert said.returncode == 4
    assert "wan.sites, line 7: this node is in two sites of it, b and c" in said.stderr
    lab.inside("ip", "addr", "del", f"{FAR}/32", "dev", "v1", name=lab.there)
    told = json.loads(lab.inside(str(NODE), "netem", "sites", "wan", name=lab.there).stdout)
    assert (told["here"], told["links"]) == (
        "b", [{"to_site": "a", "requested": "rate=16mbit,to=10.77.0.1"}]
    )  # fmt: skip


@pytest.mark.parametrize("scope", ["node", "job"])
def test_packets_meet_the_link_they_are_for(lab: EtcLab, scope: str) -> None:
    before = lab.tree()
    with cgroup() as job, receiver(lab, "5201", "5202"):
        procs = str(job / "cgroup.procs")
        document = apply(lab, *((f"--cgroup=/{job.name}",) if scope == "job" else ()))
        assert document["scope"] == scope
        seconds(lab, procs, "5201")  # 300 KB to b
        seconds(lab, procs, "5201", "5202", to=FAR)  # 600 KB to c
        if scope == "job":
            seconds(lab, "/dev/null", "5201", to=FAR)  # of somebody else
        done: dict[str, Any] = lab.finish()
    sent = {site: link["counters"]["sent_bytes"] for site, link in links(done).items()}
    assert 300_000 < sent["b"] < 400_000
    assert 600_000 < sent["c"] < 750_000
    assert done["counters"]["sent_bytes"] == sum(sent.values())
    assert lab.tree() == before


def test_one_link_that_needs_packets_one_by_one_has_them_put_back(lab: EtcLab) -> None:
    """sch_netem is what a loss needs: without it nothing is left of the other link either."""
    lab.put("wan.sites", SITES)
    before = lab.tree()
    done = lab.apply("sites=wan")
    if done.returncode:
        assert "this kernel has no sch_netem" in done.stderr
    else:
        assert lab.finish()["undone"] is True
    assert lab.tree() == before
    assert not [one for one in lab.run.glob("netem/*.json") if "done" not in one.name]


def test_beside_others_only_where_no_packet_is_for_both(lab: EtcLab) -> None:
    before = lab.tree()
    assert lab.apply("rate=1mbit,to=10.9.0.0/16,dev=v0", "7").returncode == 0
    apply(lab)
    refused = lab.apply("rate=1mbit,to=10.77.1.0/25", "8")
    assert refused.returncode == 4
    assert "v0 is shaped already, by n.1 (sites=wan)" in refused.stderr
    again = lab.apply("sites=wan", "1", "--cgroup=/x")
    assert again.returncode == 0, "another step of the job shares it"
    assert "a condition on this node already, sites=wan" in lab.apply("rate=1mbit", "1").stderr
    assert lab.apply("rate=1mbit,to=10.8.0.0/16,dev=v0", "9").returncode == 0
    assert lab.finish("1")["undone"] is True
    left = re.findall(r"qdisc tbf (580\d):", lab.tree())
    assert sorted(left) == ["5802", "5805"], "the others stay"
    assert lab.finish("7")["undone"] is True
    assert lab.finish("9")["undone"] is True
    assert lab.tree() == before


def test_what_is_refused(lab: EtcLab, tmp_path: Path) -> None:
    before = lab.tree()
    policy = tmp_path / "netem.conf"
    policy.write_text("enabled yes\nmin_rate 10mbit\n")

    def refusal(*words: str) -> str:
        done = lab.netem("apply", "--node=n", "--job-id=1", "--uid=1000", "--exclusive=yes",
                         *(words or ("--no-policy",)), "--", "sites=wan")  # fmt: skip
        assert (done.returncode, lab.tree()) == (4, before)
        return done.stderr

    assert "from a to b: netem: rate 8mbit: at least 10mbit is" in refusal(f"--policy={policy}")
    lab.put("wan.sites", "site b 10.77.0.2\nto x rate=1mbit,to=10.9.0.1\n")
    assert "wan.sites: this node (10.77.0.1 and more) is in no site of it" in refusal()
    (lab.etc / "steelyard/netem/wan.sites").unlink()
    assert "cannot be opened; on each node root puts it there" in refusal()


def test_doctor_tells_which_file_a_node_has(lab: EtcLab) -> None:
    text = SITES.replace(",loss=0%", "").encode()
    said = lab.inside(str(NODE), "doctor").stdout
    digest = hashlib.sha256(text).hexdigest()[:12]
    assert f"ok       netem sites: this node is in a site of wan (sha256 {digest})" in said
    lab.put("wan.sites", "site b 10.77.0.2\nto x rate=1mbit,to=10.9.0.1\n")
    said = lab.inside(str(NODE), "doctor").stdout
    assert re.search(r"warning  netem sites: .*wan\.sites: this node .* is in no site of it", said)


def test_a_node_from_whose_site_no_link_begins(lab: EtcLab) -> None:
    lab.put("wan.sites", "site a 10.77.0.1\nsite b 10.77.0.2\nto a rate=1mbit,to=10.77.0.1\n")
    before = lab.tree()
    assert (apply(lab)["sites"]["links"], lab.tree()) == ([], before)
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"]) == (True, True)


def test_a_link_that_somebody_changes_is_told_by_its_name(lab: EtcLab) -> None:
    before = lab.tree()
    apply(lab)
    lab.inside("tc", "qdisc", "change", "dev", "v0", "parent", "57e1:3", "handle", "5803:", "tbf",
               "rate", "99mbit", "burst", "25000", "limit", "1514000")  # fmt: skip
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"]) == (False, True)
    assert done["invalid_reason"].startswith("to site c: the qdisc of v0 was changed during")
    assert [links(done)[site]["valid"] for site in "bc"] == [True, False]
    assert lab.tree() == before


def calls(lab: Lab, *words: str) -> list[tuple[str, int]]:
    """The system calls of a command: name, and the how many-th of its name, as strace counts."""
    log = lab.run.parent / "calls"
    lab.inside("strace", "-e", f"trace={STEPS}", "-o", str(log), str(NODE), "netem", *words)
    names = [line.split("(")[0] for line in log.read_text().splitlines() if "(" in line]
    return [(name, names[: at + 1].count(name)) for at, name in enumerate(names)]


@pytest.mark.parametrize("dying", ["apply", "finish"])
def test_killed_at_any_step_the_next_one_undoes_it(lab: EtcLab, dying: str) -> None:
    lab.inside("tc", "qdisc", "add", "dev", "v0", "root", "handle", "5:", "pfifo", "limit", "77")
    before = lab.tree()
    lab.run.mkdir()
    whose = (f"--run-dir={lab.run}", "--node=n", "--job-id=1")

    def command() -> tuple[subprocess.Popen[bytes], tuple[str, ...]]:
        owner = subprocess.Popen(["sleep", "600"])
        if dying == "finish":
            apply(lab, f"--watch={owner.pid}")
            return owner, ("finish", *whose)
        return owner, ("apply", *whose, "--no-policy", "--uid=0", f"--watch={owner.pid}", "--",
                       "sites=wan")  # fmt: skip

    owner, words = command()
    made = calls(lab, *words)
    owner.kill()
    owner.wait()
    assert lab.netem("reap").returncode == 0
    for number in range(KILLS):
        name, count = made[40 + (len(made) - 40) * number // KILLS]
        owner, words = command()
        lab.inside("strace", "-o", "/dev/null", f"--inject={name}:signal=KILL:when={count}",
                   str(NODE), "netem", *words)  # fmt: skip
        owner.kill()
        owner.wait()
        done = lab.netem("reap")
        assert done.returncode == 0, ((name, count), done.stderr)
        assert lab.tree() == before, (name, count)
    assert not (lab.run / "netem/n.1.json").exists()


def segments(lab: Lab) -> int:
    """How many the device takes in one piece."""
    said = lab.inside("ip", "-d", "link", "show", "v0").stdout
    return int(re.findall(r"gso_max_segs (\d+)", said)[0])


def test_who_came_last_knows_no_better_what_a_device_could(lab: EtcLab) -> None:
    """The second condition's initial state is restored, whichever ends first.

    Three conditions: one that needs nothing, one that sets the device to one segment, and a third
    that finds that.
    """
    before, found = lab.tree(), segments(lab)
    assert found > 1
    for job, kept in (("1", None), ("2", found), ("3", 1)):
        assert lab.apply(f"rate=1mbit,to=10.{job}.0.0/16,dev=v0", job).returncode == 0
        path = lab.run / f"netem/n.{job}.json"
        state = json.loads(path.read_text())
        state["undo"]["places"][0]["gso_max_segs"] = kept
        path.write_text(json.dumps(state))
    lab.inside("ip", "link", "set", "v0", "gso_max_segs", "1")
    for job in ("3", "1", "2"):
        assert segments(lab) == 1
        lab.finish(job)
    assert (segments(lab), lab.tree()) == (found, before)
