"""steelyard-load counts correctly: compared with the kernel's report to its parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.calibrate import known_loads, table

ROOT = Path(__file__).resolve().parents[3]
LOAD = ROOT / "build/bin/steelyard-load"
# A separate process, so that its children include nothing else.
WITNESS = """
import json, os, subprocess, sys
def io():
    return dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
before = io()
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
after = io()
times = os.times()
print(json.dumps({k: int(after[k]) - int(before[k]) for k in before} | {"code": code,
    "cpu_s": times.children_user + times.children_system}))
"""


RESULT = "%j,%n,%p.result"


def run(tmp_path: Path, *actions: str) -> tuple[known_loads.Result, dict[str, float]]:
    """Return the load's own report, and the kernel's to its parent."""
    return witnessed(tmp_path, str(LOAD), RESULT, *actions)


def witnessed(tmp_path: Path, *command: str) -> tuple[known_loads.Result, dict[str, float]]:
    """The same of a command that runs the load."""
    argv = [sys.executable, "-c", WITNESS, *command]
    env = {k: value for k, value in os.environ.items() if not k.startswith(("SLURM", "PBS"))}
    done = subprocess.run(
        argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    witness = json.loads(done.stdout)
    assert witness["code"] == 0, done.stderr
    (found,) = known_loads.read_results(tmp_path)
    assert (found.job, found.node) == ("none", "none")
    return found, witness


# The witness' own readings: two of /proc/self/io, and the pipe that its child's start comes by.
WITNESS_READS, WITNESS_WRITES = 400, 16


@pytest.mark.parametrize(
    "actions",
    [
        ("read=3000000", "write=2000000"),
        ("processes=20:0.1:30000:0",),
        ("store=1048576", "fetch=1048576"),
        ("read=1000", "--", "head", "-c", "70000", "/dev/zero"),
    ],
    ids=lambda actions: actions[0].partition("=")[0],
)
def test_bytes_are_those_that_the_kernel_counts(tmp_path: Path, actions: tuple[str, ...]) -> None:
    found, witness = run(tmp_path, *actions)
    reads = witness["rchar"] - known_loads.true_value(table.READS, [found])
    assert 0 <= reads < WITNESS_READS
    assert 0 <= witness["wchar"] - known_loads.true_value(table.WRITES, [found]) < WITNESS_WRITES
    stored = witness["write_bytes"] - known_loads.true_value(table.STORED, [found])
    assert 0 <= stored <= 16_384


def test_what_waiting_shells_had_used_stands_apart(tmp_path: Path) -> None:
    """Two shells of one session, the outer one with two children before: their bytes, too, their
    CPU not."""
    before = "head -c 70000 /dev/zero | tail -c 1 >/dev/null; "
    line = f"{before} i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; "
    line += f"sh -c '{LOAD} {RESULT} parent write=1000; :'; :"
    found, witness = witnessed(tmp_path, "setsid", "-w", "sh", "-c", line)
    assert found.values["parent_read_calls_bytes"] >= 140_000
    for quantity, name, own in ((table.READS, "rchar", WITNESS_READS),
                                (table.WRITES, "wchar", WITNESS_WRITES)):  # fmt: skip
        every = known_loads.true_value(quantity, [found]) + known_loads.used_by_parents(
            quantity, [found]
        )
        assert 0 <= witness[name] - every < own
    assert 0.001 < known_loads.used_by_parents(table.CPU, [found]) <= witness["cpu_s"] + 0.02


def test_a_job_of_pbs_and_its_node_stand_in_the_results_name(tmp_path: Path) -> None:
    env = {"PBS_JOBID": "12[3].srv.example", "PBS_NODENUM": "1"}
    subprocess.run([LOAD, RESULT, "cpu=0"], cwd=tmp_path, env=env, check=True, timeout=60)
    (found,) = known_loads.read_results(tmp_path)
    assert (found.job, found.node) == ("12[3].srv.example", "1")


def test_cpu_is_what_was_asked_for_and_what_the_kernel_tells(tmp_path: Path) -> None:
    found, witness = run(tmp_path, "cpu=0.1", "processes=4:0.1:0:0", "threads=2:0.1")
    truth = known_loads.true_value(table.CPU, [found])
    assert 0.3 <= truth <= witness["cpu_s"] + 0.02  # ticks of 10 ms, twice


@pytest.mark.parametrize("kind", ["orphans", "ignored"])
def test_what_nobody_waits_for_is_counted_all_the_same(tmp_path: Path, kind: str) -> None:
    found, witness = run(tmp_path, f"{kind}=5:0.1:40000:0.01")
    assert found.values["unwaited_read_calls_bytes"] == 200_000
    assert found.values["unwaited_write_calls_bytes"] == 200_000
    assert found.values["unwaited_cpu_us"] >= 100_000
    assert found.values["cpu_us"] < 100_000
    assert witness["wchar"] < 10_000 < known_loads.true_value(table.WRITES, [found])


def test_memory_tcp_and_time(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "memory=20000000:0", "tcp=300000", "sleep=0.2", "processes=2:0:0:0")
    assert found.values["memory_bytes"] == 20_000_000
    assert found.values["sent_bytes"] == found.values["received_bytes"] == 300_000
    assert found.values["processes"] == 3
    assert found.values["elapsed_s"] >= 0.2


@pytest.mark.parametrize("wrong", ["cpu", "processes=2:1", "fly=1", "tcp=1:2"])
def test_what_it_does_not_know_is_refused(tmp_path: Path, wrong: str) -> None:
    done = subprocess.run(
        [LOAD, "r", wrong], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    name = wrong.partition("=")[0]
    assert done.stderr == f"steelyard-load: {name}: no such action, or not so many numbers\n"


def test_a_failed_load_leaves_no_result(tmp_path: Path) -> None:
    done = subprocess.run(
        [LOAD, "absent/r", "cpu=0"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "absent/r.new: No such file" in done.stderr


def run_of(tmp_path: Path, *actions: str) -> dict[str, Any]:
    """Return the record of `steelyard run --no-bpf` around a load."""
    node = ROOT / "build/bin/steelyard-node"
    argv = [node, "sample", f"--record-dir={tmp_path}", "--job-id=1", "--rate=50", "--bpf=no", "--"]
    subprocess.run([*argv, LOAD, "%p.result", *actions], cwd=tmp_path, check=True, timeout=60)
    (path,) = tmp_path.glob("1/*.json")
    return dict(json.loads(path.read_bytes()))


def test_children_of_a_parent_that_ignores_sigchld_are_measured_as_far_as_samples_saw_them(
    tmp_path: Path,
) -> None:
    """The kernel adds them to nobody: what samples show is more than was waited for."""
    record = run_of(tmp_path, "ignored=2:0.04:300000:1.5", "sleep=0.1")
    assert record["incomplete_reason"].startswith("samples show 0.0")
    assert 600_000 <= record["io"]["wchar_bytes"] < 602_000
    assert 0.04 <= record["cpu"]["cpu_s"] < 0.06


def test_of_those_that_work_to_their_end_the_record_says_that_it_lacks_some(tmp_path: Path) -> None:
    record = run_of(tmp_path, "ignored=2:1.2:300000:0", "sleep=0.1")
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith("samples show ")
    assert 600_000 <= record["io"]["wchar_bytes"] < 602_000
    assert 0.1 < record["cpu"]["cpu_s"] < 1.25


def test_orphans_are_waited_for_by_the_sampler_and_are_no_gap(tmp_path: Path) -> None:
    record = run_of(tmp_path, "orphans=4:0.4:300000:0.2")
    assert record["complete"] is True
    assert 1_200_000 <= record["io"]["wchar_bytes"] < 1_202_000
