"""Network conditions from sbatch to the record, on nodes whose kernel has sch_netem.

Most jobs are submitted at once, to the one guest or the other, and looked at afterwards. They reach
n1, whose own queues nobody touches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.guests.nodes.netem_guests import (
    SHARED,
    Job,
    address,
    states,
    submit,
    tree,
    two_on_a_guest,
    wait_all,
)
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster.cluster import Cluster

GUESTS = ("v1", "v2")

# Requests of jobs, and their commands. {n1}: the physical node, {ctl}: slurmctld.
JOBS = {
    "delay": ("delay=25ms,to={n1}", "srun true; echo code: $?"),
    "both": ("delay=10ms,to={n1},direction=both", "true"),
    "ingress": ("delay=10ms,to={n1},direction=ingress", "true"),
    "jitter": ("delay=20ms~5ms/normal,to={n1}", "true"),
    "loss": ("loss=20%,to={n1}", "ping -q -c400 -f {n1}"),
    "duplicate": ("duplicate=20%,to={n1}", "ping -q -c200 -f {n1}"),
    "corrupt": ("corrupt=30%,to={n1}", "ping -q -c200 -f {n1}"),
    "reorder": ("delay=5ms,reorder=20%,to={n1}", "ping -q -c100 -i0.002 {n1}"),
    "rate": ("rate=20mbit,to={n1}", "ping -q -c50 -f -s1400 {n1}"),
    "rto": ("delay=1ms,rto_min=20ms,to={n1}", "echo route: $(ip route)"),
    "device": (
        "delay=400ms,dev=vec0",
        """connect() {{
            least=99999
            for i in 1 2 3; do  # a busy machine is slow in between
                a=$(date +%s%N); (echo >/dev/tcp/$1/$2) 2>/dev/null; b=$(date +%s%N)
                took=$(((b - a) / 1000000)); least=$((took < least ? took : least))
            done
            echo "$3: $least"
        }}
        connect {n1} 9 other; connect {n1} 22 ssh; connect {ctl} 9 controller""",
    ),
}


def names(cluster: Cluster) -> dict[str, str]:
    """Addresses, by the words of the table above."""
    assert cluster.state.network is not None
    return {
        **{name: address(cluster, name) for name in ("n1", *GUESTS)},
        "ctl": cluster.state.network.controller,
    }


@pytest.fixture(scope="module")
def before(virtual_cluster: Cluster) -> dict[str, str]:
    """Return the guests' state before any condition."""
    return {name: tree(virtual_cluster, name) for name in GUESTS}


@pytest.fixture(scope="module")
def jobs(
    virtual_cluster: Cluster, before: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Job]]:
    """All of the table, ended; the guests are as before."""
    lab = Lab(virtual_cluster, tmp_path_factory.mktemp("netem"))
    words, made = names(virtual_cluster), {}
    try:
        for number, (name, (spec, script)) in enumerate(JOBS.items()):
            node = f"-w{GUESTS[number % 2]}"
            script = f"exec bash -s <<'END'\n{script.format(**words)}\nEND"
            made[name] = submit(lab, spec.format(**words), "--exclusive", node, script=script)
        wait_all(made)
        yield made
    finally:
        lab.cancel()


def least_ms(text: str) -> float:
    """Return the least time in what ping -q prints."""
    found = re.search(r"= ([\d.]+)/", text)
    assert found, text
    return float(found[1])


def test_every_condition_was_undone_and_the_guests_are_as_before(
    virtual_cluster: Cluster, jobs: dict[str, Job], before: dict[str, str]
) -> None:
    assert all(job.conditions["scope"] == "node" for job in jobs.values())
    for name in GUESTS:
        until(lambda guest=name: not states(virtual_cluster, guest), "all is undone")
        assert tree(virtual_cluster, name) == before[name]


@pytest.mark.parametrize(
    ("name", "asked_ms"), [("delay", 25), ("both", 20), ("ingress", 10), ("jitter", 20)]
)
def test_a_delay_is_added_to_the_round_trip(
    jobs: dict[str, Job], name: str, asked_ms: float
) -> None:
    job = jobs[name]
    tolerance_ms, which = (8, "median") if name == "jitter" else (3, "min")
    assert job.added_ms(which) == pytest.approx((asked_ms, asked_ms), abs=tolerance_ms)
    conditions = job.conditions
    assert conditions["peer"] == address(job.lab.cluster, "n1"), "the one host of to="
    assert conditions["verify_s"] < 5
    assert job.record["tags"]["network"] == job.spec
    assert job.lab.comment(job.id)["netem_valid"] is True


def test_a_step_inside_the_job_shares_its_condition(jobs: dict[str, Job]) -> None:
    assert jobs["delay"].word("code") == "0"


def test_a_loss_is_counted(jobs: dict[str, Job]) -> None:
    conditions = jobs["loss"].conditions
    loss, counters = conditions["loss"], conditions["counters"]
    assert loss["packets"] >= 400
    assert loss["achieved"] == pytest.approx(
        counters["dropped_packets"] / (counters["sent_packets"] + counters["dropped_packets"])
    )
    assert loss["low"] < loss["achieved"] < loss["high"]
    assert 0.1 < loss["achieved"] < 0.3
    assert "% packet loss" in jobs["loss"].out


