"""The hook of OpenPBS with the kernel's counts: the hook's parent starts the job, as a mom does."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.bpf.conftest import PROGRAM
from tests.system.bpf.conftest import able as able  # noqa: PLC0414
from tests.system.bpf.conftest import load as load  # noqa: PLC0414
from tests.system.job.test_kernel_count import Place, storm, truth_of
from tests.system.job.test_kernel_count import folder as folder  # noqa: PLC0414
from tests.system.job.test_kernel_count import place as place  # noqa: PLC0414
from tests.system.openpbs.conftest import USER, Mom, job
from tests.waiting import wait_for

BURN = "for ((i = 0; i < 8000; i++)); do :; done"  # less than a group and steps may differ by


@pytest.fixture(autouse=True)
def mom_name() -> Iterator[None]:
    """We are the mom: and not what has our name and has started us, as of a worker of pytest."""
    comm = Path("/proc/self/comm")
    before = comm.read_text().rstrip("\n")
    comm.write_text("pbs_mom")
    yield
    comm.write_text(before)


def enter(mom: Mom, place: Place, tmp_path: Path) -> None:
    """Run the hook in a mount namespace where the program in the kernel is loaded."""
    inside = tmp_path / "python"
    inside.write_text(f'#!/bin/sh\nexec {" ".join(place.around)} {mom.python} "$@"\n')
    inside.chmod(0o755)
    mom.python = str(inside)
    mom.config["bpf"] = "yes"
    subprocess.run([*place.around, PROGRAM, "load"], check=True)


@pytest.mark.parametrize("asked", ["yes", "no"])
def test_a_storm_that_nobody_waits_for(
    mom: Mom, place: Place, folder: Path, tmp_path: Path, asked: str
) -> None:
    """What is in the record beyond the load is the shell's own; not where it is not wanted."""
    enter(mom, place, tmp_path)
    mom.config["bpf"] = asked
    ours = job(id="41.vm")
    assert mom.run({"event": "EXECJOB_BEGIN", "job": ours})["log"] == []
    environment = {"PBS_JOBID": "41.vm", "PATH": os.environ["PATH"]}
    subprocess.run(storm(folder, "41.vm"), check=True, env=environment, user=USER, group=USER)
    assert mom.run({"event": "EXECJOB_EPILOGUE", "job": {**ours, "Exit_status": "0"}})["log"] == []
    record = mom.record("41.vm")
    if asked == "no":
        assert "bpf" not in record
        return
    assert record["complete"] is True, record["incomplete_reason"]
    truth = truth_of(folder, "41.vm")
    beyond = {name: record["io"][name] - truth[name] for name in truth}
    assert 0 < beyond["rchar_bytes"] < 20_000
    assert beyond["wchar_bytes"] == 0
    assert record["io"]["source"] == "bpf"


@pytest.fixture
def group(mom: Mom) -> Iterator[Path]:
    """Yield the job's cgroup of the hook pbs_cgroups."""
    mount = Path("/sys/fs/cgroup/cpuacct")
    if not (mount / "cpuacct.usage").exists():
        pytest.skip("needs cgroup version 1")
    made = mount / f"pbs_jobs.service/jobid/{os.getpid()}.vm"
    made.mkdir(parents=True)
    yield made
    for level in (made, made.parent, made.parent.parent):
        with contextlib.suppress(OSError):  # another's job may be in it
            level.rmdir()


def test_a_removed_group_hides_nothing_that_the_kernel_counted(
    mom: Mom, place: Place, group: Path, tmp_path: Path
) -> None:
    """pbs_cgroups removes the group before our hook handles the job's end.

    The sampler has read it only before the job's first process.
    """
    enter(mom, place, tmp_path)
    ours = job(id=group.name)
    assert mom.run({"event": "EXECJOB_BEGIN", "job": ours})["log"] == []
    (samples,) = (mom.records / group.name).glob("*.csv")
    wait_for("samples", lambda: len(samples.read_text().splitlines()) > 2)
    user = f"exec setpriv --reuid={USER} --regid={USER} --clear-groups"
    script = f"echo $$ >{group}/cgroup.procs; {user} bash -c '{BURN}; times'"
    done = subprocess.run(
        ["sh", "-c", script], check=True, capture_output=True, text=True,
        env={"PBS_JOBID": group.name, "PATH": os.environ["PATH"]},
    )  # fmt: skip
    group.rmdir()
    assert mom.run({"event": "EXECJOB_EPILOGUE", "job": {**ours, "Exit_status": "0"}})["log"] == []
    record = mom.record(group.name)
    truth_s = sum(float(word.rstrip("s").partition("m")[2]) for word in done.stdout.split()[:2])
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["cpu"]["source"] == "bpf"
    assert truth_s - 0.002 <= record["cpu"]["cpu_s"] <= truth_s + 0.05  # times prints ms
