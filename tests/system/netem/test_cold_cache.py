"""`steelyard-node cache --cold`: caches are dropped for a waiting caller, and for no other."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from steelyard.wrappers.base.programs import find_node_program


@pytest.mark.parametrize("waits", [True, False])
def test_caches_are_dropped_for_who_still_waits(tmp_path: Path, waits: bool) -> None:
    """Who has given up has refused the job: its caches would be dropped under the next one."""
    words = command(tmp_path)
    reading, writing = os.pipe()
    if not waits:
        os.close(reading)
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert ((tmp_path / "proc/sys/vm/drop_caches").read_text() == "3\n") == waits
    assert (b"nobody waits" in done.stderr) == (not waits)


def command(root: Path) -> list[str]:
    """Drop the caches of a recorded node."""
    (root / "proc/sys/vm").mkdir(parents=True)
    (root / "proc/sys/vm/drop_caches").write_text("")
    (root / "proc/meminfo").write_text("Cached: 10 kB\nBuffers: 0 kB\nShmem: 0 kB\n")
    words = ("cache", "--cold", "--no-policy", "--cvmfs-quota=0", "--root", str(root))
    return [find_node_program() or "", *words]


@pytest.mark.parametrize("client", ["cvmfs2", "cernvmfs"])  # CERN's, and the one in Rust
def test_a_repository_whose_cache_nothing_wipes_is_reported(tmp_path: Path, client: str) -> None:
    """Its cache on disk stays, so the run is not cold: `collect` marks a run with a refusal invalid."""
    words = command(tmp_path)
    mounts = tmp_path / "proc/self/mounts"
    mounts.parent.mkdir()
    mounts.write_text("/dev/vda / ext4 rw 0 0\nlxcfs /var/lib/lxcfs fuse.lxcfs rw 0 0\n")
    assert refused(words) == []
    with mounts.open("a") as file:
        file.write(f"{client} /cvmfs/lab\\040two fuse ro,nosuid 0 0\n")
    (only,) = refused(words)
    assert only == (
        "CVMFS cache: /cvmfs/lab two is mounted, and there is no /usr/bin/cvmfs_config to wipe its "
        "cache"
    )


def refused(words: list[str]) -> list[str]:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    answer: list[str] = json.loads(done.stdout)["refused"]
    return answer
