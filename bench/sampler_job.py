"""For bench/sampler.py, noise.py and process_storm.py: our samplers of a job, with every source, also
while all processes of a large job end at once."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.programs import find_node_program

V1_CPU, V1_MEMORY = Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")
KERNEL_OPTION = "--bpf"  # of `steelyard-node sample`: the program that starts the kernel's counts


@dataclass(frozen=True)
class Way:
    """A source of the job's figures for a sampler."""

    name: str
    options: tuple[str, ...] = ()
    grouped: bool = False  # it gets the job's cgroup


@dataclass(frozen=True)
class Group:
    """A cgroup for the job: its name, and its folder in each hierarchy."""

    name: str
    folders: tuple[Path, ...]

    @property
    def procs(self) -> list[str]:
        return [str(folder / "cgroup.procs") for folder in self.folders]

    def used_s(self) -> float:
        """Return the CPU time in s that the kernel counted for it."""
        v1 = self.folders[0] / "cpuacct.usage"
        if v1.exists():
            return int(v1.read_text()) / 1e9
        usage = (self.folders[0] / "cpu.stat").read_text().split()
        return int(usage[usage.index("usage_usec") + 1]) / 1e6


@contextmanager
def group(name: str) -> Iterator[Group | None]:
    """Make a cgroup that counts CPU and memory; None if that is impossible."""
    parents = (V1_CPU, V1_MEMORY) if (V1_CPU / "cpuacct.usage").exists() else (V2,)
    made = Group(f"/{name}", tuple(parent / name for parent in parents))
    try:
        for folder in made.folders:
            folder.mkdir()
        counts = any((folder / "memory.stat").exists() for folder in made.folders)
        yield made if counts else None
    finally:
        remove(made)


def remove(made: Group) -> None:
    """Remove the cgroup after the end of its last process."""
    end = time.monotonic() + 20
    for folder in made.folders:
        while folder.exists():
            try:
                folder.rmdir()
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)


@cache
def kernel_program() -> Path | None:
    """Return the program for the kernel's counts; None: not in this build.

    The record states whether the kernel counted.
    """
    node = find_node_program()
    help_text = subprocess.run(
        [node, "sample", "--help"], capture_output=True, text=True, check=True
    )
    program = node.with_name("steelyard-bpf")
    return program if KERNEL_OPTION in help_text.stdout and program.exists() else None


def ways(grouped: bool) -> list[Way]:
    """Return the ways of this build and this machine."""
    found = [Way("processes")]
    if grouped:
        found.append(Way("cgroup", grouped=True))
    program = kernel_program()
    if program:
        found.append(Way("kernel", (KERNEL_OPTION, str(program)), grouped))
    return found


def job_processes() -> list[Path]:
    """Return the folders of the job's processes in /proc."""
    comms = (one / "comm" for one in Path("/proc").glob("[0-9]*"))
    return [path.parent for path in comms if read(path) == b"sampler_load\n"]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def read_name(pid: int) -> str:
    return read(Path(f"/proc/{pid}/comm")).decode().strip()


def parent_of(process: Path) -> int:
    stat = read(process / "stat").decode()
    return int(stat.rpartition(")")[2].split()[1]) if stat else 0


