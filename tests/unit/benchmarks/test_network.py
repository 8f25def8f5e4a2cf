"""iperf3, nuttcp and mpi: recorded reports, damaged ones, and runs of all three on this machine."""

from __future__ import annotations

import functools
import json
import re
import shutil
from pathlib import Path

import pytest

from steelyard.jobscripts import registry
from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.mpiprofile import profile_results
from steelyard.jobscripts.registry import Result

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"

load = functools.cache(registry.load)  # a parser reads thousands of outputs here
Given = dict[str, object]
GOOD: list[tuple[str, str, Given]] = [
    ("iperf3", "tcp", {"seconds": 1}),
    ("iperf3", "tcp-streams", {"seconds": 1, "streams": 4, "mode": "parallel"}),
    ("iperf3", "tcp-reverse", {"seconds": 1, "direction": "reverse"}),
    ("iperf3", "tcp-both", {"seconds": 1, "direction": "both"}),
    ("iperf3", "udp", {"seconds": 1, "protocol": "udp"}),
    ("iperf3", "udp-max", {"seconds": 1, "protocol": "udp"}),
    (
        "iperf3",
        "udp-both",
        {"seconds": 1, "protocol": "udp", "direction": "both", "streams": 2},
    ),
    ("iperf3", "3.7-tcp", {"seconds": 1}),
    ("iperf3", "3.21-tcp", {"seconds": 1}),
    ("iperf3", "3.21-udp", {"seconds": 1, "protocol": "udp"}),
    ("nuttcp", "tcp", {"seconds": 2}),
    ("nuttcp", "tcp-reverse", {"seconds": 2, "direction": "reverse"}),
    ("nuttcp", "tcp-4", {"seconds": 2, "streams": 4}),
    ("nuttcp", "udp", {"seconds": 2, "protocol": "udp"}),
    ("mpi", "all", {"largest": "1KiB", "repetitions": 2}),
]
IDS = [f"{name}-{file}" for name, file, _ in GOOD]


def parse(folder: Path, name: str, text: str, given: Given) -> list[Result]:
    (folder / "out.0").write_text(text, encoding="utf-8")
    return load(name).parse(folder, 0, given)


def read(name: str, file: str) -> str:
    return (DATA / name / f"{file}.json").read_text(encoding="utf-8")


def figures(found: list[Result]) -> dict[str, float]:
    return {result.metric: result.value for result in found}


# --- good reports ---


def test_iperf3_gives_what_arrived_and_the_windows(tmp_path: Path) -> None:
    found = figures(parse(tmp_path, "iperf3", read("iperf3", "tcp"), {"seconds": 1}))
    assert found == {
        "received_bits_per_s": 15185413904.93615,
        "total_received_bits_per_s": 15185413904.93615,
        "sent_bits_per_s": 15172227142.005753,
        "retransmits": 0,
        "cpu_client": pytest.approx(0.436722, abs=1e-6),
        "cpu_server": pytest.approx(0.459688, abs=1e-6),
        "cwnd_mean_bytes": 1911360,
        "cwnd_max_bytes": 1911360,
        "rtt_s": pytest.approx(199e-6),
    }


def test_iperf3_udp_gives_loss_and_jitter_of_the_receiver(tmp_path: Path) -> None:
    given: Given = {"seconds": 1, "protocol": "udp"}
    found = figures(parse(tmp_path, "iperf3", read("iperf3", "udp-max"), given))
    assert found["lost_share"] == 97124 / 169710
    assert found["jitter_s"] == pytest.approx(2.942869637e-6)
    assert found["received_bits_per_s"] < found["sent_bits_per_s"] / 2


def test_both_directions_are_told_apart(tmp_path: Path) -> None:
    given: Given = {"seconds": 1, "direction": "both", "mode": "parallel"}
    found = figures(parse(tmp_path, "iperf3", read("iperf3", "tcp-both"), given))
    both = found["received_bits_per_s"] + found["reverse_received_bits_per_s"]
    assert found["total_received_bits_per_s"] == pytest.approx(both)


def test_each_client_is_an_iteration_and_their_sum_is_told(
    tmp_path: Path,
) -> None:
    pairs = json.loads(read("nuttcp", "tcp"))["pairs"]
    text = json.dumps({"pairs": pairs * 2})
    found = parse(tmp_path, "nuttcp", text, {"seconds": 2, "mode": "parallel"})
    rates = [result for result in found if result.metric == "received_bits_per_s"]
    assert [(r.value, r.iteration) for r in rates] == [(8094213200.0, 1), (8094213200.0, 2)]
    assert figures(found)["total_received_bits_per_s"] == 2 * 8094213200.0


def test_mpi_takes_latency_from_the_smallest_and_bandwidth_from_the_largest(
    tmp_path: Path,
) -> None:
    text = read("mpi", "all")
    rows = {(row["test"], row["bytes"]): row["seconds"] for row in json.loads(text)["tests"]}
    found = parse(tmp_path, "mpi", text, {"largest": "1KiB", "repetitions": 2})
    values = {(r.metric, r.iteration): r.value for r in found}
    assert values["latency_s", 2] == rows["latency", 8][1]
    assert values["bandwidth_bytes_per_s", 1] == 1024 / rows["bandwidth", 1024][0]
    assert values["bi_bandwidth_bytes_per_s", 1] == 2048 / rows["bi_bandwidth", 1024][0]
    assert values["barrier_s", 1] == rows["barrier", 0][0]
    assert len(values) == 2 * 7


