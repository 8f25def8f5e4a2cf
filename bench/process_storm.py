"""A storm of short processes as the record reports it, against the truth: CPU time and bytes.

A job starts 1,000 processes per second for 20 s. Each lives 1 to 5 ms, burns 300 µs, writes 10,000
bytes and reads 5,000. In one variant their parent waits for them; in the other it ignores SIGCHLD,
so that the kernel adds their usage to no parent. A sampler measures them ten times per second, from
each source that this machine has: its processes, its cgroup, and counts of the kernel (BPF). The
truth is the number of processes times their bytes, and the CPU time that the kernel counts for the
cgroup (as root), else the processes' own clocks. The column `record` shows whether the record
reports that usage is missing: then it is incomplete. The peer is the sum of their parent, as in GNU
time (getrusage of reaped children).

Last line: JSON with a row for each: fractions of the truth, and the sampler's own usage.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sampler_job as ours

from steelyard.wrappers.base.signals import ending_on_sigterm

RATE, SECONDS, QUICK_S = 1000, 20, 4
BURN_US, WRITTEN, READ = 300, 10_000, 5_000
SAMPLE_RATE_HZ = 10
A_TICK_S = 0.05  # several: the kernel reports the start of a process in 1/100 s
CHILDREN = ("wait", "ignore")


@dataclass(frozen=True)
class Truth:
    children: int
    cpu_s: float  # of the cgroup, or of children and parent
    peer_s: float  # rusage of their parent


def start_storm(
    base: Path, children: str, seconds: int, made: ours.Group | None
) -> subprocess.Popen[str]:
    """Start the load below a root, a shell that waits for it; it begins after a line of input."""
    load = str(ours.compiled(base, "process_storm_load"))
    words = [load, str(RATE), str(seconds), children, str(BURN_US), *(made.procs if made else ())]
    script = 'exec 3<&0; "$@" <&3; true'
    return subprocess.Popen(
        ["sh", "-c", script, "sh", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def tell(job: subprocess.Popen[str]) -> None:
    assert job.stdin is not None
    job.stdin.write("\n")
    job.stdin.flush()


def let_it_rage(job: subprocess.Popen[str], made: ours.Group | None) -> Truth:
    assert job.stdout is not None
    before_s = made.used_s() if made else 0.0
    tell(job)
    count, children_s, own_s = job.stdout.readline().split()
    used_s = made.used_s() - before_s if made else float(children_s) + float(own_s)
    stat = Path(f"/proc/{child_of(job.pid)}/stat").read_text().rpartition(")")[2].split()
    waited = (int(stat[13]) + int(stat[14])) / os.sysconf("SC_CLK_TCK")
    return Truth(int(count), used_s, waited + float(own_s))


def child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def measure(base: Path, way: ours.Way, children: str, seconds: int) -> dict[str, object]:
    """Measure one storm in one way."""
    with ours.group(f"steelyard-storm-{os.getpid()}") as made:
        job = start_storm(base, children, seconds, made)
        assert job.stdout is not None
        job.stdout.readline()
        time.sleep(A_TICK_S)  # so that its own start precedes the sampler, and is not measured
        sampler = ours.start(base, way, SAMPLE_RATE_HZ, job.pid, made)
        truth = let_it_rage(job, made)
        used_ns = sampler.cpu_ns()
        sampler.end()  # as a step, which reports its end before its daemon exits
        tell(job)
        job.wait(60)
    return row(way, children, truth, sampler.record(), used_ns)


def fraction(value: float | None, truth: float) -> float | None:
    return None if value is None else round(value / truth, 4)


def row(
    way: ours.Way, children: str, truth: Truth, record: dict[str, Any], used_ns: int
) -> dict[str, object]:
    cpu, io = record["cpu"], record["io"]
    return {
        "way": way.name,
        "source": f"{cpu['source']}, {io['source']}",
        "children": children,
        "count": truth.children,
        "cpu_s": round(truth.cpu_s, 4),
        "cpu": fraction(cpu["cpu_s"], truth.cpu_s),
        "written": fraction(io["wchar_bytes"], truth.children * WRITTEN),
        "written_bytes": io["wchar_bytes"],
        "read_bytes": io["rchar_bytes"],
        "read": fraction(io["rchar_bytes"], truth.children * READ),
        "rusage": fraction(truth.peer_s, truth.cpu_s),
        "unseen_s": cpu["unseen_s"],
        "complete": record["complete"],
        "why": record["incomplete_reason"],
        "sampler_cpu_s": round(used_ns / 1e9, 3),
    }


def report(rows: list[dict[str, object]]) -> None:
    """Print the table, as in docs/sampler.md."""
    print("| children | from | processes | CPU of the truth | written | read "
          "| CPU by rusage of the parent | record | sampler's CPU |")  # fmt: skip
    print("|" + " --- |" * 9)
    for one in rows:
        cells = ["null" if one[name] is None else f"{one[name]:.4f}"
                 for name in ("cpu", "written", "read", "rusage")]  # fmt: skip
        state = "complete" if one["complete"] else f"incomplete: {one['why']}"
        print(f"| {one['children']} | {one['way']} ({one['source']}) | {one['count']} | {' | '.join(cells)} "
              f"| {state} | {one['sampler_cpu_s']} s |")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_S} s each")
    parser.add_argument("--seconds", type=int, help=f"each ({SECONDS})")
    args = parser.parse_args()
    if os.geteuid() != 0:
        print(
            "bench/process_storm: needs root, for mounts of its own and a cgroup", file=sys.stderr
        )
        return 3
    base = Path(tempfile.mkdtemp(prefix="sybench.", dir="/dev/shm"))
    base.chmod(0o755)
    load = ours.load_average()
    try:
        ours.make_tree(base / "tree")
        with ours.group(f"steelyard-storm-{os.getpid()}") as made:
            ways = ours.ways(made is not None)
        rows = [measure(base, way, children, args.seconds or (QUICK_S if args.quick else SECONDS))
                for children in CHILDREN for way in ways]  # fmt: skip
    finally:
        ours.end_started()
        shutil.rmtree(base, ignore_errors=True)
    report(rows)
    print(f"load average {load:.1f} before, {ours.load_average():.1f} after, its own part among it")
    print(json.dumps({"rows": rows, "load": round(load, 1)}))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
