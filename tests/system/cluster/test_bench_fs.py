"""File systems, HPL, HPCC and commands, each run for real by a study on a throwaway cluster."""

from __future__ import annotations

from pathlib import Path

from tests.system.cluster.bench_study import HEAD, collected
from tests.throwaway_lab import Lab

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
    """IOzone is not free: a program that prints what it once said stands for the user's own."""
    iozone = lab.work / "iozone"
    recorded = ROOT / "tests/data/iozone/throughput.3.507.out"
    # It was recorded with -e, which is what this run asks for.
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


def test_clients_in_turn_on_two_nodes(lab: Lab) -> None:
    """By their own clocks, which are one machine's: no two at the same time."""
    text = HEAD.format(nodes=1).replace("nodes = 1\n", "")
    text += '[factors]\nclients = [2]\nmode = ["parallel", "sequential"]\n'
    collected(lab, text + '[[benchmark]]\nuse = "app"\ncommand = "sleep 0.5"\n')
    overlapping = {}
    for run_id, label in lab.rows("bench", "SELECT run_id, condition_label FROM runs"):
        folder = lab.work / "bench.study/runs" / run_id
        times = sorted(
            [int(word) for word in path.read_text(encoding="ascii").split()[1:3]]
            for path in folder.glob("*/app.[01]")
        )
        assert len(times) == 2
        overlapping["sequential" in label] = times[1][0] < times[0][1]
    assert overlapping == {False: True, True: False}
