"""Reads fio's JSON (--output-format=json) from out.CLIENT.

Jobs of one group run at once: their rate is what all transferred by the longest one's time. Groups
of a job file run one after another (stonewall): their rate is what all transferred by the sum of
their times. fio's JSON does not have stonewall, nor new_group, which job.sh refuses. Mean latencies
are weighted by requests. Percentiles of several jobs cannot be combined and are omitted.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import last_message, positive, read_document, read_output
from steelyard.jobscripts.registry import Result

ASKED = ("rw", "bs", "size", "numjobs", "iodepth", "ioengine", "direct", "end_fsync")
RATES = (("bandwidth", "bytes_per_s", "io_bytes", "bw_bytes"), ("iops", "1/s", "total_ios", "iops"))
PERCENTILES = {"p50": "50.000000", "p99": "99.000000"}


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return rates and latencies of reads and writes, and the mount's counters."""
    name = f"out.{client}"
    document, before = _document(name, read_output(folder, client, "fio"))
    jobs = _jobs(name, document)
    for job in jobs:
        if job.get("error") != 0:
            message = [*before, last_message(folder, client)][0]
            raise FailedError(f"fio says error {job.get('error')}" + (message and f": {message}"))
    if not parameters["job_file"]:
        _check_options(name, jobs, parameters)
    found = _rates(name, jobs)
    for direction in ("read", "write"):
        found += _latencies(name, jobs, direction)
    return found + mounts.results(folder, client)


def _document(name: str, text: str) -> tuple[dict[str, Any], list[str]]:
    """Return fio's JSON, and the lines of notes and errors before it."""
    found, before = read_document(name, text)
    if not text.endswith("\n"):
        raise OutputError(name, "cut short: the last line has no end")
    if not str(found.get("fio version", "")).startswith("fio-"):
        raise OutputError(name, "no 'fio version': not fio's JSON")
    return found, before


def _jobs(name: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = document.get("jobs")
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise OutputError(name, "no jobs in it")
    return jobs


def _check_options(name: str, jobs: list[dict[str, Any]], parameters: Mapping[str, object]) -> None:
    """Compare the options that fio repeats for its only group with the requested ones."""
    options = jobs[0].get("job options")
    if len(jobs) != 1 or not isinstance(options, dict):
        raise OutputError(name, f"{len(jobs)} groups of jobs instead of one")
    requested = {key: parameters[key] for key in ASKED}
    if parameters["runtime"]:
        requested |= {"runtime": parameters["runtime"], "time_based": 1}
    for key, value in requested.items():
        wanted = str(int(value)) if isinstance(value, bool) else str(value)
        # fio repeats an option without a value as an empty text; it means 1.
        if (options.get(key) or "1") != wanted or key not in options:
            raise OutputError(name, f"{key} is {options.get(key)!r} instead of {wanted!r}")


def _rates(name: str, jobs: list[dict[str, Any]]) -> list[Result]:
    """Return the rates of reads, of writes and of both together."""
    phases = [list(group) for _, group in itertools.groupby(jobs, lambda job: job.get("groupid"))]
    _refuse_concurrent_groups(name, phases)
    found, totals = [], []
    for metric, unit, count, rate in RATES:
        both = []
        for direction in ("read", "write"):
            sections = [_active(name, phase, direction) for phase in phases]
            rates = [_phase_rate(name, some, count, rate) for some in sections]
            both.append(rates)
            if any(sections):
                found.append(Result(f"{direction}_{metric}", _combine(rates), unit, 1))
        # Reads and writes of a phase run at once.
        together = [
            (reads[0] + writes[0], max(reads[1], writes[1]))
            for reads, writes in zip(*both, strict=True)
        ]
        totals.append(Result(metric, _combine(together), unit, 1))
    if not found:
        raise FailedError("fio neither read nor wrote anything")
    return totals + found


def _refuse_concurrent_groups(name: str, phases: list[list[dict[str, Any]]]) -> None:
    """Raise OutputError if fio (from 3.36 on) reports that two groups began at once."""
    starts = [phase[0].get("job_start") for phase in phases]
    known = [start for start in starts if start is not None]
    if len(set(known)) != len(known):
        raise OutputError(
            name,
            "groups of jobs that ran at once (new_group): groups one after another (stonewall) are "
            "expected",
        )


def _phase_rate(
    name: str, sections: list[dict[str, Any]], count: str, rate: str
) -> tuple[float, float]:
    """Return the rate of jobs that ran at once, and the longest one's time in ms, as fio's
    group_reporting has them."""
    if not sections:
        return 0.0, 0.0
    longest_ms = max(positive(name, section, "runtime") for section in sections)
    rates = [positive(name, section, rate) for section in sections]
    if len(sections) == 1:
        return rates[0], longest_ms
    return 1000 * sum(positive(name, one, count) for one in sections) / longest_ms, longest_ms


def _combine(phases: list[tuple[float, float]]) -> float:
    """Return the rate of phases (rate, time) that ran one after another."""
    if sum(rate > 0 for rate, _ in phases) < 2:
        return sum(rate for rate, _ in phases)
    return sum(rate * time for rate, time in phases) / sum(time for _, time in phases)


def _active(name: str, jobs: list[dict[str, Any]], direction: str) -> list[dict[str, Any]]:
    """Return the direction's section of each group that transferred anything in it."""
    found = []
    for job in jobs:
        section = job.get(direction)
        if not isinstance(section, dict) or "total_ios" not in section:
            raise OutputError(name, f"a group without '{direction}'")
        if section["total_ios"] != 0:
            positive(name, section, "total_ios")
            found.append(section)
    return found


def _latencies(name: str, jobs: list[dict[str, Any]], direction: str) -> list[Result]:
    sections = _active(name, jobs, direction)
    if not sections:
        return []
    latencies = [_latency(name, section, direction) for section in sections]
    weights = [positive(name, section, "total_ios") for section in sections]
    means = [positive(name, latency, "mean") for latency in latencies]
    mean = sum(w * m for w, m in zip(weights, means, strict=True)) / sum(weights)
    found = [Result(f"{direction}_latency_mean", mean / 1e9, "s", 1)]
    if len(sections) == 1:
        for short, long in PERCENTILES.items():
            value = positive(name, latencies[0]["percentile"], long)
            found.append(Result(f"{direction}_latency_{short}", value / 1e9, "s", 1))
    return found


def _latency(name: str, section: dict[str, Any], direction: str) -> dict[str, Any]:
    """Return the total latency if fio has its percentiles, else the completion latency."""
    for key in ("lat_ns", "clat_ns"):
        latency = section.get(key)
        if not isinstance(latency, dict):
            raise OutputError(name, f"{direction} without {key}")
        if isinstance(latency.get("percentile"), dict):
            return latency
    raise OutputError(name, f"{direction} has no percentiles")
