"""Benchmarks of files on a GlusterFS of two servers, compared with the bytes that the servers
count.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from steelyard.wrappers.study import folder as studydir

pytestmark = pytest.mark.glusterfs
CLUSTER = Path(__file__).parent / "cluster.sh"
STEELYARD = (sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli")
MIB = 1 << 20
LIMIT_S = 300
NAMESPACES = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")
STUDY = """
[study]
name = "gluster"
repeat = 1
[[benchmark]]
use = "filesystem"
directory = "{mnt}"
test = ["large_file_copy", "small_file_write"]
size = "4MiB"
write_files = 20
iterations = 2
[[benchmark]]
use = "fio"
directory = "{mnt}"
rw = "write"
size = "1MiB"
bs = "64KiB"
"""


@dataclass(frozen=True)
class Mounted:
    """Yield the client's namespaces and a server's."""

    dir: Path
    client: int
    server: int

    @property
    def mnt(self) -> Path:
        return self.dir / "mnt"

    def run(self, *argv: str, server: bool = False) -> str:
        """A command where the volume is mounted, or on a server."""
        pid = str(self.server if server else self.client)
        enter = ["nsenter", "--target", pid, "--mount", "--net", "--pid", f"--wdns={self.dir}"]
        done = subprocess.run(
            [*enter, *argv], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def written_bytes(self) -> int:
        """On all bricks since the volume was started: what the servers counted."""
        said = self.run("gluster", "volume", "profile", "gv0", "info", server=True)
        # Per brick: since its start, then since the last query.
        _, *bricks = said.split("Brick: ")
        found = [
            re.findall(r"^Data Written: (\d+) bytes$", brick, re.MULTILINE) for brick in bricks
        ]
        assert [len(brick) for brick in found] == [2, 2], said
        return sum(int(ever) for ever, _ in found)

    def sent_bytes(self) -> int:
        """Return the bytes that the client's network device sent to any host."""
        ((device,),) = (json.loads(self.run("ip", "-json", "-stats", "link", "show", "bridge0")),)
        return int(device["stats64"]["tx"]["bytes"])


def child(pid: int, name: str) -> int:
    """The one process of that name below another; both as this namespace sees them."""
    done = subprocess.run(
        ["pgrep", "--parent", str(pid), "--full", name], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[0])


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounted]:
    folder = tmp_path_factory.mktemp("gluster")
    with subprocess.Popen(
        [*NAMESPACES, str(CLUSTER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready "), "the volume is not mounted: the reason is above"
        client = child(process.pid, "cluster.sh")
        yield Mounted(folder, client, child(client, "sleep infinity"))
        process.stdin.close()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def before(mounted: Mounted) -> tuple[int, int]:
    return mounted.written_bytes(), mounted.sent_bytes()


@pytest.fixture(scope="module")
def study(mounted: Mounted, before: tuple[int, int]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Submitted, run, collected where the volume is mounted."""
    assert before[0] >= 0
    file = mounted.dir / "gluster.toml"
    file.write_text(STUDY.format(mnt=mounted.mnt), encoding="utf-8")
    mounted.run(*STEELYARD, "submit", str(file), "--scheduler", "local")
    mounted.run(*STEELYARD, "collect", str(file))
    with duckdb.connect(
        str(studydir.derive_folder(file) / "study.duckdb"), read_only=True
    ) as found:
        yield found


def test_it_is_tagged_by_its_name_its_server_and_its_version(
    mounted: Mounted, study: duckdb.DuckDBPyConnection
) -> None:
    tags = dict(
        study.execute("SELECT DISTINCT key, value FROM tags WHERE key LIKE 'mount.%'").fetchall()
    )
    assert (tags["mount.type"], tags["mount.name"]) == ("fuse.glusterfs", "glusterfs")
    assert (tags["mount.source"], tags["mount.server"]) == ("s1:gv0", "s1")
    assert tags["mount.point"] == str(mounted.mnt)
    assert tags["mount.version"] == mounted.run("glusterfs", "--version").split()[1]
    assert tags["mount.bricks"] == "2"
    assert tags["mount.counters"] == f"{mounted.mnt}/.meta/graphs/active"


def test_the_probe_of_the_node_names_it(mounted: Mounted) -> None:
    found = json.loads(mounted.run(*STEELYARD, "probe", "--json"))["filesystems"]
    (one,) = [fs for fs in found if fs["mount_point"] == str(mounted.mnt)]
    assert (one["type"], one["source"]) == ("fuse.glusterfs", "s1:gv0")


def test_what_the_clients_sent_is_what_the_bricks_say_was_written(
    mounted: Mounted, before: tuple[int, int], study: duckdb.DuckDBPyConnection
) -> None:
    """Each run's own bytes, known from its study; all runs', counted by servers and network."""
    grown = dict(
        study.execute(
            "SELECT run.variant, value FROM results JOIN runs AS run USING (run_id) "
            "WHERE metric = 'glusterfs_sent_bytes'"
        ).fetchall()
    )
    requests = study.execute(
        "SELECT sum(value) FROM results WHERE metric = 'glusterfs_requests'"
    ).fetchone()
    assert requests is not None
    payload = {
        "filesystem test=large_file_copy": 3 * 4 * MIB,  # the source, two copies
        "filesystem test=small_file_write": 2 * 20 * 1024,
        "fio": MIB,
    }
    assert grown.keys() == payload.keys()
    for variant, size in payload.items():
        assert grown[variant] > size, variant
    written = mounted.written_bytes() - before[0]
    assert written == sum(payload.values())
    # A message's head has some hundred bytes.
    assert written < sum(grown.values()) < written + 1000 * requests[0]
    assert sum(grown.values()) < mounted.sent_bytes() - before[1]