def cpu_ns(pid: int) -> int:
    """Return the CPU time in ns of all threads of a process."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks)


def memory_kb(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    fields = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return {
        "Rss": fields["Rss"],
        "Private": fields["Private_Clean"] + fields["Private_Dirty"],
    }


def make_tree(folder: Path) -> None:
    """Make a root folder with RAPL in it; `in_namespace` mounts the rest."""
    for name, zone in (
        ("intel-rapl:0", "package-0"),
        ("intel-rapl:0:0", "dram"),
        ("intel-rapl:1", "package-1"),
        ("intel-rapl:1:0", "dram"),
    ):
        path = folder / "sys/class/powercap" / name
        path.mkdir(parents=True)
        (path / "name").write_text(f"{zone}\n")
        (path / "max_energy_range_uj").write_text("262143328850\n")
        (path / "energy_uj").write_text("12345678901\n")
    for name in ("proc", "sys/devices", "sys/class/net", "sys/fs/cgroup"):
        (folder / name).mkdir(parents=True)


def in_namespace(tree: Path) -> list[str]:
    """Return a command prefix that mounts the machine's counters into the tree for one program."""
    binds = "".join(
        f"mount --rbind /{name} {tree}/{name} && "
        for name in ("proc", "sys/devices", "sys/class/net", "sys/fs/cgroup")
    )
    return ["unshare", "--mount", "sh", "-c", f'{binds} exec "$@"', "sh"]


@dataclass
class Sampler:
    """One of our samplers: its parent and its child."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def child(self) -> int:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(path.read_text().split()[0])

    def cpu_ns(self) -> int:
        return cpu_ns(self.child) + cpu_ns(self.process.pid)

    def memory_kb(self) -> int:
        """Return the memory of both, with shared pages counted once."""
        return memory_kb(self.child)["Rss"] + memory_kb(self.process.pid)["Private"]

    def samples(self, begin_unix_s: float, end_unix_s: float) -> int:
        """Return the number of samples in a period; call it after the sampler's end."""
        (path,) = self.folder.glob("*.csv")
        with path.open(newline="") as file:
            return sum(begin_unix_s <= float(row["unix_s"]) < end_unix_s
                       for row in csv.DictReader(file))  # fmt: skip

    def elapsed_s(self) -> list[float]:
        """Return the time of each sample; call it after the sampler's end."""
        (path,) = self.folder.glob("*.csv")
        with path.open(newline="") as file:
            return [float(row["elapsed_s"]) for row in csv.DictReader(file)]

    def record(self) -> dict[str, Any]:
        (path,) = self.folder.glob("*.json")
        found = json.loads(path.read_bytes())
        assert isinstance(found, dict)
        return found

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)


STARTED: list[Sampler] = []


def end_started() -> None:
    """End the samplers of a benchmark that was interrupted."""
    for sampler in STARTED:
        if sampler.process.poll() is None:
            sampler.end()


def start(base: Path, way: Way, rate_hz: float, root: int, made: Group | None) -> Sampler:
    """Start a sampler and wait for its first sample."""
    records = base / "records"
    records.mkdir(exist_ok=True)
    job_id = f"{way.name}.{time.monotonic_ns()}"
    control = base / f"{job_id}.sock"
    arguments = [
        *in_namespace(base / "tree"), str(find_node_program()), "sample", "--record-dir",
        str(records), "--job-id", job_id, "--root", str(base / "tree"), "--rate", str(rate_hz),
        "--pid", str(root), "--control", str(control), *way.options,
    ]  # fmt: skip
    sampler = Sampler(subprocess.Popen(arguments), records / job_id)
    STARTED.append(sampler)
    wait_until(lambda: any(path.stat().st_size for path in sampler.folder.glob("*.json")))
    if way.grouped and made:
        send = [find_node_program(), "send", "--control", control, f"cgroup {made.name}", "totals"]
        subprocess.run(send, check=True, capture_output=True, timeout=20)
    return sampler


def wait_until(condition: object, seconds: float = 30) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"bench: waited {seconds} s in vain")
        time.sleep(0.02)


@dataclass(frozen=True)
class Cost:
    """CPU time per sample, and the share of the kernel's timer, which no process is charged for.

    Also the sampler's memory, and the sources of CPU and I/O in its record.
    """

    sample_us: float
    timer_us: float
    memory_kb: int
    source: str


