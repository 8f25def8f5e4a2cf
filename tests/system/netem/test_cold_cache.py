"""`steelyard-node cache --cold`: caches are dropped for who waits for it, and for nobody else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from steelyard.wrappers.base.programs import find_node_program


@pytest.mark.parametrize("waits", [True, False])
def test_caches_are_dropped_for_who_still_waits(tmp_path: Path, waits: bool) -> None:
    """Who has given up has refused the job: its caches would be dropped under the next one."""
    proc = tmp_path / "proc/sys/vm"
    proc.mkdir(parents=True)
    (proc / "drop_caches").write_text("")
    (tmp_path / "proc/meminfo").write_text("Cached: 10 kB\nBuffers: 0 kB\nShmem: 0 kB\n")
    words = ["cache", "--cold", "--no-policy", "--cvmfs-quota=0", "--root", str(tmp_path)]
    reading, writing = os.pipe()
    if not waits:
        os.close(reading)
    done = subprocess.run(
        [find_node_program() or "", *words], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert ((proc / "drop_caches").read_text() == "3\n") == waits
    assert (b"nobody waits" in done.stderr) == (not waits)
