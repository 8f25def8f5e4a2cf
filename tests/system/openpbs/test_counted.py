"""The hook of OpenPBS with the kernel's counts: the hook's parent starts the job, as a mom does."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.bpf.conftest import PROGRAM
from tests.system.bpf.conftest import able as able  # noqa: PLC0414
from tests.system.bpf.conftest import load as load  # noqa: PLC0414
from tests.system.job.test_counted import Place, storm, truth_of
from tests.system.job.test_counted import folder as folder  # noqa: PLC0414
from tests.system.job.test_counted import place as place  # noqa: PLC0414
from tests.system.openpbs.conftest import USER, Mom, job


@pytest.fixture(autouse=True)
def mom_name() -> Iterator[None]:
    """We are the mom: and not what has our name and has started us, as of a worker of pytest."""
    comm = Path("/proc/self/comm")
    before = comm.read_text().rstrip("\n")
    comm.write_text("pbs_mom")
    yield
    comm.write_text(before)


@pytest.mark.parametrize("asked", ["yes", "no"])
def test_a_storm_that_nobody_waits_for(
    mom: Mom, place: Place, folder: Path, tmp_path: Path, asked: str
) -> None:
    """What is in the record beyond the load is the shell's own; not where it is not wanted."""
    inside = tmp_path / "python"
    inside.write_text(f'#!/bin/sh\nexec {" ".join(place.around)} {mom.python} "$@"\n')
    inside.chmod(0o755)
    mom.python = str(inside)
    mom.config["bpf"] = asked
    subprocess.run([*place.around, PROGRAM, "load"], check=True)
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
