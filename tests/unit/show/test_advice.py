"""Advice on the next request: only where it is safe."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.job import advice, job_view, usage
from steelyard.analysis.job.time_series import JobTimeSeries
from steelyard.analysis.sources.accounting import Allocation
from steelyard.analysis.sources.records import read_record
from steelyard.wrappers.show import efficiency_text
from steelyard.wrappers.show.job_data import JobDetails

from ..collect import study as HELP

GIB = 1 << 30
# An hour on 8 CPUs and 64 GiB, of which it used one CPU and 3 GiB.
HELD = Allocation("main", "root", 1, 8, 8, 64 * GIB, 0, 8 * 3600.0, 3600.0, 3 * GIB, 3 * GIB)
COURSE = JobTimeSeries(("n1",), 0.0, 60.0, {"cpus_busy": [1.0] * 60}, 1.02, 1.0)


def view(folder: Path, held: Allocation = HELD, nodes: int = 1, **row: object) -> job_view.JobView:
    """A job with a record of each node; `idle`: how many of them no step came to."""
    idle = row.pop("idle", 0)
    record: Any = row.pop("record", {})
    names = tuple(f"n{n + 1}" for n in range(nodes))
    base = next(r for r in HELP.recorded_rows("22.05") if r.step is None and r.job_id == "1")
    fields = {"nodes": names, "start_unix_s": 1e9, "state": "completed", "elapsed_s": 3600, **row}
    found = job_view.JobView("1", dataclasses.replace(base, **fields), allocation=held)
    records = [
        HELP.write_record(
            folder, name, 1e9, "1",
            **{"memory": {"max_memory_bytes": 3 * GIB}, "cpu": {"cpu_s": 3600.0},
               "processes": {"named": n >= int(str(idle))}, **record},
        )
        for n, name in enumerate(names)
    ]  # fmt: skip
    found.nodes = job_view.make_node_views([read_record(path) for path in records])
    return found


def said(job: job_view.JobView, course: JobTimeSeries | None = COURSE) -> dict[str, str]:
    found = advice.advise(job, usage.compute_efficiency(job), course)
    return {one.about: one.text for one in found}


def test_asked_64_used_3(tmp_path: Path) -> None:
    told = said(view(tmp_path))
    assert told.keys() == {"memory", "cpus", "time"}
    assert "held 64 GiB, used 3 GiB at most: 4608 MiB would have" in told["memory"]
    assert "held 8 CPUs, never more than 1 were busy" in told["cpus"]
    assert "Else 1 will do" in told["cpus"]
    assert "was 8:00:00, it took 1:00:00: 2:00:00 has" in told["time"]


def test_a_limit_that_is_not_long_is_left_alone(tmp_path: Path) -> None:
    held = dataclasses.replace(HELD, time_limit_s=3 * 3600.0)
    assert "time" not in said(view(tmp_path, held))


def test_half_an_hour_for_a_minute_is_worth_a_word(tmp_path: Path) -> None:
    held = dataclasses.replace(HELD, time_limit_s=1800.0)
    told = said(view(tmp_path, held, elapsed_s=65))
    assert "was 0:30:00, it took 0:01:05: 0:10:00 has" in told["time"]
    held = dataclasses.replace(HELD, time_limit_s=840.0)
    assert "time" not in said(view(tmp_path, held, elapsed_s=65))


@pytest.mark.parametrize(
    ("state", "reason"), [("pending", "it has not begun"), ("cancelled", "it never began")]
)
def test_a_job_without_a_start(tmp_path: Path, state: str, reason: str) -> None:
    held = Allocation("main", "root", time_limit_s=1800.0)
    job = view(tmp_path, held, nodes=0, state=state, start_unix_s=None, elapsed_s=None)
    used = usage.compute_efficiency(job)
    assert (used.cpu.reason, used.memory.reason) == (reason, reason)


def test_nodes_without_a_step(tmp_path: Path) -> None:
    told = said(view(tmp_path, nodes=4, idle=3))
    assert told.keys() == {"nodes", "time"}  # of several nodes nobody knows what each was given
    assert "nothing was started on 3 of them (n1, n2, n3)" in told["nodes"]
    assert said(view(tmp_path, nodes=4, idle=4)).keys() == {"time"}


@pytest.mark.parametrize(
    "changed",
    [
        {"state": "timeout"},
        {"state": "out_of_memory"},
        {"state": "failed"},
        {"state": "running"},
        {"elapsed_s": 59},
        {"record": {"complete": False, "incomplete_reason": "killed"}},
        {"record": {"sampler": {"samples": 9, "samples_lost": 1}}},
    ],
)
def test_where_it_is_not_safe_nothing_is_said(tmp_path: Path, changed: dict[str, Any]) -> None:
    job = view(tmp_path, **changed)
    assert said(job) == {}
    assert advice.find_no_advice_reason(job)


def test_with_a_record_that_lacks_nothing_is_said(tmp_path: Path) -> None:
    job = view(tmp_path, nodes=2)
    job.nodes.pop()
    assert said(job) == {}
    assert advice.find_no_advice_reason(job) == "1 of 2 nodes have a whole record"
    record = {"complete": False, "incomplete_reason": "killed"}
    assert (
        advice.find_no_advice_reason(view(tmp_path / "one", record=record))
        == "its node has no whole record"
    )


def test_a_task_of_an_array_gets_none(tmp_path: Path) -> None:
    """--mem is for all of them, and another one may need it."""
    job = view(tmp_path, dataclasses.replace(HELD, shares_request=True))
    assert said(job) == {}
    assert "it is one of an array" in str(advice.find_no_advice_reason(job))


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({"resident_high_bytes": 40 * GIB}, {"cpus", "time"}),  # Slurm has seen more
        ({"memory_bytes": 4 * GIB}, {"cpus", "time"}),  # 3 of 4: nothing to save
        ({"memory_bytes": None}, {"cpus", "time"}),
        ({"cpus_requested": 1}, {"memory", "time"}),  # the node was given whole
        ({"cpu_s": 20000.0}, {"memory", "time"}),  # Slurm has counted what the record has not
        ({"cpus": 1}, {"memory", "time"}),
    ],
)
def test_one_that_is_not_safe_is_left_out(
    tmp_path: Path, changed: dict[str, Any], left: set[str]
) -> None:
    assert said(view(tmp_path, dataclasses.replace(HELD, **changed))).keys() == left


@pytest.mark.parametrize(
    "course",
    [
        None,
        dataclasses.replace(COURSE, most_cpus=7.9),  # it was busy once
        dataclasses.replace(COURSE, period_s=60.0),  # too rare to see a peak
    ],
)
def test_without_a_peak_nothing_is_said_of_cpus(
    tmp_path: Path, course: JobTimeSeries | None
) -> None:
    assert said(view(tmp_path), course).keys() == {"memory", "time"}


@pytest.mark.parametrize(
    ("waited_s", "scope", "words", "about"),
    [
        (3556.0, "job", "its processes waited for a CPU in 99 % of its time", {"memory", "time"}),
        (
            720.0,
            "node",
            "processes on its node, its own or others', waited for a CPU in 20 % of its time",
            {"memory", "time"},
        ),
        (
            1800.0,
            "host",
            "its node's host gave 25 % of the node's CPU time to others",
            {"memory", "time"},
        ),
        (300.0, "job", "", {"memory", "cpus", "time"}),  # 8 %: a busy node all the same
        (None, None, "", {"memory", "cpus", "time"}),  # the kernel tells none
    ],
)
def test_of_a_job_that_waited_for_cpus_nothing_is_said_of_them(
    tmp_path: Path, waited_s: float | None, scope: str | None, words: str, about: set[str]
) -> None:
    """Observed: 66 s of two threads on a crowded node, 65.6 s waited; "1 will do" was reported."""
    record = {"elapsed_s": 3600.0, "pressure": {"cpu_some_s": waited_s, "scope": scope}}
    if scope == "host":
        steal = {"cpu_s": 3600.0, "node_steal_s": waited_s}
        record = {"elapsed_s": 3600.0, "cpu": steal, "probe": {"cpu": {"cpus_online": 2}}}
    job = view(tmp_path, record=record)
    assert said(job).keys() == about
    told = JobDetails(job, usage.compute_efficiency(job), COURSE)
    assert efficiency_text.describe_pressure(told) == ([words] if words else [])


def test_a_node_without_a_record_leaves_the_sum_at_least(tmp_path: Path) -> None:
    job = view(tmp_path, dataclasses.replace(HELD, cpu_s=None, resident_low_bytes=None), nodes=2)
    job.nodes.pop()
    found = usage.compute_efficiency(job)
    assert (found.cpu.used, found.cpu.is_least, found.cpu.source) == (3600.0, True, usage.RECORDS)
    assert found.cpu.share == pytest.approx(1 / 8)
    assert (found.memory.used, found.memory.is_least) == (3 * GIB, True)
    job.allocation = HELD  # the accounting has counted all of it
    assert usage.compute_efficiency(job).cpu == usage.Usage(
        8 * 3600.0, 3600.0, False, usage.ACCOUNTING, None
    )


def test_a_running_job_of_pbs_has_begun(tmp_path: Path) -> None:
    """Observed: "CPU: it has not begun" with 11.9 s used: qstat has no times of a running job."""
    began = time.time() - 600
    job = view(tmp_path, state="running", elapsed_s=None, end_unix_s=None, start_unix_s=began)
    found = usage.compute_efficiency(job)
    assert found.time.used == pytest.approx(600, abs=60)
    assert found.cpu.allocated == pytest.approx(8 * 600, abs=8 * 60)
    assert found.cpu.reason is None
    waiting = view(tmp_path, state="pending", elapsed_s=None, start_unix_s=None)
    assert usage.compute_efficiency(waiting).cpu.reason == usage.NOT_BEGUN
    over = view(tmp_path, elapsed_s=None)
    assert usage.compute_efficiency(over).cpu.reason == usage.NO_TIME


@pytest.mark.parametrize(
    ("server_start", "server_s", "took_s"),
    [
        (1e9 + 30, 0, 20.0),  # the server was away, and began to count when it was back
        (1e9, 19, 19.0),  # it counts whole seconds
        (1e9 + 1, 18, 18.0),  # its clock is another
        (1e9, 8, 8.0),  # suspended for 12 s, which Slurm does not count
    ],
)
def test_a_server_that_was_away_counts_from_a_later_start(
    tmp_path: Path, server_start: float, server_s: float, took_s: float
) -> None:
    """Seen: "took less than 1 s" of a job of 6 s. The record has 20 s."""
    job = view(tmp_path, start_unix_s=server_start, elapsed_s=server_s)
    assert usage.compute_efficiency(job).time.used == took_s


def test_a_running_jobs_record_is_so_far(tmp_path: Path) -> None:
    fields: dict[str, Any] = {
        "incomplete_reason": "the job was still running when this was written"
    }
    job = view(tmp_path, state="running", record={"complete": False, **fields})
    (record,) = [read_record(path) for path in tmp_path.glob("*.json")]
    job_view.note_record_problems(job, record, with_samples=False)
    assert (job.missing, job.notes[-1:]) == (
        [],
        ["n1: so far, as of its last sample: the job runs"],
    )


def test_a_job_that_ended_within_a_second_has_no_share(tmp_path: Path) -> None:
    found = usage.compute_efficiency(view(tmp_path, elapsed_s=0))
    assert (found.cpu.share, found.cpu.reason) == (None, usage.WITHIN_A_SECOND)


def test_cpu_time_that_is_not_believed_says_why_there_is_no_share(tmp_path: Path) -> None:
    job = view(tmp_path)
    why = "sacct's TotalCPU is 147587 s, more than the 8 CPUs it was given have in 3600 s"
    job.allocation = dataclasses.replace(HELD, cpu_s=None, missing={"cpu_s": why})
    assert usage.compute_efficiency(job).cpu.share == 0.125  # by its record
    job.nodes = []
    assert (usage.compute_efficiency(job).cpu.share, usage.compute_efficiency(job).cpu.reason) == (
        None,
        why,
    )
