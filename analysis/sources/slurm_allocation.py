"""What Slurm allocated to a job, and its usage, from sacct's lines of the job and its steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from steelyard.analysis.sources.accounting import AccountingRow, Allocation
from steelyard.jobscripts.plurals import counted

CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)", re.ASCII)
SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)
NO_MEMORY = "this cluster hands out no memory: AllocTRES has no mem"
NO_GPUS = "AllocTRES names no GPU: there is none, or the cluster does not track gres/gpu"
SHARED_GPUS = "it has parts of GPUs (AllocTRES: {}), and how many GPUs that is, Slurm does not say"
# TotalCPU comes from samples, and Elapsed is in whole seconds.
CPU_ROUNDING, ELAPSED_ROUNDING_S = 1.01, 1.0
LIMITS = {"UNLIMITED": "there is none", "Partition_Limit": "it is the partition's"}


def parse_duration_s(text: str) -> float | None:
    """Convert `1-02:03:04` or `00:06.431` to seconds; None for anything else."""
    match = CLOCK.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(number or 0) for number in match.groups())
    return 86400 * days + 3600 * hours + 60 * minutes + seconds


def parse_size_bytes(text: str) -> int | None:
    """Convert `211836K`, `4.50G` or `1000` to bytes; units are powers of 1024."""
    match = SIZE.fullmatch(text)
    return round(float(match[1]) * 1024 ** " KMGTP".index(match[2] or " ")) if match else None


def parse_tres(text: str) -> dict[str, str]:
    """Split `cpu=2,gres/gpu=1,mem=4G` into values by name."""
    return {name: value for item in text.split(",") for name, _, value in [item.partition("=")]}


def find_count(found: Mapping[str, str], name: str) -> int | None:
    """Return a number by its name; None: it is missing."""
    value = found.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else None


def count_gpus(got: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return the number of GPUs, or None and why it is unknown. Untracked TRES are never listed."""
    if (total := find_count(got, "gres/gpu")) is not None:
        return total, None
    of_types = [name for name in got if name.startswith("gres/gpu:")]
    found = [number for name in of_types if (number := find_count(got, name)) is not None]
    if found and len(found) == len(of_types):
        return sum(found), None
    parts = [f"{name}={got[name]}" for name in got if name.startswith(("gres/shard", "gres/mps"))]
    return None, SHARED_GPUS.format(",".join(parts)) if parts else NO_GPUS


def read_cpu_time(
    row: AccountingRow, total: str, cpus: int | None
) -> tuple[float | None, str | None]:
    """Return TotalCPU in seconds, or None and why it is implausible.

    sacct adds the steps' times when they end.
    """
    cpu_s = (parse_duration_s(total) or None) if row.end_unix_s is not None else None
    if cpu_s is None or cpus is None or row.elapsed_s is None:
        return cpu_s, None
    if cpu_s <= cpus * (row.elapsed_s + ELAPSED_ROUNDING_S) * CPU_ROUNDING:
        return cpu_s, None
    return None, (
        f"sacct's TotalCPU is {cpu_s:.10g} s, more than the {counted(cpus, 'CPU')} it was given have in "
        f"{row.elapsed_s:.10g} s"
    )


def read_resident_memory(
    names: Sequence[str], steps: Sequence[Sequence[str]]
) -> Iterator[tuple[int, int]]:
    """Yield (low, high) bytes of each step that Slurm sampled.

    The low value is that of its largest task, and the high value assumes the same of all tasks.
    """
    max_rss, ntasks = names.index("MaxRSS"), names.index("NTasks")
    for step in steps:
        size = parse_size_bytes(step[max_rss]) if step[max_rss] else None
        tasks = int(step[ntasks]) if step[ntasks].isdigit() else 1
        if size:
            yield size, size * max(tasks, 1)


def read_allocation(
    row: AccountingRow, names: Sequence[str], lines: Sequence[Sequence[str]]
) -> Allocation:
    """Return the allocation of the job `row`.

    `lines` are those of its steps, with fields in the order of `names`.
    """
    cells = dict(zip(names, row.fields, strict=True))
    requested, got = parse_tres(cells["ReqTRES"]), parse_tres(cells["AllocTRES"])
    found = list(read_resident_memory(names, lines))
    limit = cells["TimelimitRaw"]
    memory = parse_size_bytes(got.get("mem", ""))
    missing = {} if limit.isdigit() else {"time_limit_s": LIMITS.get(limit, "sacct reports none")}
    if memory is None and got != {"": ""}:
        missing["memory_bytes"] = NO_MEMORY
    cpus = find_count(got, "cpu")
    gpu_count, no_gpus = count_gpus(got)
    if no_gpus and got != {"": ""}:
        missing["gpus"] = no_gpus
    cpu_s, no_cpu_s = read_cpu_time(row, cells["TotalCPU"], cpus)
    if no_cpu_s:
        missing["cpu_s"] = no_cpu_s
    return Allocation(
        partition=cells["Partition"] or None,
        account=cells["Account"] or None,
        nodes=len(row.nodes) or None,
        cpus=cpus,
        cpus_requested=find_count(requested, "cpu"),
        memory_bytes=memory,
        gpus=gpu_count,
        time_limit_s=60.0 * int(limit) if limit.isdigit() else None,
        cpu_s=cpu_s,
        resident_low_bytes=max((low for low, _ in found), default=None),
        resident_high_bytes=max((high for _, high in found), default=None),
        shares_request=row.array_job_id is not None or row.het_offset is not None,
        missing=missing,
    )
