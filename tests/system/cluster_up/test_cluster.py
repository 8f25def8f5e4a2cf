"""The throwaway cluster without Slurm: configuration, refusals, whose processes it may end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.cluster.test_cluster import state_of

from steelyard.wrappers.base import leftovers
from steelyard.wrappers.cluster import cluster, daemons
from steelyard.wrappers.cluster.daemons import Daemon


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def test_a_process_id_that_belongs_to_somebody_else_now_is_not_ended(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    ticks = leftovers.read_start_ticks(sleeper.pid)
    assert ticks is not None
    stranger = Daemon("slurmctld", sleeper.pid, ticks - 1)
    state_of(tmp_path, stranger).save()
    assert not cluster.stop_cluster(tmp_path)
    time.sleep(0.1)
    assert sleeper.poll() is None


def test_nothing_is_ended_after_the_machine_was_started_anew(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    ticks = leftovers.read_start_ticks(sleeper.pid)
    assert ticks is not None
    state = state_of(tmp_path, Daemon("slurmctld", sleeper.pid, ticks))
    state.boot_id = "another"
    state.save()
    assert not cluster.stop_cluster(tmp_path)
    assert sleeper.poll() is None


def test_down_ends_what_was_started_and_may_be_repeated(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    stubborn = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert stubborn.stdout is not None
    assert stubborn.stdout.readline() == b"1\n", "it ignores SIGTERM by now"
    ticks = leftovers.read_start_ticks(stubborn.pid)
    assert ticks is not None
    daemon = Daemon("munged", stubborn.pid, ticks)
    state_of(tmp_path, daemon).save()
    loaded = daemons.load_state(tmp_path)
    assert loaded is not None
    assert loaded.daemons == [daemon]
    begin = time.monotonic()
    assert daemons.end_daemons([daemon], patience_s=0.3) == []
    assert time.monotonic() - begin >= 0.3, "SIGTERM was ignored: SIGKILL after the patience"
    with stubborn:
        stubborn.wait()
    assert not cluster.stop_cluster(tmp_path)
    assert not cluster.stop_cluster(tmp_path)


def test_a_zombie_is_not_alive() -> None:
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert leftovers.read_start_ticks(pid) is None
    os.waitpid(pid, 0)


def test_what_a_killed_extern_step_leaves_behind_is_ended_with_the_cluster(tmp_path: Path) -> None:
    """Its `sleep` belongs to nobody any more; other people's is left alone."""
    conf = tmp_path / "slurm.conf"
    argv = ["sleep", "100000000"]
    with (
        subprocess.Popen(argv, env={**os.environ, "SLURM_CONF": str(conf)}) as ours,
        subprocess.Popen(argv, env={**os.environ, "SLURM_CONF": f"{conf}.other"}) as other,
    ):
        try:
            until = time.monotonic() + 90
            while time.monotonic() < until and len(daemons.find_leftovers(conf)) != 1:
                time.sleep(0.02)
            assert [daemon.pid for daemon in daemons.find_leftovers(conf)] == [ours.pid]
        finally:
            ours.kill()
            other.kill()
