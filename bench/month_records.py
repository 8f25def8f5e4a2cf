"""The records of a generated month (month_generator.py), and samples at 1 Hz for some of them.

Each is a recorded one with the job's own values, and with random ones for fields that differ
between jobs and nodes, so that a pack of them is no smaller than one of real records. The files'
times are two months in the past: a truncated record, whose job may still run, is packed after 60
days.

A program's activity is taken from 15 recorded minutes (tests/data/records/long, ORIGIN): blocks of
5 to 60 s in any order. Each counter's steps are multiplied by a factor of the job and by 5 % of
noise per step. So no two jobs have a line in common, and they do not compress better than jobs of
many users. What the recorded machine does not have is generated: a network that always sends and
receives (lognormal), two packages and two memories with RAPL (units of 61 µJ, 100 W and 3 W per
busy CPU, noise of 3 W). So the files are rather larger than those of a real job, in which some
columns are constant.
"""

from __future__ import annotations

import json
import os
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from month_jobs import CPUS, Job, OnNode, Start, hosts

from steelyard.analysis.sources import record_folders

RECORDED = next((Path(__file__).parents[1] / "tests/data/records/long").glob("*.csv"))
CLOCKS, GAUGES = (b"unix_s", b"elapsed_s"), (b"memory_bytes", b"processes")
OF_STORAGE = (b"read_bytes", b"write_bytes")
OWN = CLOCKS + GAUGES + OF_STORAGE + (
    b"cpu_s", b"rchar_bytes", b"wchar_bytes", b"retransmitted_segments", b"pressure_cpu_s",
    b"pressure_io_s", b"pressure_memory_s",
)  # fmt: skip
PAGE, RAPL_UJ, TICK_US = 4096, 61, 10_000
RECORDED_CPUS = 2
Numbers = Any  # arrays of numpy


@cache
def recorded() -> tuple[list[bytes], dict[bytes, Numbers]]:
    """Return the columns of every file in order, and the recorded values of a job.

    The values are in units of the last digit.
    """
    header, *lines = RECORDED.read_bytes().splitlines()
    names = header.split(b",")
    columns = dict(zip(names, zip(*(line.split(b",") for line in lines), strict=True), strict=True))
    values = {
        name: np.array([int(cell.replace(b".", b"")) for cell in columns[name]]) for name in OWN
    }
    return [name for name in names if b":" not in name], values


def places(chance: np.random.Generator, steps: int, there: int) -> Numbers:
    """Return the indices of the recorded steps that a job uses: blocks of them in any order."""
    found: list[int] = []
    while len(found) < steps:
        begin = int(chance.integers(there))
        found += range(begin, min(begin + int(chance.integers(5, 60)), there))
    return np.array(found[:steps])


def summed(steps: Numbers) -> Numbers:
    """Return a counter of these steps, which are rounded down and never negative."""
    whole = np.maximum(np.nan_to_num(steps), 0).astype(np.int64)
    return np.concatenate([[0], whole.cumsum()])


def own_columns(chance: np.random.Generator, took_s: int, cpus: int) -> dict[bytes, Numbers]:
    """Return the columns of the job's own processes."""
    _, values = recorded()
    at = places(chance, took_s, len(values[b"elapsed_s"]) - 1)
    columns = {}
    for name in OWN:
        if name in GAUGES:
            factor = chance.uniform(1, 2000) if name == b"memory_bytes" else 1
            columns[name] = np.concatenate([[0], (values[name][at + 1] * factor).astype(np.int64)])
            continue
        steps = np.diff(values[name])[at].astype(float)
        if name not in CLOCKS:
            steps *= chance.uniform(0.2, 3) * (1 + 0.05 * chance.standard_normal(took_s))
        if name == b"cpu_s":
            steps *= cpus / RECORDED_CPUS
        if name in OF_STORAGE:
            steps = steps // PAGE * PAGE
        columns[name] = summed(steps)
    columns[b"memory_bytes"] = columns[b"memory_bytes"] // PAGE * PAGE
    return columns


def node_columns(chance: np.random.Generator, own: dict[bytes, Numbers]) -> dict[bytes, Numbers]:
    """Return the columns of the node: its network, and its meters."""
    cpu, time = np.diff(own[b"cpu_s"]), np.diff(own[b"elapsed_s"])
    many = len(time)
    rx, tx = (summed(chance.lognormal(10, 1.5, many)) for _ in range(2))
    watts = [s * (100 + 3 * cpu / 1e6 + chance.normal(0, 3, many)) for s in (0.5, 0.45)]
    watts += [20 + chance.normal(0, 1, many) for _ in range(2)]
    zones = [summed(one * time / RAPL_UJ) * RAPL_UJ for one in watts]
    names = (b"package-0", b"package-1", b"dram", b"dram#1")
    return {
        b"rx_bytes": rx, b"tx_bytes": tx, b"energy_j": sum(zones),
        b"sent_segments": summed(np.diff(tx) / 1400 * chance.uniform(0.9, 1.1, many)),
        b"node_cpu_s": summed(1.01 * cpu // TICK_US * TICK_US),
        **{b"energy_j:" + name: zone for name, zone in zip(names, zones, strict=True)},
        b"rx_bytes:eth0": rx, b"tx_bytes:eth0": tx,
    }  # fmt: skip


def samples(seed: int, begin_unix_s: int, took_s: int, cpus: int) -> bytes:
    """Return the file of one node: a line per second, and one at the begin."""
    chance = np.random.default_rng(seed)
    names, _ = recorded()
    columns = own_columns(chance, took_s, cpus)
    columns[b"unix_s"] = columns[b"unix_s"] + begin_unix_s * 1_000_000 + int(chance.integers(1e6))
    columns |= node_columns(chance, columns)
    header = [*names, *(name for name in columns if name not in names)]
    cells = [
        cells_of(name, columns[name]) if name in columns else [""] * (took_s + 1) for name in header
    ]
    text = "".join(",".join(line) + "\n" for line in zip(*cells, strict=True))
    return b",".join(header) + b"\n" + text.encode()


def cells_of(name: bytes, values: Numbers) -> list[str]:
    """Format the values as the sampler does: seconds and joules have six decimals."""
    if not name.partition(b":")[0].endswith((b"_s", b"_j")):
        return list(map(str, values.tolist()))
    pairs = np.divmod(values, 1_000_000)
    parts = zip(*(part.tolist() for part in pairs), strict=True)
    return [f"{whole}.{millionths:06}" for whole, millionths in parts]


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
                lines = samples(seed, begin, took, job.cpus_per_node)
                write(f"{folder}/{stem}.csv", lines, start.end_unix_s)


def write(path: str, content: bytes, end_unix_s: int) -> None:
    """Write a file as the sampler does."""
    with open(path, "wb") as file:  # noqa: PTH123 - a million of them
        file.write(content)
    os.chmod(path, 0o440)  # noqa: PTH101
    os.utime(path, (end_unix_s - OLDER_S,) * 2)