def test_copies_are_sent_and_spoilt_packets_are_not_answered(jobs: dict[str, Job]) -> None:
    assert "duplicates" in jobs["duplicate"].out
    assert jobs["duplicate"].conditions["counters"]["sent_packets"] > 250 * 1.1
    assert "100% packet loss" not in jobs["corrupt"].out
    assert " 0% packet loss" not in jobs["corrupt"].out
    assert jobs["corrupt"].conditions["counters"]["dropped_packets"] == 0


def test_packets_sent_ahead_are_counted(jobs: dict[str, Job]) -> None:
    assert 5 < jobs["reorder"].conditions["counters"]["requeues"] < 60


def test_a_rate_is_netems(jobs: dict[str, Job]) -> None:
    conditions = jobs["rate"].conditions
    assert conditions["devices"][0]["qdisc"] == "netem"
    assert "rate 20Mbit" in conditions["devices"][0]["kernel"]
    assert conditions["counters"]["sent_bytes"] > 50 * 1400


def test_the_least_retransmission_time_stands_in_the_route(jobs: dict[str, Job]) -> None:
    assert "rto_min lock 20ms" in jobs["rto"].word("route")


def test_a_whole_device_is_shaped_but_ssh_and_the_controller(jobs: dict[str, Job]) -> None:
    job = jobs["device"]
    assert int(job.word("other")) >= 400
    assert max(int(job.word("ssh")), int(job.word("controller"))) < 400
    network = job.lab.cluster.state.network
    assert network is not None and job.conditions["peer"] == network.peer, "the policy's"
    assert job.added_ms() == pytest.approx((400, 400), abs=45)
    assert job.conditions["valid"] is True, job.conditions["invalid_reason"]


def test_two_jobs_on_a_guest_have_each_its_own_and_others_none(
    virtual_lab: Lab, before: dict[str, str]
) -> None:
    cluster = virtual_lab.cluster
    words = names(cluster)
    ping = "ping -q -c3 -i0.1 {n1} | tail -1; touch running.$SLURM_JOB_ID; {then}"
    with two_on_a_guest(virtual_lab):
        options = ("-p", SHARED, "-w", "v1")
        long = submit(virtual_lab, f"delay=60ms,to={words['n1']}", *options,
                      script=ping.format(then="until [ -e go ]; do sleep 0.1; done", **words))  # fmt: skip
        short = submit(virtual_lab, "delay=20ms,dev=vec0", *options,
                       script=f"srun {ping.format(then='sleep 0.5', **words)}")  # fmt: skip
        for job in (long, short):
            virtual_lab.wait_running(job.id)
        outside = cluster.find_guest("v1").run(["ping", "-q", "-c3", "-i0.1", words["n1"]])
        assert least_ms(outside.stdout) < 15, outside.stdout
        virtual_lab.wait_state(short.id, "COMPLETED")
        until(lambda: states(cluster, "v1") == [f"v1.{long.id}.json"], "the short one is undone")
        (virtual_lab.work / "go").touch()
        wait_all({"long": long, "short": short})
        until(lambda: tree(cluster, "v1") == before["v1"], "v1 is as before")
    for job, asked_ms in ((long, 60), (short, 20)):
        assert job.conditions["scope_by"] == "cgroup-bpf"
        (note,) = (note for note in job.conditions["notes"] if "own sockets" in note)
        assert "/nfs (nfs4)" in note, "the kernel's connection is not the job's"
        assert asked_ms <= least_ms(job.out) < asked_ms + 15
    assert long.added_ms() == pytest.approx((60, 60), abs=5)


def test_nodes_of_one_job_measure_their_own_condition_not_the_others(
    virtual_lab: Lab, before: dict[str, str]
) -> None:
    job = submit(virtual_lab, "delay=10ms,dev=vec0", "-N2", "-wv[1-2]", "--exclusive",
                 script="srun true; srun hostname; sleep 0.5")  # fmt: skip
    wait_all({"both": job})
    records = virtual_lab.records(job.id, 2, complete=False)
    for record, peer in zip(records, ("v2", "v1"), strict=True):
        conditions = record["network_conditions"]
        assert conditions["valid"] is True, conditions["invalid_reason"]
        assert conditions["peer"] == address(virtual_lab.cluster, peer)
    for name in GUESTS:
        assert tree(virtual_lab.cluster, name) == before[name]


def test_a_condition_that_cannot_be_had_fails_the_job_with_4_and_one_line(
    virtual_lab: Lab, before: dict[str, str]
) -> None:
    words = names(virtual_lab.cluster)
    guest = virtual_lab.cluster.find_guest("v1")
    tbf = "tc qdisc add dev vec0 root handle 7: tbf rate 1gbit burst 1mb limit 1mb"
    assert guest.run(["sh", "-c", tbf]).returncode == 0
    try:
        job = submit(virtual_lab, f"delay=5ms,to={words['n1']}", "-wv1", "--exclusive",
                     script="touch ran")  # fmt: skip
        wait_all({"refused": job}, "FAILED")
    finally:
        guest.run(["tc", "qdisc", "del", "dev", "vec0", "root"])
    assert virtual_lab.sacct(job.id, "ExitCode") == [["4:0"]]
    (line,) = (line for line in job.out.splitlines() if line.startswith("steelyard: "))
    assert "vec0 is shaped by somebody else: its root qdisc is tbf 7:" in line
    assert not (virtual_lab.work / "ran").exists()
    assert tree(virtual_lab.cluster, "v1") == before["v1"]
