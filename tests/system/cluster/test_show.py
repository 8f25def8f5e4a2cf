"""`steelyard show` and `compare` of jobs, held against what Slurm itself has counted."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from tests.throwaway_lab import Lab, until

from steelyard.analysis.sources.slurm_allocation import parse_duration_s

BUSY = "timeout 3 sh -c 'while :; do :; done'; true"


def shown(lab: Lab, job: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lab.steelyard("show", "--json", job))
    return document


def all_steps_have_ended(lab: Lab, job: str) -> bool:
    """The extern step ends after the job, and its CPU time counts, too.

    Of a job of a few seconds, slurmdbd may get the end before the start, which has its time limit.
    """
    rows = lab.run("sacct", "-n", "-P", "-o", "End,TimelimitRaw", "-j", job).stdout.splitlines()
    ends = [row.partition("|")[0] for row in rows]
    return len(rows) > 1 and "Unknown" not in ends and not rows[0].endswith("|")


def of_sacct(lab: Lab, job: str) -> tuple[float, int, float]:
    """TotalCPU, CPUs and elapsed time, as Slurm's seff takes them."""
    lab.sacct(job)  # its end is there
    until(lambda: all_steps_have_ended(lab, job), f"sacct has the end of each step of job {job}")
    # Without -X: the job's CPU time is the sum over its steps.
    words = "TotalCPU,AllocCPUS,ElapsedRaw"
    lines = lab.run("sacct", "-n", "-P", "-o", words, "-j", job).stdout.splitlines()
    cpu, cpus, elapsed = lines[0].split("|")
    seconds = parse_duration_s(cpu)
    assert seconds is not None
    return seconds, int(cpus), float(elapsed)


def show_with_sacct(lab: Lab, job: str) -> tuple[dict[str, Any], tuple[float, int, float]] | None:
    """What show and sacct have, if they agree: a step's last ms may be stored after its end."""
    truth, document = of_sacct(lab, job), shown(lab, job)
    return (document, truth) if document["allocation"]["scheduler_cpu_s"] == truth[0] else None


def test_cpu_efficiency_is_that_of_seff(lab: Lab) -> None:
    """A shell is busy for 3 s on two CPUs, and again with a node that it does not use."""
    jobs = [
        lab.sbatch("-w", "n3", "-c2", "-t", "5", script=BUSY),
        lab.sbatch("-N2", "-w", "n1,n2", "-t", "5", script=BUSY),
    ]
    for job, nodes in zip(jobs, (1, 2), strict=True):
        lab.records(job, nodes)
        agree = partial(show_with_sacct, lab, job)
        document, (seconds, cpus, elapsed) = until(agree, "show has sacct's CPU time")
        cpu = document["efficiency"]["cpu"]
        assert (document["allocation"]["cpus"], cpu["allocated"]) == (cpus, cpus * elapsed)
        assert cpu["source"] == "records" and not cpu["is_least"]
        assert cpu["share"] == pytest.approx(seconds / cpus / elapsed, rel=0.05, abs=0.01)
        assert document["efficiency"]["time"]["share"] == elapsed / 300, document["efficiency"]
        assert document["allocation"]["partition"] == "main"
        # What is drawn over its time is what was counted.
        course = document["course"]
        busy = sum(value or 0 for value in course["series"]["cpus_busy"]) * course["piece_s"]
        assert busy == pytest.approx(cpu["used"], rel=0.01, abs=0.02)
        assert "less than 60 s" in document["advice_missing"]
    both = json.loads(lab.steelyard("show", "--json", *jobs))["jobs"]
    assert [one["job_id"] for one in both] == jobs
    pair = json.loads(lab.steelyard("compare", "--json", *jobs))
    told = {one["about"]: (one["a"], one["b"]) for one in pair["differences"]}
    assert told["nodes"] == ("n3", "n1, n2") and "kernel" in pair["alike"]


def test_why_a_condition_was_refused_stands_below_the_state(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "-t", "5", "--netem=delay=10ms", script="true")
    lab.wait_state(job, "FAILED")
    lab.records(job, 1)
    lines = lab.steelyard("show", job).splitlines()
    assert lines[1].startswith("  failed") and lines[2].startswith("  n1: refused: --netem=delay")
    other = lab.srun("-w", "n2")
    lab.records(other, 1)
    assert "refused: --netem=delay" in lab.steelyard("show", job, other)
    # Nor is it lost where nobody can read the record: the accounting has it.
    comment = lab.comment(job)
    nowhere = lab.steelyard("show", job, "--record-dir", str(lab.work / "nowhere")).splitlines()
    assert nowhere[2] == f"  refused: {comment['refused']} (from the accounting)"
    assert f"n1: refused: {comment['refused']}" in lines[2]


def test_memory_that_a_node_has_can_be_asked_for(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "--mem=100M", "-t", "5", script="true")
    # A row of a job this short can have its end before the rest.
    until(lambda: "mem=100M" in lab.sacct(job, "ReqTRES")[0][0], "what was asked for is there")
    mine = json.loads(lab.steelyard("show", "--mine", "--since", "1h", "--json"))["jobs"]
    assert job in [one["job_id"] for one in mine]
