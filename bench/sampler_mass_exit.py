"""For bench/sampler.py: all processes of a large job end at the same time, under our sampler."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import sampler_job as ours

PROCESSES, PERIOD_MS = 4000, 4000
BEFORE_S, AFTER_S = 2, 2


def late_ms(sampler: ours.Sampler, period_s: float) -> float:
    """Return by how many ms the longest interval of samples exceeds a period; after its end."""
    at = sampler.elapsed_s()
    return 1e3 * max(b - a - period_s for a, b in itertools.pairwise(at))


def end_all() -> None:
    """Kill the first of the job's processes, which ends the others."""
    for path in ours.job_processes():
        if ours.read_name(ours.parent_of(path)) != "sampler_load":
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(int(path.name), 9)


def in_one_way(
    base: Path, way: ours.Way, made: ours.Group | None, rate_hz: int
) -> dict[str, object]:
    """Measure one way; the sampler starts before the job's processes."""
    load = ours.compiled(base, "sampler_load")
    script = f'read -r go; "$0" {PROCESSES} {PERIOD_MS} 600 "$@"; exec sleep 60'
    root = subprocess.Popen(
        ["sh", "-c", script, load, *(made.procs if made else ())],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,  # sh prints "Killed" there
    )  # fmt: skip
    assert root.stdin
    try:
        sampler = ours.start(base, way, rate_hz, root.pid, made)
        root.stdin.write(b"go\n")
        root.stdin.close()
        ours.wait_until(lambda: len(ours.job_processes()) == PROCESSES, 60)
        time.sleep(3)
        before = sampler.cpu_ns()
        time.sleep(BEFORE_S)
        begin = sampler.cpu_ns()
        end_all()
        time.sleep(AFTER_S)
        end = sampler.cpu_ns()
        sampler.end()
    finally:
        end_all()
        root.kill()
        root.wait()
        ours.wait_until(lambda: not ours.job_processes(), 60)
    usual = (begin - before) / BEFORE_S
    return {
        "way": way.name,
        "processes": PROCESSES,
        "usual_ms": round(usual / 1e6, 1),
        "more_ms": round((end - begin - usual * AFTER_S) / 1e6, 1),
        "late_ms": round(late_ms(sampler, 1 / rate_hz), 1),
    }


def in_each_way(base: Path, rate_hz: int) -> list[dict[str, object]]:
    with ours.group(f"steelyard-bench-{os.getpid()}") as made:
        return [in_one_way(base, way, made, rate_hz) for way in ours.ways(made is not None)]


def report(found: Sequence[dict[str, object]]) -> None:
    for one in found:
        print(f"{one['processes']} processes end at once, {one['way']}: {one['more_ms']} ms of CPU more than "
              f"at {one['usual_ms']} ms a second, in {AFTER_S} s; the latest sample {one['late_ms']} ms late")  # fmt: skip
