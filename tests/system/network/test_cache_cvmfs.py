"""CVMFS' cache is wiped with its limit: a replacement of cvmfs_config, in a mount namespace."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = os.environ.get("STEELYARD_NODE") or str(ROOT / "build" / "bin" / "steelyard-node")
# An overlay puts the program into /usr/bin and the folder into /etc, for this test alone.
SCRIPT = """
set -e
mount -t tmpfs none "$1"
mkdir -p "$1"/usr "$1"/usrwork "$1"/etc/cvmfs/default.d "$1"/etcwork
printf '#!/bin/sh\\necho "$@" $(cat /etc/cvmfs/default.d/*) >> %s/said\\nsleep %s\\ncat %s\\nexit %s\\n' \
    "$1" "$5" "$4" "$2" > "$1"/usr/cvmfs_config
chmod +x "$1"/usr/cvmfs_config
mount -t overlay none -o lowerdir=/usr/bin,upperdir="$1"/usr,workdir="$1"/usrwork /usr/bin
mount -t overlay none -o lowerdir=/etc,upperdir="$1"/etc,workdir="$1"/etcwork /etc
"""
THRICE = """
"$3" cache --cold --no-policy --cvmfs-quota 4000000000
"$3" cache --cold --no-policy --cvmfs-mb 300
"$3" cache --cold --no-policy
cat "$1"/said
"""
# The replacement ends by itself when a test permits it: it was not killed.
HANGS = """
printf '#!/bin/sh\nuntil [ -e %s/go ]; do sleep 0.05; done; : > %s/ended\n' "$1" "$1" > /usr/bin/cvmfs_config
"$3" cache --cold --no-policy && exit 99
: > "$1"/go
for i in $(seq 1800); do [ ! -e "$1"/ended ] || exit 0; sleep 0.05; done
exit 98
"""

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root"),
]


# The output of cvmfs_config of CernVM-FS 2.12 (its cvmfs_reload).
PAUSING = "Pausing sft.cern.ch on /cvmfs/sft.cern.ch\n"
WIPED = PAUSING + "Wiping out /var/lib/cvmfs/shared ... OK\nWiping out /cache2 ... OK\n"
LEFT = (
    "Wiping out /var/lib/cvmfs/shared ... OK\n"
    "Wiping out /nfs ... not supported for NFS exported client, leaving directory untouched!\n"
)


def run(
    folder: Path, exit_code: int, says: str = WIPED, takes_s: int = 0, then: str = THRICE
) -> subprocess.CompletedProcess[str]:
    words = folder.with_suffix(".says")
    words.write_text(says, encoding="utf-8")
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT + then, "sh", folder, str(exit_code), PROGRAM, words,
         str(takes_s)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_the_cache_is_wiped_and_its_limit_set_and_removed(tmp_path: Path) -> None:
    done = run(tmp_path, 0)
    limited, smaller, plain, *said = done.stdout.splitlines()
    assert json.loads(limited)["done"][:2] == ["CVMFS cache", "CVMFS limit 4000 MB"]
    assert json.loads(smaller)["done"][:2] == ["CVMFS cache", "CVMFS limit 300 MB"]
    assert json.loads(plain)["done"] == ["CVMFS cache", "page cache", "dentries and inodes"]
    assert said == [
        "wipecache CVMFS_QUOTA_LIMIT=4000",
        "wipecache CVMFS_QUOTA_LIMIT=300",
        "wipecache",
    ]


def test_a_cache_that_cannot_be_wiped_is_not_cold(tmp_path: Path) -> None:
    done = run(tmp_path, 1)
    assert (done.returncode, done.stdout) == (4, "")
    assert "cache=cold: CVMFS' cache was not wiped: cvmfs_config wipecache" in done.stderr


def test_a_cache_that_was_left_is_not_cold_though_cvmfs_config_ends_well(tmp_path: Path) -> None:
    done = run(tmp_path, 0, LEFT)
    assert (done.returncode, done.stdout) == (4, "")
    assert "CVMFS' cache was not wiped: Wiping out /nfs ... not supported for NFS" in done.stderr


def test_where_nothing_was_wiped_a_limit_is_refused_and_no_cold_cache_is_told(
    tmp_path: Path,
) -> None:
    """No repository was mounted since the node's start: cvmfs_config prints nothing and ends with
    0.
    """
    done = run(tmp_path, 0, "")
    first, *_ = done.stdout.splitlines()
    said = json.loads(first)
    assert said["done"] == ["CVMFS limit 4000 MB", "page cache", "dentries and inodes"]
    assert said["refused"][0].startswith("CVMFS cache: cvmfs_config wipecache wiped no folder")
    assert done.returncode == 4, "the second asks for a limit"
    assert "cache=cold: cvmfs_config wipecache wiped no folder" in done.stderr


@pytest.mark.slow
def test_a_wipe_that_takes_its_time_is_not_killed(tmp_path: Path) -> None:
    done = run(tmp_path, 0, takes_s=11)
    first, *_ = done.stdout.splitlines() or [done.stderr]
    assert "CVMFS cache" in first, first


@pytest.mark.slow
def test_a_wipe_that_hangs_is_refused_and_not_killed(tmp_path: Path) -> None:
    """Root waited for 300 s. Killed, it would leave repositories paused."""
    done = run(tmp_path, 0, then=HANGS)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    why = "cvmfs_config did not end within 25 s and still runs"
    assert f"cache=cold: CVMFS' cache was not wiped: /usr/bin/{why}" in done.stderr


@pytest.mark.skipif(Path("/usr/bin/cvmfs_config").exists(), reason="CVMFS is installed here")
def test_a_limit_that_cannot_be_had_is_refused() -> None:
    """Before anything is dropped."""
    done = subprocess.run(
        [PROGRAM, "cache", "--cold", "--no-policy", "--cvmfs-mb", "300"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (4, "")
    assert "a limit of CVMFS' cache was asked for, and there is no" in done.stderr
