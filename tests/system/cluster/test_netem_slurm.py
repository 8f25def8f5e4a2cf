"""Network conditions as an option of sbatch and srun: requested, in force, undone; or refused."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster.netem_lab import BEHIND, DEVICE, RATE, a_device, states, tree, wait_undone
from tests.throwaway_lab import Lab, command_line, until

SEND = f"bash -c 'for i in 1 2 3 4 5; do echo x >/dev/udp/{BEHIND}/9; done'"
NETEM_OPTION = "SLURM_SPANK__SLURM_SPANK_OPTION_steelyard_netem"


@pytest.fixture
def before() -> Iterator[str]:
    """The device's queues before the test; they must be there again after it."""
    with a_device() as queues:
        yield queues
        assert tree() == queues


def has_netem() -> bool:
    """Whether this machine's kernel has sch_netem, in it or as a module."""
    release = os.uname().release
    for name in ("modules.dep", "modules.builtin"):
        path = Path("/lib/modules") / release / name
        if path.is_file() and "sch_netem" in path.read_text():
            return True
    return False


def test_a_rate_holds_for_the_job_and_is_undone_after_it(lab: Lab, before: str) -> None:
    script = f"tc qdisc show dev {DEVICE} >during; {SEND}; sleep 0.3"
    job = lab.sbatch("-w", "n1", f"--netem={RATE}", script=script)
    lab.wait_state(job, "COMPLETED")
    wait_undone(lab, before)
    assert "tbf" in (lab.work / "during").read_text()
    (record,) = lab.records(job, 1, complete=False)
    conditions = record["network_conditions"]
    assert conditions["requested"] == RATE
    assert conditions["scope"] == "job"
    assert conditions["undone"] is True
    assert conditions["undone_by"] == "job"
    assert conditions["counters"]["sent_packets"] >= 5, "the job's own packets were shaped"
    assert record["tags"]["network"] == RATE
    comment = lab.comment(job)
    assert comment["netem"] == RATE
    assert comment["netem_valid"] is not False


def test_steps_of_a_job_share_its_conditions_and_cannot_have_others(lab: Lab, before: str) -> None:
    script = f"srun true; srun --netem=rate=20mbit,dev={DEVICE} true; echo $? >code"
    job = lab.sbatch("-w", "n1", "-o", "out", f"--netem={RATE}", script=script)
    lab.wait_state(job, "COMPLETED")
    assert (lab.work / "code").read_text() == "4\n"
    assert f"steelyard: --netem=rate=20mbit,dev={DEVICE}: " in (lab.work / "out").read_text()
    wait_undone(lab, before)


def test_a_job_of_srun_alone_has_conditions_on_each_node(lab: Lab, before: str) -> None:
    job = lab.srun("-w", "n[1-2]", "-N2", f"--netem={RATE}")
    wait_undone(lab, before)
    records = lab.records(job, 2, complete=False)
    assert [record["network_conditions"]["requested"] for record in records] == [RATE, RATE]


@pytest.mark.skipif(has_netem(), reason="this kernel has sch_netem")
@pytest.mark.parametrize("kind", ["sbatch", "srun"])
def test_what_this_kernel_cannot_do_ends_the_job_with_4_and_one_line(
    lab: Lab, before: str, kind: str
) -> None:
    option = f"--netem=delay=50ms,dev={DEVICE}"
    if kind == "srun":
        done = lab.run("srun", "-w", "n1", option, "touch", "ran")
        assert done.returncode == 4
        text = done.stderr
    else:
        job = lab.sbatch("-w", "n1", "--requeue", "-o", "out", option, script="touch ran")
        lab.wait_state(job, "FAILED")
        assert lab.sacct(job, "ExitCode") == [["4:0"]]
        text = (lab.work / "out").read_text()
    lines = [line for line in text.splitlines() if line.startswith("steelyard: ")]
    assert len(lines) == 1
    assert lines[0].startswith(f"steelyard: {option}: ")
    assert "sch_netem" in lines[0]
    assert not (lab.work / "ran").exists()
    assert tree() == before
    assert states(lab) == []


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("rate=10mbit,dev=eth0", "eth0"),
        (f"rate=10mbit,to=127.0.0.1,dev={DEVICE}", "127.0.0.1"),
        ("rate=10mbit;reboot", "rate"),
        ("rate=$(reboot)", "rate"),
        ("rate=10mbit,dev=../../dev/sda", "dev"),
        ("delay=" + "9" * 4090, "netem"),
        (f"delay=-5ms,dev={DEVICE}", "delay"),
        ("delay=1h", "delay"),
    ],
)
def test_a_request_that_is_not_allowed_is_refused_before_anything_is_queued(
    commands: Lab, before: str, spec: str, says: str
) -> None:
    done = commands.run("sbatch", f"--netem={spec}", "--wrap", "true")
    assert done.returncode != 0
    assert "Submitted" not in done.stdout
    complaint = done.stderr.splitlines()[0]
    assert "steelyard: --netem=" in complaint
    assert says in complaint.split(": ", 3)[-1]
    assert tree() == before


