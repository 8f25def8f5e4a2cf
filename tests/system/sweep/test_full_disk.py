"""A disk that is really full under a sweep: a tmpfs in a mount namespace of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ENTER = (
    ("unshare", "--user", "--map-root-user", "--mount") if os.geteuid() else ("unshare", "--mount")
)

LEAVE = """
import os, sys
from pathlib import Path
from tests.unit.sweep.swept_site import DAY_S, NOW, Site, several
from steelyard.wrappers.commands import cli

site = Site(Path(sys.argv[1]) / "records")
ballast = Path(sys.argv[1]) / "ballast"
days = [os.urandom(900_000) for _ in range(3)]  # no pack of it is smaller
for day, content in enumerate(days):
    folder = site.leave(str(day), (20 + day) * DAY_S)
    (path,) = folder.glob("*.csv")
    path.write_bytes(content)
    os.utime(path, (NOW - 20 * DAY_S,) * 2)
    site.truth[str(day), path.name] = (content, path.stat().st_mtime_ns)

def fill(left_bytes):
    ballast.unlink(missing_ok=True)
    free = os.statvfs(ballast.parent)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - left_bytes)

def swept(code):
    assert cli.main(["sweep", "--record-dir", str(site.dir)]) == code
    assert site.found() == site.truth, "lost, changed or doubled"
    assert not [p for p in site.dir.rglob("*.tmp")]
    return len(site.loose())
"""
NO_BYTES = """
for left in (0, 4096, 300_000, 899_000):
    fill(left)
    assert swept(3) == 3
    assert not list(site.dir.rglob("*.packs"))
"""
ROOM_FOR_ONE = """
fill(1_100_000)
assert swept(0) == 0  # a day's files make room for the next day's pack
"""
NO_INODES = """
names = 0
while True:
    try:
        (ballast.parent / f"b{names}").touch()
    except OSError:
        break
    names += 1
for loose in (3, 3, 3, 3, 0):  # no lock, no folder, no pack, no list; then files make room
    assert swept(3 if loose else 0) == loose
    names -= 1
    (ballast.parent / f"b{names}").unlink()
"""


def on_small_disk(tmp_path: Path, script: str, options: str) -> subprocess.CompletedProcess[str]:
    """Run it in a namespace that has the small file system, and with it goes away."""
    mounted = f'mount -t tmpfs -o {options} none "$1" && exec "$2" -P -c "$3" "$1"'
    words = ["sh", "-c", mounted, "sh", str(tmp_path), sys.executable, LEAVE + script]
    if subprocess.run([*ENTER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace of one's own can be made here")
    return subprocess.run(
        [*ENTER, *words], capture_output=True, text=True, check=False, timeout=600,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def test_no_room_for_a_pack(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, NO_BYTES, "size=8m")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 4, "one a sweep"
    assert all("no room on the disk for packs of 3 days" in line for line in lines)
    assert lines[0].endswith("make room, or have more removed: --older-than, --quota")


def test_room_for_one_day_is_enough_for_all(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, ROOM_FOR_ONE, "size=8m")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""


def test_no_inode_left(tmp_path: Path) -> None:
    done = on_small_disk(tmp_path, NO_INODES, "size=8m,nr_inodes=60")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("cannot be swept: No space left on device")
    assert " 0 inodes are free" in lines[1]