def cost(sampler: Sampler, seconds: float) -> Cost:
    """Return the cost of a sample in the next `seconds`; end the sampler."""
    begin_s, before = time.time(), sampler.cpu_ns()
    time.sleep(seconds)
    end_s, used = time.time(), sampler.cpu_ns() - before
    memory = sampler.memory_kb()
    sampler.end()
    record = sampler.record()
    source = f"{record['cpu']['source']}, {record['io']['source']}"
    own_us = used / 1e3 / max(sampler.samples(begin_s, end_s), 1)
    return Cost(own_us + timer_us(record), timer_us(record), memory, source)


def timer_us(record: dict[str, Any]) -> float:
    """Return the CPU time in µs of a reading by the kernel's timer, which measures itself.

    BPF_ENABLE_STATS reports the time of programs (run_time_ns) without timers.
    """
    ticks = record.get("bpf", {}).get("ticks", 0)
    return float(record["bpf"]["ticks_s"]) * 1e6 / ticks if ticks else 0.0


def compiled(base: Path, name: str, compiler: str = "cc") -> Path:
    """Compile a small C program next to this file.

    If this is interrupted, the compiler is killed: it would write into a folder that is being
    removed.
    """
    program = base / name
    if program.exists():
        return program
    source = Path(__file__).with_name(f"{name}.c")
    argv = [compiler, "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-o", program, source]
    with subprocess.Popen(argv, stderr=subprocess.PIPE, start_new_session=True) as compiling:
        try:
            _, errors = compiling.communicate(timeout=60)
        except BaseException:
            os.killpg(compiling.pid, signal.SIGKILL)
            compiling.communicate()  # until no process has it open
            raise
    if compiling.returncode:
        raise SteelyardError(f"{compiler} {source.name}: {errors.decode(errors='replace')}")
    return program


def load_average() -> float:
    return os.getloadavg()[0]


PROCESSES, PERIOD_MS = 4000, 4000
BEFORE_S, AFTER_S = 2, 2


def late_ms(sampler: Sampler, period_s: float) -> float:
    """Return by how many ms the longest interval of samples exceeds a period; after its end."""
    at = sampler.elapsed_s()
    return 1e3 * max(b - a - period_s for a, b in itertools.pairwise(at))


def end_all() -> None:
    """Kill the first of the job's processes, which ends the others."""
    for path in job_processes():
        if read_name(parent_of(path)) != "sampler_load":
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.kill(int(path.name), 9)


def in_one_way(base: Path, way: Way, made: Group | None, rate_hz: int) -> dict[str, object]:
    """Measure one way; the sampler starts before the job's processes."""
    load = compiled(base, "sampler_load")
    script = f'read -r go; "$0" {PROCESSES} {PERIOD_MS} 600 "$@"; exec sleep 60'
    root = subprocess.Popen(
        ["sh", "-c", script, load, *(made.procs if made else ())],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL,  # sh prints "Killed" there
    )  # fmt: skip
    assert root.stdin
    try:
        sampler = start(base, way, rate_hz, root.pid, made)
        root.stdin.write(b"go\n")
        root.stdin.close()
        wait_until(lambda: len(job_processes()) == PROCESSES, 60)
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
        wait_until(lambda: not job_processes(), 60)
    usual = (begin - before) / BEFORE_S
    return {
        "way": way.name,
        "processes": PROCESSES,
        "usual_ms": round(usual / 1e6, 1),
        "more_ms": round((end - begin - usual * AFTER_S) / 1e6, 1),
        "late_ms": round(late_ms(sampler, 1 / rate_hz), 1),
    }


def in_each_way(base: Path, rate_hz: int) -> list[dict[str, object]]:
    with group(f"steelyard-bench-{os.getpid()}") as made:
        return [in_one_way(base, way, made, rate_hz) for way in ways(made is not None)]


def report(found: Sequence[dict[str, object]]) -> None:
    for one in found:
        print(f"{one['processes']} processes end at once, {one['way']}: {one['more_ms']} ms of CPU more than "
              f"at {one['usual_ms']} ms a second, in {AFTER_S} s; the latest sample {one['late_ms']} ms late")  # fmt: skip
