"""A folder of records on a file system that does not answer, as NFS whose server is away: jobs start,
end and are told; nothing of them waits for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster.test_bpf import switched
from tests.throwaway_lab import Lab, until

UNTIL_TOLD = "touch running.$SLURM_JOB_ID; until [ -e go ]; do sleep 0.1; done"


class Mounted:
    """A file system that a process of ours answers for, and what is behind it."""

    def __init__(self, folder: Path) -> None:
        self.behind, self.at = folder / "behind", folder / "records"
        for path in (self.behind, self.at):
            path.mkdir()
        argv = ["bindfs", "-f", str(self.behind), str(self.at)]
        self.server = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        until(lambda: os.path.ismount(self.at), "it is mounted")

    def hang(self) -> None:
        self.server.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        self.server.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.answer()
        subprocess.run(["umount", "--lazy", str(self.at)], check=True)
        self.server.terminate()
        self.server.wait()


@pytest.fixture
def mounted(lab: Lab) -> Iterator[Mounted]:
    if os.geteuid() != 0 or shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("root mounts it, by bindfs and /dev/fuse")
    made = Mounted(lab.work)
    try:
        yield made
    finally:
        made.end()


def test_a_folder_that_hangs_holds_no_job_and_no_node(lab: Lab, mounted: Mounted) -> None:
    """One job ends while it hangs, another begins and ends. Both records are whole afterwards."""
    with switched(lab, f"record_dir={mounted.at}"):
        first = lab.sbatch("-w", "n1", "--tag=k=first", script=UNTIL_TOLD)
        lab.wait_running(first)
        until(lambda: list(mounted.behind.rglob(f"{first}/*.json")), "its record is begun")
        mounted.hang()
        second = lab.sbatch("-w", "n2", "--tag=k=second", script=UNTIL_TOLD)
        lab.wait_running(second)
        (lab.work / "go").touch()
        for job in (first, second):
            until(lambda job=job: job not in lab.queued(), f"job {job} has ended")
            assert lab.sacct(job, "State") == [["COMPLETED"]]
        until(lambda: lab.nodes() <= {"idle"}, "no node is held or drained")
        comment = lab.comment(first)
        assert comment["tags"] == {"k": "first"}
        # Its sampler hangs over a sample, or it has just written one.
        assert (comment["cpu_s"] is None) == (comment["nodes_weighed"] == 0)
        mounted.answer()
        for job in (first, second):
            until(
                lambda job=job: [
                    path
                    for path in mounted.behind.rglob(f"{job}/*.json")
                    if '"end_unix_s"' in path.read_text()
                ],
                f"the record of job {job} is final once the folder answers",
            )
