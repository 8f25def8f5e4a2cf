"""CVMFS' cache is wiped with its limit: a stand-in for cvmfs_config, in a mount namespace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("STEELYARD_NODE") or str(ROOT / "build" / "bin" / "steelyard-node")
# An overlay puts the program into /usr/bin and the folder into /etc, for this test alone.
SCRIPT = """
set -e
mount -t tmpfs none "$1"
mkdir -p "$1"/usr "$1"/usrwork "$1"/etc/cvmfs/default.d "$1"/etcwork
printf '#!/bin/sh\\necho "$@" $(cat /etc/cvmfs/default.d/*) >> %s/said\\nexit %s\\n' "$1" "$2" \
    > "$1"/usr/cvmfs_config
chmod +x "$1"/usr/cvmfs_config
mount -t overlay none -o lowerdir=/usr/bin,upperdir="$1"/usr,workdir="$1"/usrwork /usr/bin
mount -t overlay none -o lowerdir=/etc,upperdir="$1"/etc,workdir="$1"/etcwork /etc
"$3" cache --cold --no-policy --cvmfs-quota 4000000000
"$3" cache --cold --no-policy
cat "$1"/said
"""

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]


def run(folder: Path, exit_code: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT, "sh", str(folder), str(exit_code), PROGRAM],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_cache_is_wiped_and_its_limit_set_and_removed(tmp_path: Path) -> None:
    done = run(tmp_path, 0)
    limited, plain, *said = done.stdout.splitlines()
    assert json.loads(limited)["done"][:2] == ["CVMFS cache", "CVMFS limit 4000 MB"]
    assert json.loads(plain)["done"] == ["CVMFS cache", "page cache", "dentries and inodes"]
    assert said == ["wipecache CVMFS_QUOTA_LIMIT=4000", "wipecache"]


def test_a_cache_that_cannot_be_wiped_is_not_cold(tmp_path: Path) -> None:
    done = run(tmp_path, 1)
    assert (done.returncode, done.stdout) == (4, "")
    assert "cache=cold: CVMFS' cache was not wiped: cvmfs_config wipecache" in done.stderr