def test_a_request_forged_in_the_jobs_environment_is_refused(lab: Lab, before: str) -> None:
    script = f"export {NETEM_OPTION}='rate=1mbit,dev=lo;reboot'; srun touch ran"
    job = lab.sbatch("-w", "n1", "-o", "out", script=script)
    lab.wait_state(job, "FAILED")
    assert "steelyard: --netem=rate=1mbit,dev=lo;reboot: " in (lab.work / "out").read_text()
    assert not (lab.work / "ran").exists()
    assert tree() == before


def test_a_job_that_asks_for_nothing_leaves_no_trace(lab: Lab, before: str) -> None:
    job = lab.srun("-w", "n1")
    (record,) = lab.records(job, 1, complete=False)
    assert record["network_conditions"] is None
    assert tree() == before


def test_none_is_noted_and_touches_nothing(lab: Lab, before: str) -> None:
    job = lab.sbatch("-w", "n1", "--netem=none", script=f"tc qdisc show dev {DEVICE} >during")
    lab.wait_state(job, "COMPLETED")
    assert (lab.work / "during").read_text() in before
    assert lab.records(job, 1, complete=False)[0]["tags"] == {"network": "none"}


def test_a_cold_cache_that_is_refused_is_refused_to_every_step(lab: Lab) -> None:
    policy = lab.cluster.dir / "etc" / "netem.conf"
    allowed = policy.read_text()
    policy.write_text(allowed.replace("exclusive_only no ", "exclusive_only yes "))
    steps = "for i in 1 2; do srun true; echo $?; done; echo job $SLURM_JOB_ID"
    try:
        done = lab.run("salloc", "-Q", "-w", "n1", "-n1", "--cache=cold", "bash", "-c", steps)
    finally:
        policy.write_text(allowed)
    *codes, word = done.stdout.splitlines()
    assert codes == ["4", "4"]
    assert done.stderr.count("steelyard: --cache=cold: ") == 2
    (record,) = lab.records(word.split()[1], 1, complete=False)
    assert record["cache"] is None
    assert record["missing"]["cache"].startswith("refused: --cache=cold: ")


def test_the_jobs_tasks_and_nobody_else_are_in_its_cgroup(lab: Lab, before: str) -> None:
    """Where Slurm itself has no cgroup2: srun's messages and slurmstepd's are not the job's."""
    script = "touch running.$SLURM_JOB_ID; srun sh -c 'echo $$ >step; sleep 60'"
    job = lab.sbatch("-w", "n1", f"--netem={RATE}", script=script)
    until((lab.work / "step").exists, "the step runs")
    state = json.loads((lab.cluster.dir / f"run/steelyard/netem/n1.{job}.json").read_text())
    pids = set(map(int, Path(state["join_path"]).read_text().split()))
    lines = {pid: command_line(pid) for pid in pids}
    lab.run("scancel", job)
    wait_undone(lab, before)
    assert int((lab.work / "step").read_text()) in pids
    assert any("slurm_script" in line for line in lines.values())
    assert not any("slurmstepd" in line for line in lines.values()), lines
    until(lambda: not Path(state["join_path"]).exists(), "the job's cgroup is gone")
