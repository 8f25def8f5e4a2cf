"""Jobs of a known load: record, AdminComment and sacct agree with the load's own report.

`tests/system/cluster/test_jobs.py` has the batch jobs; these have no batch step, and their
slurmstepd reports its final counters twice.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.throwaway_lab import KERNEL_COUNTS, Lab, until

# Burns, reads and writes as requested, and reports its usage at the end, as the kernel reports it.
LOAD = """
import json, os, resource, sys, time
cpu_s, size, life_s, folder = float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
end = time.monotonic() + life_s
null, zero = os.open("/dev/null", os.O_WRONLY), os.open("/dev/zero", os.O_RDONLY)
for _ in range(size // 100_000):
    os.write(null, os.read(zero, 100_000))
while time.process_time() < cpu_s:
    pass
time.sleep(max(0, end - time.monotonic()))
known = os.open(f"{folder}/{os.environ['SLURM_JOB_ID']}.{os.getpid()}", os.O_CREAT | os.O_WRONLY)
io = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
own = resource.getrusage(resource.RUSAGE_SELF)
used = {"cpu_s": own.ru_utime + own.ru_stime} | {f: int(io[f]) for f in ("rchar", "wchar")}
used["wchar"] += 200
os.write(known, json.dumps(used).encode().ljust(200))
os._exit(0)
"""

# What comes on top: the load's own end, and its start before it became the program.
MORE_CPU_S = 0.06
MORE_WRITTEN = 100  # bytes a step
MORE_READ = 20_000


def load(lab: Lab, cpu_s: float, size: int, life_s: float = 0.6) -> list[str]:
    """The arguments of a load whose truth goes into the work folder."""
    script, known = lab.work / "load.py", lab.work / "known"
    script.write_text(LOAD)
    known.mkdir(exist_ok=True)
    return [sys.executable, "-S", str(script), str(cpu_s), str(size), str(life_s), str(known)]


def truth(folder: Path, job: str) -> dict[str, float]:
    """The sum of what the loads of a job have used."""
    told = [json.loads(path.read_text()) for path in folder.glob(f"{job}.*")]
    assert told
    return {name: sum(used[name] for used in told) for name in told[0]}


def slurms_cpu_s(lab: Lab, job: str) -> float:
    """Return TotalCPU of the job in s; its steps may be reported after its end."""
    text = lab.run("sacct", "-n", "-P", "-j", job, "-o", "TotalCPU").stdout.split()[0]
    total = 0.0
    for part in text.split(":"):
        total = total * 60 + float(part)
    return total


def assert_true(known: dict[str, float], cpu_s: float, io: dict[str, Any], steps: int) -> None:
    assert known["cpu_s"] - 0.01 <= cpu_s <= known["cpu_s"] + MORE_CPU_S * steps
    assert known["wchar"] <= io["wchar_bytes"] <= known["wchar"] + MORE_WRITTEN * steps
    assert known["rchar"] <= io["rchar_bytes"] <= known["rchar"] + MORE_READ * steps


def assert_everywhere(lab: Lab, job: str, steps: int) -> None:
    """Record, AdminComment and sacct, each against the truth."""
    known = truth(lab.work / "known", job)
    (record,) = lab.records(job, 1)
    assert (record["complete"], record["io"]["source"]) == (
        True,
        "bpf" if KERNEL_COUNTS else "reaped",
    )
    assert_true(known, record["cpu"]["cpu_s"], record["io"], steps)
    comment = lab.comment(job)
    assert_true(known, comment["cpu_s"], comment, steps)
    total = pytest.approx(known["cpu_s"], abs=0.1)
    until(lambda: slurms_cpu_s(lab, job) == total, "sacct's TotalCPU")


@pytest.mark.parametrize(
    ("options", "life_s"), [(["--tag=a=b"], 0.6), ([], 2.4)], ids=["tagged", "long"]
)
def test_a_job_of_srun_alone_counts_once(lab: Lab, options: list[str], life_s: float) -> None:
    argv = load(lab, 0.4, 3_000_000, life_s)
    done = lab.run("srun", "-n1", "-w", "n1", *options, *argv)
    assert done.returncode == 0, done.stderr
    (job,) = {path.name.split(".")[0] for path in (lab.work / "known").iterdir()}
    lab.jobs.append(job)
    assert_everywhere(lab, job, 1)


def test_an_allocation_with_two_steps_counts_each_once(lab: Lab) -> None:
    first, second = load(lab, 0.4, 3_000_000), load(lab, 0.2, 2_000_000)
    script = f"srun {' '.join(first)}; srun {' '.join(second)}"
    done = lab.run("salloc", "-Q", "-n1", "-w", "n1", "--tag=a=b", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    (job,) = {path.name.split(".")[0] for path in (lab.work / "known").iterdir()}
    lab.jobs.append(job)
    assert_everywhere(lab, job, 2)


def test_each_component_of_a_heterogeneous_job_counts_once(lab: Lab) -> None:
    argv = ["srun", "--het-group=0,1", *load(lab, 0.4, 3_000_000)]
    second = [":", "-n1", "-w", "n2", "--tag=a=b"]
    done = lab.run("salloc", "-Q", "-n1", "-w", "n1", "--tag=a=b", *second, *argv)
    assert done.returncode == 0, done.stderr
    known = truth(lab.work / "known", "*")
    first = min(int(path.name.split(".")[0]) for path in (lab.work / "known").iterdir())
    lab.jobs.append(str(first))
    for job in (first, first + 1):
        (record,) = lab.records(str(job), 1)
        half = {name: value / 2 for name, value in known.items()}
        assert_true(half, record["cpu"]["cpu_s"], record["io"], 1)
        assert record["job"]["nodes"] == record["node"]


def test_orphans_that_a_sample_sees_are_counted(lab: Lab) -> None:
    """Of `setsid … &` in a subshell neither Slurm nor any parent knows; they outlive their work."""
    argv = " ".join(load(lab, 0.2, 5_000_000, 1.5))
    known = lab.work / "known"
    # What waits for their last words uses hardly any CPU, however long it takes.
    told = f"n=0; for f in {known}/*; do [ ! -s $f ] || n=$((n + 1)); done; [ $n = 3 ]"
    wait = f"until {told}; do sleep 0.2; done"
    job = lab.sbatch("-w", "n1", script=f"for i in 1 2 3; do (setsid {argv} &); done; {wait}")
    (record,) = lab.records(job, 1, complete=False)
    until(lambda: lab.records(job, 1, complete=False)[0]["end_unix_s"], "the last record")
    (record,) = lab.records(job, 1, complete=False)
    used = truth(known, job)
    assert used["cpu_s"] - 0.1 <= record["cpu"]["cpu_s"] <= used["cpu_s"] + 0.3
    assert used["wchar"] - 3_000 <= record["io"]["wchar_bytes"] <= used["wchar"] + 10_000
