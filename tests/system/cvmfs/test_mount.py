"""A repository of ours, mounted by real clients: what they show and fetch, and what we report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cvmfs.client import CLIENTS, Mounted, mounted
from tests.system.cvmfs.conftest import Published

from steelyard.jobscripts import cvmfs, registry
from steelyard.wrappers.base.programs import find_node_program

pytestmark = pytest.mark.slow  # cargo or a build of CernVM-FS brings the clients


@pytest.fixture(params=CLIENTS)
def mount(
    request: pytest.FixtureRequest, published: Published, tmp_path: Path
) -> Iterator[Mounted]:
    with mounted(request.param, published.repository, tmp_path) as found:
        yield found


def tree(top: Path) -> dict[str, bytes | str | None]:
    """Contents of files, targets of links, None of folders."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(top.rglob("*")):
        link = str(path.readlink()) if path.is_symlink() else None
        content = path.read_bytes() if path.is_file() and link is None else None
        found[str(path.relative_to(top))] = link or content
    return found


def test_a_client_shows_the_source(mount: Mounted, published: Published) -> None:
    assert tree(mount.point) == tree(published.source)
    program = mount.point / "release/program"
    assert subprocess.run([program], capture_output=True, check=True).stdout == b"it runs\n"


def test_a_content_is_fetched_once(mount: Mounted) -> None:
    names = ["two", "release/v2/lib/one"]
    if mount.program == "cvmfs2":  # cvmfs-cli 0.4.2 answers EIO to this one, read before all others
        names.append("release/v2/lib/deep/data")
    for name in names:
        (mount.point / name).read_bytes()
    first = mount.server.objects()
    assert len([path for path in first if path.endswith("P")]) == 3 * ("deep/data" in names[-1])
    assert len(first) == len(set(first))
    (mount.point / "release/latest/one").read_bytes()
    for name in names:
        (mount.point / name).read_bytes()
    assert mount.server.objects() == first


def library(mount: Mounted, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Functions of the library of job scripts, whose attempt is the client's folder."""
    path = mount.folder / "lib.sh"
    path.write_text(registry.library(), encoding="utf-8")
    environment = {**os.environ, "SY_ATTEMPT_DIR": str(mount.folder), "SY_CLIENT": "0"}
    return subprocess.run(
        ["bash", "-c", f'. "$1"; shift; {script}', "-", path, *words],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_tags_and_probe_name_the_file_system(mount: Mounted) -> None:
    done = library(mount, 'sy_tag_mount "$@"', str(mount.point / "release"))
    assert done.returncode == 0, done.stderr
    lines = (mount.folder / "tags.0").read_text(encoding="utf-8").splitlines()
    tags = dict(line.split("=", 1) for line in lines)
    assert (tags["mount.type"], tags["mount.name"]) == ("fuse", "cvmfs")
    assert (tags["mount.source"], tags["mount.point"]) == (mount.source, str(mount.point))
    probe = subprocess.run(
        [find_node_program() or "", "probe"], capture_output=True, text=True, check=True
    )
    entries = json.loads(probe.stdout)["filesystems"]
    (entry,) = [e for e in entries if e["mount_point"] == str(mount.point)]
    assert (entry["type"], entry["source"]) == ("fuse", mount.source)


@pytest.mark.skipif(os.geteuid() != 0, reason="dropping caches needs root")
def test_cold_caches_report_what_became_of_this_repositorys(mount: Mounted) -> None:
    """Its cache is in a folder of the test's own, which no cvmfs_config knows."""
    if shutil.which("cvmfs_config"):
        pytest.skip("cvmfs_config is installed: it wipes the caches of its own repositories")
    argv = [find_node_program() or "", "cache", "--cold", "--no-policy"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["done"] == ["page cache", "dentries and inodes"]
    (refusal,) = answer["refused"]
    assert refusal.endswith("is mounted, and there is no /usr/bin/cvmfs_config to wipe its cache")


def test_counters_of_a_run(mount: Mounted) -> None:
    """CERN's client has them; with another client the run fails with a reason, without figures."""
    before = library(mount, 'sy_save_cvmfs_counters before "$@"', str(mount.point))
    if mount.program != "cvmfs2":
        assert before.returncode == 3
        assert "expected folders of mounted CVMFS repositories, found: " in before.stderr
        return
    assert before.returncode == 0, before.stderr
    sent = len(mount.server.objects())
    (mount.point / "release/v2/lib/deep/data").read_bytes()
    (mount.point / "two").read_bytes()
    assert library(mount, 'sy_save_cvmfs_counters after "$@"', str(mount.point)).returncode == 0
    found = {result.metric: result.value for result in cvmfs.results(mount.folder, 0)}
    assert found["cvmfs_downloads"] == len(mount.server.objects()) - sent
    assert found["cvmfs_fetched_bytes"] > 16e6
    assert (found["cvmfs_opens"], found["cvmfs_io_errors"]) == (2, 0)
    assert "cvmfs.version=2." in (mount.folder / "tags.0").read_text(encoding="utf-8")
