"""The largest memory of a job does not hang on when samples were taken."""

from __future__ import annotations

import sys

import pytest
from tests.throwaway_lab import KERNEL_COUNTS, Lab

HOLD = 200_000_000
# Truth: the kernel's report to the program itself on its largest resident set.
PROGRAM = f"""
import resource
memory = bytearray({HOLD})
memory[::4096] = b"x" * len(memory[::4096])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


@pytest.mark.parametrize("way", ["batch", "srun"])
def test_a_process_that_no_sample_saw_has_its_memory(lab: Lab, way: str) -> None:
    """It lives for a part of the 100 s between two samples."""
    (lab.work / "hold.py").write_text(PROGRAM)
    options = ("-w", "n1", "--sample-rate=0.01", "--tag=a=b")
    command = f"{sys.executable} hold.py >largest"
    if way == "batch":
        job = lab.sbatch(*options, script=command)
    else:
        script = f"{command}; echo $SLURM_JOB_ID >id"
        assert lab.run("srun", *options, "sh", "-c", script).returncode == 0
        job = (lab.work / "id").read_text().strip()
        lab.jobs.append(job)
    (record,) = lab.records(job, 1)
    truth = int((lab.work / "largest").read_text())
    assert truth >= HOLD
    # It may grow by some pages after its query.
    for measured in (record["memory"]["max_memory_bytes"], lab.comment(job)["max_memory_bytes"]):
        assert truth <= measured <= truth + 2_000_000
    # Both are the largest process' maximum; where they are equal the first of the two is named.
    assert record["memory"]["source"] in ({"bpf", "rusage"} if KERNEL_COUNTS else {"rusage"})
