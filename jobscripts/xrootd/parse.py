"""Reads the results of the clients of the benchmark xrootd, one set of figures per iteration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.jobscripts.hep import client_output, minimum_copy_size
from steelyard.jobscripts.registry import Result

COUNTED = ("read_requests", "vector_read_requests", "vector_read_segments")
SERVER = {
    "server_read_requests": (("reads", "page_reads"), "requests"),
    "server_vector_read_requests": (("vector_reads",), "requests"),
    "server_bytes": (("bytes_sent",), "bytes"),
}


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return times and counts of each iteration, and the server's counts of the complete run."""
    start, iterations, server = client_output.read(folder, client, "xrootd", parameters)
    rtt_s, results = start["rtt_s"], []
    if rtt_s is not None:
        results.append(Result("rtt_s", rtt_s, "s", 1))
    for number, line in enumerate(iterations, start=1):
        answers = line["clients"]
        for i, answer in enumerate(answers):
            client_output.verify(answer["found"], start["expected"], f"client {i}")
        results += client_output.common(f"out.{client}", number, line)
        in_turn = parameters["order"] == "sequential"
        results += client_output.of_clients(number, line, in_turn)
        if "wait_s" in answers[0]:
            results += analysis(number, answers)
        elif rtt_s is not None and "bytes_read" in answers[0]:
            results.append(Result("bytes_needed", bytes_needed(answers, rtt_s), "bytes", number))
    return results + server_results(server["counts"]) + others(server["others"])


def others(found: list[dict[str, float]]) -> list[Result]:
    """Return rate and requests of the background traffic over the complete run."""
    if not found:
        return []
    rate = sum(one["bytes"] / one["seconds"] for one in found)
    requests = float(sum(one["requests"] for one in found))
    return [
        Result("background_bytes_per_s", rate, "bytes_per_s", 1),
        Result("background_requests", requests, "requests", 1),
    ]


def analysis(number: int, answers: list[dict[str, Any]]) -> list[Result]:
    """Return the counts and the share of waiting time of clients that read through our reader."""
    total_s = sum(answer["end_s"] - answer["begin_s"] for answer in answers)
    share = sum(answer["wait_s"] for answer in answers) / total_s
    counts = [
        Result(name, float(sum(answer[name] for answer in answers)), unit_of(name), number)
        for name in COUNTED
    ]
    return [*counts, Result("wait_share", share, "1", number)]


def bytes_needed(answers: list[dict[str, Any]], rtt_s: float) -> float:
    """Return the bytes that are needed of all copies together, comparable with bytes_read."""
    return sum(
        minimum_copy_size.bytes_needed(one["bytes_read"], one["end_s"] - one["begin_s"], rtt_s)
        for one in answers
    )


def unit_of(name: str) -> str:
    """Return the unit of a count."""
    return "segments" if name.endswith("segments") else "requests"


def server_results(counts: Mapping[str, int] | None) -> list[Result]:
    """Return sums of the server's counts; [] if they are unknown."""
    if counts is None:
        return []
    return [
        Result(name, float(sum(counts[key] for key in keys)), unit, 1)
        for name, (keys, unit) in SERVER.items()
    ]
