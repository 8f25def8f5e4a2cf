"""What slurmstepd reads and writes itself is not the job's."""

from __future__ import annotations

import sys

import pytest
from tests.system.cluster.test_bpf import measured, switched
from tests.throwaway_lab import KERNEL_COUNTS, Lab

# Truth: the kernel's counters of the program itself, at its end.
PROGRAM = """
import os, time
zeros = os.open("/dev/zero", os.O_RDONLY)
for _ in range(5):
    os.read(zeros, 1_000_000)
time.sleep({sleep_s})
counters = os.open("/proc/self/io", os.O_RDONLY)
print(os.read(counters, 1000).decode())
"""
SMALL = 40_000  # the shell around it, messages between Slurm's daemons


@pytest.mark.parametrize("bpf", ["yes", "no"])
@pytest.mark.parametrize("way", ["batch", "srun"])
@pytest.mark.parametrize("polls", [("--acctg-freq=task=1", 2.5), ("--acctg-freq=task=30", 0.3)])
def test_the_accounting_polls_at_its_own_expense(
    lab: Lab, way: str, polls: tuple[str, float], bpf: str
) -> None:
    """It reads all of /proc (some 100 kB) each second, or only when the step ends."""
    often, sleep_s = polls
    (lab.work / "read.py").write_text(PROGRAM.format(sleep_s=sleep_s))
    options = ("-w", "n1", often, "--tag=a=b")
    command = f"exec {sys.executable} -SE read.py >counters.$SLURM_JOB_ID"
    with switched(lab, f"bpf={bpf}"):
        if way == "batch":
            job = lab.sbatch(*options, script=command)
        else:
            done = lab.run("srun", *options, "sh", "-c", f"echo $SLURM_JOB_ID >id; {command}")
            assert done.returncode == 0, done.stderr
            job = (lab.work / "id").read_text().strip()
        record = measured(lab, job)
    source = "bpf" if bpf == "yes" and KERNEL_COUNTS else "reaped"
    assert record["io"]["source"] == source, record["incomplete_reason"]
    parts = [record["io"]]
    if source == "bpf":  # the lab has no cgroup: nothing else is complete
        parts.append(lab.comment(job))
    text = (lab.work / f"counters.{job}").read_text()
    counters = dict(line.split(": ") for line in text.splitlines() if line)
    # They do not include what it read and wrote to report them.
    truth = {"rchar": int(counters["rchar"]) + len(text) - 1}
    truth["wchar"] = int(counters["wchar"]) + len(text)
    for key, least in truth.items():
        for part in parts:
            assert least <= part[f"{key}_bytes"] <= least + SMALL