# --- damaged ones, failures, and others than requested ---


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_no_prefix_of_a_report_gives_a_number(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    text = read(name, file).rstrip("\n")
    assert parse(tmp_path, name, text, given)
    for length in range(0, len(text), max(1, len(text) // 200)):
        with pytest.raises((OutputError, FailedError)):
            parse(tmp_path, name, text[:length], given)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "file", "given"), GOOD, ids=IDS)
def test_a_number_that_is_no_number_is_refused_or_was_not_needed(
    tmp_path: Path, name: str, file: str, given: Given
) -> None:
    text = read(name, file)
    right = parse(tmp_path, name, text, given)
    places = [match.span(1) for match in re.finditer(r"[:=]\s*([0-9][0-9.e+-]*)", text)]
    refused = 0
    for start, end in places[:: max(1, len(places) // 100)] + places[-40:]:
        for wrong in ("null", "-1", "NaN", '"x"'):
            try:
                assert parse(tmp_path, name, text[:start] + wrong + text[end:], given) == right
            except (OutputError, FailedError):
                refused += 1
    assert refused


WRONG: list[tuple[str, str, Given, type[Exception], str]] = [
    ("iperf3", "refused", {"seconds": 2}, FailedError, "unable to connect to server"),
    ("iperf3", "server-killed", {"seconds": 5}, FailedError, "unable to write to stream socket"),
    ("iperf3", "interrupted", {"seconds": 8}, FailedError, "the client has terminated"),
    ("iperf3", "tcp", {"seconds": 2}, OutputError, "duration is 1 instead of 2"),
    ("iperf3", "tcp", {"seconds": 1, "streams": 2}, OutputError, "num_streams is 1 instead of 2"),
    ("iperf3", "tcp", {"seconds": 1, "protocol": "udp"}, OutputError, "protocol is TCP instead"),
    ("iperf3", "tcp-reverse", {"seconds": 1}, OutputError, "reverse is 1 instead of 0"),
    ("iperf3", "3.7-udp", {"seconds": 1, "protocol": "udp"}, OutputError, "3.9 or newer"),
    ("iperf3", "3.7-tcp-both", {"seconds": 1, "direction": "both"}, OutputError, "3.9 or newer"),
    ("nuttcp", "tcp-killed", {"seconds": 5}, FailedError, "nothing was transferred"),
    ("nuttcp", "tcp", {"seconds": 3}, OutputError, "2.0 s instead of 3 s"),
    ("nuttcp", "udp", {"seconds": 2}, OutputError, "not a report of tcp"),
    ("mpi", "all", {"repetitions": 2}, OutputError, "with 1048576 bytes was not measured"),
    ("mpi", "all", {"largest": "1KiB"}, OutputError, "was not measured as often as asked"),
    ("mpi", "all", {"ranks": 4}, OutputError, "2 ranks instead of 4"),
]


@pytest.mark.parametrize(("name", "file", "given", "error", "words"), WRONG)
def test_a_failure_or_another_test_is_said(
    tmp_path: Path, name: str, file: str, given: Given, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        parse(tmp_path, name, read(name, file), given)


def test_a_client_that_said_why_it_failed_is_quoted(tmp_path: Path) -> None:
    row = json.loads(read("nuttcp", "tcp"))["pairs"][0]
    row |= {"exit_code": 1, "report": "", "errors": "nuttcp-t: Error: connect: refused\n"}
    with pytest.raises(FailedError, match="nuttcp a > b: exit code 1: nuttcp-t: Error: connect"):
        parse(tmp_path, "nuttcp", json.dumps({"pairs": [row]}), {})


# --- real runs on this machine ---


def test_a_profiles_seconds_are_the_mean_of_the_ranks(tmp_path: Path) -> None:
    """Table 1 of Ruiz et al. 2015 has them in ms: about 1,040 of MPI_Init with 16 processes."""
    sums = {"init_s": 16 * 1.04, "communication_s": 16 * 0.26, "computation_s": 16 * 2.7}
    total = {**sums, "total_s": 16 * 4.0, "calls_without_size": 1}
    document = {"format": "steelyard-mpiprof", "version": 2, "ranks": [{}] * 16, "total": total}
    (tmp_path / "mpiprof.0.json").write_text(json.dumps(document))
    found = {one.metric: one.value for one in profile_results(tmp_path, 0, {"profile": True})}
    assert found == pytest.approx(
        {
            "compute_share": 0.675,
            "compute_s": 2.7,
            "communication_share": 0.065,
            "communication_s": 0.26,
            "init_share": 0.26,
            "init_s": 1.04,
        }
    )


def test_a_profile_without_ranks_is_refused(tmp_path: Path) -> None:
    document = {"format": "steelyard-mpiprof", "version": 2, "ranks": [], "total": {"total_s": 1.0}}
    (tmp_path / "mpiprof.0.json").write_text(json.dumps(document))
    with pytest.raises(OutputError, match=r"mpiprof.0.json: no profile: it lists no 'ranks'"):
        profile_results(tmp_path, 0, {"profile": True})


def test_a_run_without_its_profile_is_refused(tmp_path: Path) -> None:
    shutil.copy(DATA / "mpi" / "all.json", tmp_path / "out.0")
    given: Given = {"largest": "1KiB", "repetitions": 2, "profile": True}
    with pytest.raises(OutputError, match=r"mpiprof.0.json: missing: the program did not reach"):
        registry.load("mpi").parse(tmp_path, 0, given)
