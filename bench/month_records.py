"""The records of a generated month (month_generator.py), and samples for some of them.

Each is a recorded one with the job's own values, and with random ones for fields that differ
between jobs and nodes, so that a pack of them is no smaller than one of real records. The files'
times are two months in the past: a truncated record, whose job may still run, is packed after 60
days.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import month_samples
from month_jobs import CPUS, Job, OnNode, Start, hosts

from steelyard.analysis.sources import record_folders

RECORD = Path(__file__).parents[1] / "tests/data/records/complete/n1.1795251583.json"
OLDER_S = 61 * 86400
BYTES = ("io.rchar_bytes", "io.wchar_bytes", "io.write_bytes", "network.rx_bytes",
         "network.tx_bytes", "network.devices.1.rx_bytes", "network.devices.1.tx_bytes",
         "memory.max_memory_bytes")  # fmt: skip
COUNTS = ("tcp.sent_segments", "tcp.retransmitted_segments", "processes.max_processes")
SECONDS = ("pressure.cpu_some_s", "pressure.io_some_s", "pressure.memory_some_s", "sampler.cpu_s")
OF_NODE = ("probe.machine_id", "probe.boot_id", "probe.network.1.mac", "probe.hostname")


@cache
def template() -> tuple[str, ...]:
    """Return the recorded record, split at a job's own values: text, name, text, name, …"""
    document = json.loads(RECORD.read_bytes())
    own: dict[str, Any] = {
        "node": "@node@", "complete": "@complete@", "incomplete_reason": "@why@",
        "start_unix_s": "@begin@", "end_unix_s": "@end@", "elapsed_s": "@took@",
        "samples_file": "@samples@",
    }  # fmt: skip
    document |= own
    document["job"] |= {"job_id": "@job@", "nodes": "@nodes@", "exclusive": "@exclusive@",
                        "cluster": "month", "user_id": "@uid@", "name": "@name@"}  # fmt: skip
    document["cpu"] |= {"cpu_s": "@cpu@"}
    document["io"] |= {"read_bytes": "@read@"}
    document["energy"] |= {"energy_j": "@energy@"}
    document["probe"]["node_type"] = "@type@"
    document["missing"].pop("energy.energy_j")
    for path in (*BYTES, *COUNTS, *SECONDS, *OF_NODE):
        *parents, last = path.split(".")
        place = document
        for parent in parents:
            place = place[int(parent)] if isinstance(place, list) else place[parent]
        place[last] = f"@{path}@"
    return tuple(re.split(r'"@([\w.]+)@"', json.dumps(document, indent=1)))


def others(job: Job, start: Start, one: OnNode) -> dict[str, Any]:
    """Return random values of fields that are not summed, but differ between jobs or nodes."""
    chance, node = random.Random(f"{job.job_id} {start.begin_unix_s} {one.node}"), one.node
    found: dict[str, Any] = {name: int(chance.lognormvariate(20, 3)) for name in BYTES}
    found |= {name: int(chance.lognormvariate(6, 2)) for name in COUNTS}
    found |= {name: round(chance.lognormvariate(2, 2), 6) for name in SECONDS}
    of_node = random.Random(node)
    return found | {name: f"{of_node.getrandbits(128):032x}" for name in OF_NODE}


def record(job: Job, start: Start, one: OnNode, samples_file: str | None = None) -> str:
    """Return the record of a node as text."""
    begin = start.begin_unix_s or 0
    values = others(job, start, one) | {
        "node": one.node, "complete": one.is_complete, "begin": begin + 0.25,
        "why": None if one.is_complete else "the node went away", "job": str(job.job_id),
        "end": start.end_unix_s if one.is_complete else None, "took": start.end_unix_s - begin - 0.25,
        "nodes": hosts([n.node for n in start.nodes]), "exclusive": job.cpus_per_node == CPUS,
        "uid": str(2000 + sum(map(ord, job.user))), "name": f"run{job.job_id % 7}", "cpu": one.cpu_s,
        "read": one.read_bytes, "energy": one.energy_j, "type": job.node_type,
        "samples": samples_file,
    }  # fmt: skip
    pieces = template()
    return "".join(p if n % 2 == 0 else json.dumps(values[p]) for n, p in enumerate(pieces))


def write_records(job: Job, record_dir: Path, flat: bool, with_samples: bool = False) -> None:
    """Write the files of all nodes of a job."""
    for start in job.starts:
        begin = start.begin_unix_s
        if begin is None or not any(one.there for one in start.nodes):
            continue
        day = "" if flat else record_folders.format_day(begin)
        folder = record_dir / day / str(job.job_id)
        folder.mkdir(parents=True, exist_ok=True)
        for one in start.nodes:
            if one.there:
                stem = f"{one.node}.{begin}"
                text = record(job, start, one, f"{stem}.csv" if with_samples else None)
                write(f"{folder}/{stem}.json", text.encode(), start.end_unix_s)
            if one.there and with_samples:
                seed, took = job.job_id * 1000 + int(one.node[1:]), start.end_unix_s - begin
                lines = month_samples.samples(seed, begin, took, job.cpus_per_node)
                write(f"{folder}/{stem}.csv", lines, start.end_unix_s)


def write(path: str, content: bytes, end_unix_s: int) -> None:
    """Write a file as the sampler does."""
    with open(path, "wb") as file:  # noqa: PTH123 - a million of them
        file.write(content)
    os.chmod(path, 0o440)  # noqa: PTH101
    os.utime(path, (end_unix_s - OLDER_S,) * 2)
