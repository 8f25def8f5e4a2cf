"""`steelyard calibrate` on a real Slurm: every launch method is measured right, on both trackings.

The table is the judge: its limits have their reasons in wrappers/calibrate/limits.py. Red on a plugin
that is wrong.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.throwaway_lab import command_line, until

from steelyard.wrappers.base import programs
from steelyard.wrappers.calibrate import job_system, jobs, known_loads
from steelyard.wrappers.calibrate.job_system import LaunchMethod
from steelyard.wrappers.calibrate.known_loads import KnownLoad
from steelyard.wrappers.calibrate.slurm_jobs import SlurmJobs
from steelyard.wrappers.calibrate.table import RECORD, STATED, Cell, Table, format_detail
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster import daemons
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout

PATIENCE_S = 120.0  # a loaded machine
OLD = os.environ.get("STEELYARD_CALIBRATE_BUILD")  # a build folder of another version


# How Slurm knows a job's processes, and how it counts: with both by cgroup, jobs are in groups of
# cpuacct and memory; with proctrack alone, in groups that only list them.
TRACKINGS = [("linuxproc", "linux"), ("cgroup", "cgroup"), ("cgroup", "linux")]
# With the third, those that the list of processes matters for.
FEW = ("sbatch", "srun alone, tagged", "sbatch: 10 orphans", "sbatch: 500 processes of 1 ms")


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[jobs.Site]:
    """Start a private cluster at 10 Hz, which detects a job's processes as the parameter states."""
    proctrack, gather = request.param
    if proctrack == "cgroup" and os.geteuid() != 0:
        pytest.skip("proctrack/cgroup needs root")
    plugin, program = throwaway.find_plugin()
    if OLD:
        plugin, program = Path(OLD) / "lib" / plugin.name, Path(OLD) / "bin" / program.name
    with tempfile.TemporaryDirectory(prefix="sycal-", dir="/tmp") as folder:
        config = ClusterConfig(
            dir=Path(folder) / "c",
            plugin=plugin,
            node_program=program,
            sample_rate_hz=10,
            proctrack=proctrack,
            gather=gather,
        )
        with throwaway.start_cluster(config) as cluster, pytest.MonkeyPatch.context() as patch:
            for name, value in cluster.variables().items():
                patch.setenv(name, value)
            work = Path(folder) / "work"
            work.mkdir()
            program = programs.find_program("steelyard-load")
            assert program is not None
            system = SlurmJobs(Path(shutil.copy2(program, work)))
            yield jobs.Site(system, work, [cluster.record_dir], PATIENCE_S)


def outside(table: Table) -> list[str]:
    """What is wrong, in words."""
    cells = [f"{c.launch_method}: {' | '.join(format_detail(c))}" for c in table.wrong]
    return cells + [f"{entry.launch_method}: {entry.reason}" for entry in table.troubles]


@pytest.mark.parametrize("site", TRACKINGS, ids=" and ".join, indirect=True)
def test_every_launch_method_is_measured_right(
    site: jobs.Site, request: pytest.FixtureRequest
) -> None:
    table = Table()
    few = request.node.callspec.params["site"] == TRACKINGS[2]
    methods = [one for one in site.system.list_methods(quick=True) if one.name in FEW or not few]
    jobs.measure(site, methods, table)
    assert not outside(table), "\n".join(outside(table))
    assert {cell.launch_method for cell in table.cells} == {method.name for method in methods}
    assert len(table.cells) >= 6 * len(methods)


def begun(site: jobs.Site, method: LaunchMethod) -> jobs.Attempt:
    """Whether its job is submitted."""
    attempt = jobs.Attempt(site, method, site.folder / method.name)
    attempt.submit()
    return attempt


@pytest.mark.parametrize("site", TRACKINGS[:2], ids=" and ".join, indirect=True)
def test_a_job_that_loses_its_extern_step_has_an_incomplete_record(site: jobs.Site) -> None:
    """slurmstepd of the extern step, with it Slurm's word that the job goes on, killed at once."""
    actions = ("note", "sleep=1", "cpu=0.4", "write=500000")
    load = KnownLoad("truncated", actions, known_loads.CALLS)
    attempt = begun(site, site.system.script_method("extern step killed", load))
    until(lambda: attempt.results, "the load has begun", PATIENCE_S)
    (job,) = attempt.list_jobs()
    with killed_extern(site, job):
        jobs.wait_for_attempts([attempt])
    found = [one for one in attempt.make_cells() if isinstance(one, Cell)]
    record = [cell for cell in found if cell.where == RECORD]
    assert record
    assert not outside(Table(record)), "\n".join(outside(Table(record)))
    short = [cell for cell in record if (cell.error or 0) < -cell.limit.less]
    assert all(cell.verdict == STATED for cell in short)


@contextmanager
def killed_extern(site: jobs.Site, job: str) -> Iterator[None]:
    """Its slurmstepd is killed; what that leaves, since nobody is left to remove it, is removed."""
    conf = Layout(site.record_dirs[0].parent).slurm_conf
    (stepd,) = (
        daemon.pid
        for daemon in daemons.find_leftovers(conf)
        if command_line(daemon.pid).startswith(f"slurmstepd: [{job}.extern]")
    )
    (sleeper,) = Path(f"/proc/{stepd}/task/{stepd}/children").read_text().split()
    groups = Path(f"/proc/{sleeper}/cgroup").read_text().splitlines()
    os.kill(stepd, signal.SIGKILL)
    try:
        yield
    finally:
        os.kill(int(sleeper), signal.SIGKILL)
        for line in groups:
            _, controller, path = line.split(":", 2)
            above, found, _ = path.partition(f"/job_{job}/")
            if found:
                remove_group(Path(f"/sys/fs/cgroup/{controller}{above}/job_{job}"))


def remove_group(group: Path) -> None:
    """A cgroup whose last process is ending, and those within it; unless another cluster's job of
    the same name is in it."""
    end = time.monotonic() + 5
    while group.exists() and time.monotonic() < end:
        for folder in sorted([group, *(path for path in group.rglob("*"))], reverse=True):
            if folder.is_dir():
                with suppress(OSError):
                    folder.rmdir()
        time.sleep(0.05)


@pytest.mark.parametrize("site", TRACKINGS[:1], ids=" and ".join, indirect=True)
def test_records_on_the_nodes_own_disks_are_fetched_by_a_job(site: jobs.Site) -> None:
    """Where the folder of records cannot be seen from the login node."""
    load = KnownLoad("brief", ("write=1000",), known_loads.CALLS)
    attempt = begun(site, site.system.script_method("fetched", load, nodes=2))
    jobs.wait_for_attempts([attempt])
    (job,) = attempt.list_jobs()
    reports = site.system.query_reports([job])[job]
    seen = job_system.read_records(site.record_dirs, job)
    # Here both nodes see the files of both.
    found = site.system.fetch_records(site.record_dirs[0], job, reports)
    assert len(seen) == 2
    assert sorted(map(str, found)) == sorted(map(str, seen))
