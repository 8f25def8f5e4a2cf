"""Jobs on a link that varies: what they measure during the trace, and what their records contain.

Nothing continues to change the link after all processes of a job were killed.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator

import pytest
from tests.guests.nodes.netem_guests import address, states, submit, tree
from tests.guests.nodes.test_netem_guest_ends import kill, sampler, stepd
from tests.throwaway_lab import Lab, until

from steelyard.wrappers.cluster.cluster import Cluster

NODE = "v1"
FOLDER = "/etc/steelyard/netem"  # of delay tables and traces, on each node
FOLLOWER = "^[^ ]*steelyard-node netem apply "
DELAYS_MS = (10, 60, 30)
TRACES = {
    "wan": "time_s,delay_ms\n0,10\n6,60\n12,30\n",
    "busy": "time_s,delay_ms\n0,5\n0.5,10\n1,5\n",
    "steep": "time_s,delay_ms\n0,10\n60,11000\n",
    "loose": "time_s,delay_ms\n0,10\n",
}


@pytest.fixture(scope="module")
def before(virtual_cluster: Cluster) -> Iterator[str]:
    """The guest's queues before anything; its administrator has put traces there."""
    guest = virtual_cluster.find_guest(NODE)
    files = "; ".join(f"printf %s {shlex.quote(text)} >{FOLDER}/{name}.csv"
                      for name, text in TRACES.items())  # fmt: skip
    done = guest.run(["sh", "-c", f"mkdir -p {FOLDER}; {files}; chmod o+w {FOLDER}/loose.csv"])
    assert done.returncode == 0, done.stderr
    yield tree(virtual_cluster, NODE)
    guest.run(["rm", "-r", FOLDER])


def test_a_job_sees_its_trace_and_its_record_tells_it(virtual_lab: Lab, before: str) -> None:
    n1 = address(virtual_lab.cluster, "n1")
    job = submit(virtual_lab, f"trace=wan,to={n1}", f"-w{NODE}", "--exclusive",
                 script=f"ping -D -c90 -i0.2 {n1}")  # fmt: skip
    assert virtual_lab.wait_state(job.id, "COMPLETED", "FAILED") == "COMPLETED", job.out
    until(lambda: not states(virtual_lab.cluster, NODE), "it is undone")
    conditions = job.record["network_conditions"]
    assert conditions["valid"] is True, conditions["invalid_reason"]
    assert (conditions["requested"], conditions["undone"]) == (job.spec, True)
    trace = conditions["trace"]
    assert (trace["name"], trace["lines"], trace["steps"]) == ("wan", 3, 3)
    assert trace["sha256"] == hashlib.sha256(TRACES["wan"].encode()).hexdigest()
    assert trace["held_s"] > 0
    assert [one["applied"] for one in trace["step_log"]] == [
        f"delay={ms}ms,to={n1}" for ms in DELAYS_MS
    ]
    is_detectable(job.out, [one["unix_s"] for one in trace["step_log"]])
    assert tree(virtual_lab.cluster, NODE) == before


def is_detectable(out: str, begins: list[float]) -> None:
    """The shortest echo of each step, two-sided; the job itself may have begun after the first."""
    echoes = [(float(at), float(ms)) for at, ms in re.findall(r"\[([\d.]+)\].*time=([\d.]+)", out)]
    ends = [*begins[1:], echoes[-1][0] + 1]
    for delay_ms, begin, end in zip(DELAYS_MS, begins, ends, strict=True):
        # ping prints when the answer arrived.
        seen = [ms for at, ms in echoes if begin + 0.1 < at - ms / 1e3 and at < end - 0.1]
        assert not seen or delay_ms <= min(seen) < delay_ms + 8
        assert seen or delay_ms == DELAYS_MS[0], (begins, echoes)


def test_what_is_refused_is_told_by_one_line(virtual_lab: Lab, before: str) -> None:
    n1 = address(virtual_lab.cluster, "n1")
    rows = {
        "nosuch": f"trace {FOLDER}/nosuch.csv: cannot be opened; on each node root puts it there",
        "loose": "expected a file of root's, writable by root alone",
        "steep": "trace, from 60.0 s on: netem: delay 11s: at most 1s is allowed here",
    }
    jobs = {
        name: submit(
            virtual_lab, f"trace={name},to={n1}", f"-w{NODE}", "--exclusive", script="true"
        )
        for name in rows
    }
    for name, line in rows.items():
        assert virtual_lab.wait_state(jobs[name].id, "FAILED", "COMPLETED") == "FAILED"
        assert line in jobs[name].out
    assert tree(virtual_lab.cluster, NODE) == before


def test_nothing_follows_a_trace_for_a_job_that_was_killed(virtual_lab: Lab, before: str) -> None:
    cluster = virtual_lab.cluster
    n1 = address(cluster, "n1")
    job = submit(virtual_lab, f"trace=busy:repeat,to={n1}", f"-w{NODE}", "--exclusive",
                 script="touch running.$SLURM_JOB_ID; exec sleep 600").id  # fmt: skip
    virtual_lab.wait_running(job)
    follows = ["pgrep", "-f", FOLLOWER]
    assert cluster.find_guest(NODE).run(follows).returncode == 0, "somebody changes the link"
    kill(virtual_lab, sampler(job), stepd(job, "extern"), stepd(job, "batch"), "^sleep 600")
    until(lambda: cluster.find_guest(NODE).run(follows).returncode == 1, "nobody does any more")
    virtual_lab.run("scancel", job)
    virtual_lab.srun(f"-w{NODE}")  # the next job undoes it
    until(lambda: not states(cluster, NODE) and tree(cluster, NODE) == before, "it is undone", 120)
    later = virtual_lab.sbatch(f"-w{NODE}", script=f"ping -q -c5 -i0.1 {n1}; sleep 1")
    assert virtual_lab.wait_state(later, "COMPLETED", "FAILED") == "COMPLETED"
    (record,) = virtual_lab.records(later, 1, complete=False)
    assert not record.get("network_conditions")
