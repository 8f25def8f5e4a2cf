"""File systems, HPL, HPCC and commands, each run by a study; HPL between two guests, and the file
benchmarks on a network file system of a guest."""

from __future__ import annotations

from pathlib import Path

from tests.system.cluster.bench_study import HEAD, collected
from tests.throwaway_lab import Lab

from steelyard.wrappers.cluster.cluster_config import NFS_SERVER
from steelyard.wrappers.cluster.guest_control import Guest

ROOT = Path(__file__).parents[3]
ALL = """
[[benchmark]]
use = "filesystem"
test = ["large_file_copy", "small_file_copy", "small_file_write"]
directory = "{work}"
size = "1MiB"
copy_files = 5
write_files = 5
file_size = "4KiB"
iterations = 2
direct = true
[[benchmark]]
use = "fio"
rw = "randrw"
size = "256KiB"
bs = "4KiB"
directory = "{work}"
[[benchmark]]
use = "fio"
job_file = "{root}/tests/data/fio/two_groups.fio"
[[benchmark]]
use = "iozone"
iozone = "{iozone}"
tests = "0 1"
processes = 2
size = "32MiB"
record = "64KiB"
[[benchmark]]
use = "hpl"
n = 200
bcast = ["1ringM", "2ring"]
[[benchmark]]
use = "hpcc"
n = 200
[[benchmark]]
use = "app"
command = "echo step; echo rate = 12.5; echo rate = 13.5"
[benchmark.figures.rate]
pattern = '^rate = ([0-9.]+)$'
unit = "Gflop/s"
better = "higher"
primary = true
"""


def test_every_benchmark_of_this_kind_in_one_study(lab: Lab) -> None:
    """IOzone is not free: a program that prints its recorded output replaces the user's own."""
    iozone = lab.work / "iozone"
    recorded = ROOT / "tests/data/iozone/throughput.3.507.out"
    # It was recorded with -e, which this run requests.
    iozone.write_text(f"#!/bin/sh\nexec cat '{recorded}'\n", encoding="utf-8")
    iozone.chmod(0o755)
    text = HEAD.format(nodes=1) + ALL.format(work=lab.work, root=ROOT, iozone=iozone)
    collected(lab, text)
    primary = lab.rows(
        "bench",
        "SELECT run.benchmark, count(DISTINCT run_id), min(value) > 0 FROM results "
        "JOIN runs AS run USING (run_id) WHERE is_primary GROUP BY ALL ORDER BY ALL",
    )
    assert primary == [
        ("app", 1, True),
        ("filesystem", 3, True),
        ("fio", 2, True),
        ("hpcc", 1, True),
        ("hpl", 2, True),
        ("iozone", 1, True),
    ]
    found = lab.rows(
        "bench",
        "SELECT iteration, value, unit, better FROM results WHERE metric = 'rate' ORDER BY ALL",
    )
    assert found == [(1, 12.5, "Gflop/s", "higher"), (2, 13.5, "Gflop/s", "higher")]
    ((mounts, libraries),) = lab.rows(
        "bench",
        "SELECT count(DISTINCT run_id) FILTER (key = 'mount.type'), "
        "count(DISTINCT run_id) FILTER (key = 'blas') FROM tags",
    )
    assert (mounts, libraries) == (6, 3)
    assert not list(lab.work.glob("steelyard-*")), "working folders are gone"
    lab.steelyard("report", "bench.toml", "-o", "report.html")
    assert "Gflop/s" in (lab.work / "report.html").read_text(encoding="utf-8")


def test_hpl_over_the_networks_of_two_nodes(virtual_lab: Lab) -> None:
    """Two ranks, one on the host and one in a guest, or both in guests: a message is a packet."""
    text = HEAD.format(nodes=2).replace("[job]\n", '[job]\nconstraint = "virtual"\n')
    collected(virtual_lab, text + '[[benchmark]]\nuse = "hpl"\nn = 64\nnb = 16\nq = 2\n')
    ((nodes, sent),) = virtual_lab.rows(
        "bench", "SELECT count(DISTINCT node), min(tx_bytes) FROM records"
    )
    assert nodes == 2
    assert sent > 64 * 64 * 8 / 2


NFS = """
[[benchmark]]
use = "filesystem"
directory = ["/nfs", "/nfs3"]
size = "1MiB"
iterations = 1
direct = [false, true]
[[benchmark]]
use = "fio"
directory = "/nfs"
rw = "write"
size = "1MiB"
"""


def test_both_versions_of_nfs_are_tagged_and_their_clients_counters_are_figures(
    virtual_lab: Lab,
) -> None:
    """A copy of 1 MiB, through the page cache and past it; fio in addition; the server's count."""
    server = virtual_lab.cluster.find_guest(NFS_SERVER)
    before = served_bytes(server)
    text = HEAD.format(nodes=1).replace("[job]\n", '[job]\nconstraint = "virtual"\n')
    collected(virtual_lab, text + NFS)
    found = {
        (variant, metric): value
        for variant, metric, value in virtual_lab.rows(
            "bench",
            "SELECT run.variant, metric, value FROM results JOIN runs AS run USING (run_id)",
        )
    }
    mib = 1 << 20
    for place in ("/nfs", "/nfs3"):
        cached, direct = (f"filesystem directory={place} direct={how}" for how in ("false", "true"))
        assert found[cached, "nfs_written_bytes"] == 2 * mib
        assert found[cached, "nfs_direct_written_bytes"] == 0
        assert found[direct, "nfs_written_bytes"] == 0
        assert found[direct, "nfs_direct_written_bytes"] == 2 * mib
        assert found[direct, "nfs_direct_read_bytes"] >= 2 * mib
        for variant in (cached, direct):
            assert found[variant, "nfs_server_written_bytes"] == 2 * mib
            assert 2 * mib < found[variant, "nfs_sent_bytes"] < 2.2 * mib
            writes = found[variant, "nfs_write_operations"]
            assert 0 < writes < found[variant, "nfs_requests"]
    assert found["fio", "nfs_server_written_bytes"] == mib
    assert found["fio", "nfs_write_operations"] > 0
    written = sum(value for (_, name), value in found.items() if name == "nfs_server_written_bytes")
    assert served_bytes(server) - before == written
    check_mount_tags(virtual_lab)


def served_bytes(server: Guest) -> int:
    """What clients wrote, as the server's kernel counts it: `io` of /proc/net/rpc/nfsd."""
    said = server.run(["cat", "/proc/net/rpc/nfsd"]).stdout
    (line,) = [line.split() for line in said.splitlines() if line.startswith("io ")]
    return int(line[2])


def check_mount_tags(lab: Lab) -> None:
    rows = lab.rows("bench", "SELECT run_id, key, value FROM tags WHERE key LIKE 'mount.%'")
    runs = {
        run_id: {key: value for run, key, value in rows if run == run_id} for run_id, _, _ in rows
    }
    seen = set()
    for tags in runs.values():
        seen.add((tags["mount.point"], tags["mount.type"], tags["mount.version"]))
        assert (tags["mount.name"], tags["mount.server"]) == ("nfs", "nfs")
        assert tags["mount.counters"] == "/proc/self/mountstats"
        assert {"proto=tcp", "rsize=131072", "wsize=131072"} <= {*tags["mount.options"].split(",")}
    assert seen == {("/nfs", "nfs4", "4.2"), ("/nfs3", "nfs", "3")}
