"""`steelyard calibrate` on a real Slurm: every way a job can run is weighed right, on both trackings.

The table is the judge: its limits have their reasons in wrappers/calibrate/limits.py. Red on a plugin
that is wrong: docs/calibrate.md shows it for the version before the table.
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

from steelyard.wrappers.base import node
from steelyard.wrappers.calibrate import job_traces, loads, slurm, ways, words
from steelyard.wrappers.calibrate.table import RECORD, TOLD, Cell, Table
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster import state as cluster_state
from steelyard.wrappers.cluster.config import ClusterConfig, Layout

PATIENCE_S = 120.0  # a loaded machine
OLD = os.environ.get("STEELYARD_CALIBRATE_BUILD")  # a build folder of another version


# How Slurm knows a job's processes, and how it counts: with both by cgroup, jobs are in groups of
# cpuacct and memory; with proctrack alone, in groups that only list them.
TRACKINGS = [("linuxproc", "linux"), ("cgroup", "cgroup"), ("cgroup", "linux")]
# With the third, those that the list of processes matters for.
FEW = ("sbatch", "srun alone, tagged", "sbatch: 10 orphans", "sbatch: 500 processes of 1 ms")


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[slurm.Site]:
    """A cluster of its own: at 10 Hz, with this way to know a job's processes."""
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
        with throwaway.up(config) as cluster, pytest.MonkeyPatch.context() as patch:
            for name, value in cluster.variables().items():
                patch.setenv(name, value)
            work = Path(folder) / "work"
            work.mkdir()
            yield slurm.Site(work, [cluster.record_dir], patience_s=PATIENCE_S)


def chosen(site: slurm.Site, request: pytest.FixtureRequest) -> list[ways.Way]:
    """All, or a few."""
    every = ways.every(maker(site), quick=True)
    few = request.node.callspec.params["site"] == TRACKINGS[2]
    return [way for way in every if way.name in FEW or not few]


def maker(site: slurm.Site) -> ways.Maker:
    """With the load that the nodes see."""
    program = node.find_program("steelyard-load")
    assert program is not None
    if not (site.folder / program.name).exists():
        shutil.copy2(program, site.folder)
    return ways.Maker(site.folder / program.name)


def outside(table: Table) -> list[str]:
    """What is wrong, in words."""
    cells = [f"{c.way}, {words.place(c)}: {' | '.join(words.detail(c))}" for c in table.wrong]
    return cells + [f"{entry.way}: {entry.why}" for entry in table.troubles]


@pytest.mark.parametrize("site", TRACKINGS, ids=" and ".join, indirect=True)
def test_every_way_is_weighed_right(site: slurm.Site, request: pytest.FixtureRequest) -> None:
    table = Table()
    every = chosen(site, request)
    slurm.weigh(site, every, table)
    assert not outside(table), "\n".join(outside(table))
    assert {*table.ways()} == {way.name for way in every}
    assert len(table.cells) >= 6 * len(every)


@pytest.mark.parametrize("site", TRACKINGS[:2], ids=" and ".join, indirect=True)
def test_a_way_that_loses_its_extern_step_is_told_as_incomplete(site: slurm.Site) -> None:
    """slurmstepd of the extern step, with it Slurm's word that the job goes on, killed at once."""
    here = slurm.Site(site.folder / "killed", site.record_dirs, patience_s=PATIENCE_S)
    make = maker(site)
    load = loads.Load("cut short", ("note", "sleep=1", "cpu=0.4", "write=500000"), loads.CALLS)
    way = make.batch("extern step killed", load)
    attempt = slurm.Attempt(way, here.folder)
    slurm.begin(here, attempt)
    until(lambda: loads.results(here.folder), "the load has begun", PATIENCE_S)
    (job,) = slurm.known_jobs(attempt)
    with killed_extern(site, job):
        slurm.wait(here, [attempt])
    found = [one for one in slurm.outcome(here, attempt, False) if isinstance(one, Cell)]
    record = [cell for cell in found if cell.where == RECORD]
    assert record
    assert not outside(Table(found)), "\n".join(outside(Table(found)))
    short = [cell for cell in record if (cell.error or 0) < -cell.limit.less]
    assert all(cell.verdict == TOLD for cell in short)


@contextmanager
def killed_extern(site: slurm.Site, job: str) -> Iterator[None]:
    """Its slurmstepd is killed; what that leaves, since nobody is left to remove it, is removed."""
    conf = Layout(site.record_dirs[0].parent).slurm_conf
    (stepd,) = (
        daemon.pid
        for daemon in cluster_state.leftovers(conf)
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
def test_records_on_the_nodes_own_disks_are_fetched_by_a_job(site: slurm.Site) -> None:
    """Where the folder of records cannot be seen from the login node."""
    here = slurm.Site(site.folder / "fetched", site.record_dirs, patience_s=PATIENCE_S)
    way = maker(site).batch(
        "fetched", loads.Load("brief", ("write=1000",), loads.CALLS), "-N2", "-n2"
    )
    attempt = slurm.Attempt(way, here.folder)
    slurm.begin(here, attempt)
    slurm.wait(here, [attempt])
    (job,) = slurm.known_jobs(attempt)
    (row,) = job_traces.rows([job])[job]
    seen = job_traces.records(site.record_dirs, job)
    found = job_traces.fetch(site.record_dirs[0], job, row, ())
    assert len(seen) == 2
    # Here both nodes see the files of both: each is told twice.
    assert [record for record in found if record in seen] == found
    assert len(found) == 4
