"""Every way a job with network conditions can die: the node's queues are restored, byte for byte.

STEELYARD_FAULT_TRIES is the number of tries of each (1; a soak: 30); the table is printed at the
end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system.cluster.netem_lab import RATE, a_device, tree, wait_undone
from tests.throwaway_lab import Lab, command_line, until

from steelyard.wrappers.cluster import daemons
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

TRIES = int(os.environ.get("STEELYARD_FAULT_TRIES", "1"))
NODE = "n1"
SILENT = "198.51.100.77"  # an address of the device's network (TEST-NET-2) that nobody has
TABLE: dict[str, tuple[int, int, float]] = {}  # way: tries, undone, slowest seconds


@pytest.fixture(scope="module")
def before(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device's queues before all tests; the table of what was tried after them."""
    with a_device() as queues:
        yield queues
    plugins = request.config.pluginmanager
    with plugins.getplugin("capturemanager").global_and_fixture_disabled():
        line = plugins.getplugin("terminalreporter").write_line
        line(f"\n{'way of dying':<44}{'tries':>6}{'undone':>8}{'slowest':>10}")
        for way, (tries, undone, slowest_s) in TABLE.items():
            line(f"{way:<44}{tries:>6}{undone:>8}{slowest_s:>8.1f} s")


UNTIL_TOLD = "until [ -e end.$SLURM_JOB_ID ]; do sleep 0.1; done"


def start(lab: Lab, during: str = "exec sleep 600") -> str:
    """A job that is being shaped; its id."""
    script = f"echo $$ >pid; mv pid running.$SLURM_JOB_ID; {during}"
    job = lab.sbatch("-w", NODE, f"--netem={RATE}", script=script)
    lab.wait_running(job)
    assert "tbf" in tree()
    return job


def let_end(lab: Lab, job: str) -> None:
    """Start a job that continues until it is stopped."""
    (lab.work / f"end.{job}").touch()
    lab.wait_state(job, "COMPLETED")


def end(lab: Lab, job: str) -> None:
    """Cancel it; a script whose slurmstepd was killed is nobody's any more, and would go on."""
    lab.run("scancel", job)
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((lab.work / f"running.{job}").read_text()), signal.SIGKILL)


def kill(*pids: int) -> None:
    """All at once, as far as that goes."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def samplers(lab: Lab) -> list[int]:
    """Return the samplers of the running job."""
    return list(until(lambda: sorted(lab.samplers()), "the sampler runs"))


def next_job(lab: Lab) -> None:
    """Whoever comes next on the node undoes what nobody was left to undo."""
    lab.srun("-w", NODE, "--overlap")


def slurmd(lab: Lab) -> int:
    """Return the node's slurmd."""
    return [d.pid for d in lab.cluster.state.list_running() if d.name == f"slurmd.{NODE}"][-1]


def restart_slurmd(lab: Lab) -> None:
    """Restart slurmd as a service manager does."""
    starter = daemons.Starter(
        ClusterConfig(dir=lab.cluster.dir), lab.cluster.state, lab.cluster.environment()
    )
    starter.start_slurmd(NODE)


def ends_by_itself(lab: Lab) -> None:
    let_end(lab, start(lab, UNTIL_TOLD))


def is_cancelled(lab: Lab) -> None:
    lab.run("scancel", start(lab))


def fails(lab: Lab) -> None:
    job = lab.sbatch("-w", NODE, f"--netem={RATE}", script="kill -9 $$")
    lab.wait_state(job, "FAILED")


def loses_its_extern_stepd(lab: Lab) -> None:
    """The job goes on, and under its conditions."""
    job = start(lab)
    kill(*lab.stepds(job, "extern"))
    time.sleep(0.5)
    assert "tbf" in tree()
    lab.run("scancel", job)


def loses_its_batch_stepd(lab: Lab) -> None:
    job = start(lab)
    kill(*lab.stepds(job, "batch"))
    end(lab, job)


def loses_its_sampler(lab: Lab) -> None:
    job = start(lab)
    kill(*samplers(lab))
    lab.run("scancel", job)


def loses_sampler_and_extern_stepd(lab: Lab) -> None:
    job = start(lab)
    kill(*samplers(lab), *lab.stepds(job, "extern"))
    lab.run("scancel", job)
    next_job(lab)


def loses_sampler_and_all_stepds(lab: Lab) -> None:
    job = start(lab)
    kill(*samplers(lab), *lab.stepds(job, "extern"), *lab.stepds(job, "batch"))
    end(lab, job)
    next_job(lab)


def applying(job: str) -> list[int]:
    """The program that puts a job's conditions in place."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        line = command_line(int(path.name))
        if "steelyard-node netem apply " in line and f" --job-id {job} " in line:
            found.append(int(path.name))
    return found


def loses_all_stepds_while_echoes_are_under_way(lab: Lab) -> None:
    """Nobody answers them: before and after it is put in place, 0.4 s each. Nobody comes next."""
    job = lab.sbatch("-w", NODE, f"--netem={RATE},to={SILENT}", script="sleep 1")
    (pid,) = until(lambda: applying(job), "conditions are being put in place")
    kill(*lab.stepds(job, "extern"), *lab.stepds(job, "batch"))
    lab.run("scancel", job)
    until(lambda: command_line(pid) == "", "whoever puts them in place has ended")


def loses_slurmd(lab: Lab) -> None:
    job = start(lab, UNTIL_TOLD)
    kill(slurmd(lab))
    time.sleep(0.5)
    restart_slurmd(lab)
    let_end(lab, job)


def loses_everything(lab: Lab) -> None:
    job = start(lab)
    pids = [*samplers(lab), *lab.stepds(job, "extern"), *lab.stepds(job, "batch")]
    kill(slurmd(lab), *pids)
    end(lab, job)
    restart_slurmd(lab)


WAYS: list[Callable[[Lab], None]] = [
    ends_by_itself,
    is_cancelled,
    fails,
    loses_its_extern_stepd,
    loses_its_batch_stepd,
    loses_its_sampler,
    loses_sampler_and_extern_stepd,
    loses_sampler_and_all_stepds,
    loses_all_stepds_while_echoes_are_under_way,
    loses_slurmd,
    loses_everything,
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_however_a_job_dies_its_conditions_are_undone(
    lab: Lab, before: str, way: Callable[[Lab], None]
) -> None:
    name = way.__name__.replace("_", " ")
    undone, slowest_s = 0, 0.0
    for tries in range(1, TRIES + 1):
        TABLE[name] = (tries, undone, slowest_s)
        way(lab)
        ended = time.monotonic()
        wait_undone(lab, before)
        undone, slowest_s = undone + 1, max(slowest_s, time.monotonic() - ended)
        TABLE[name] = (tries, undone, slowest_s)
        lab.wait_nodes("idle", "mixed", what="the node is up again")
