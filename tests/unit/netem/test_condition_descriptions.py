"""Network conditions in words, and the trials of the kernel."""

from __future__ import annotations

import pytest

from steelyard.wrappers.netem import condition_descriptions, kernel_support

SPECS: dict[str, tuple[dict[str, object], list[str]]] = {
    "nothing": ({}, ["nothing is touched"]),
    "a delay": ({"delay_s": 0.05}, ["every packet waits 50 ms"]),
    "no delay, as a baseline": ({"delay_s": 0.0}, ["every packet waits 0 ms"]),
    "jitter": (
        {"delay_s": 0.05, "jitter_s": 0.005, "distribution": "normal"},
        ["every packet waits 50 ms ± 5 ms (normal distribution)"],
    ),
    "all that can happen": (
        {"loss": 0.001, "duplicate": 0.01, "corrupt": 0.0001, "reorder": 0.25},
        [
            "0.1 % of the packets are lost",
            "1 % of the packets are sent twice",
            "0.01 % of the packets have one bit flipped",
            "25 % of the packets do not wait and so overtake others",
        ],
    ),
    "bursts": (
        {"gemodel": {"p": 0.01, "r": 0.1, "one_minus_h": 1.0, "one_minus_k": 0.0}},
        ["packets are lost in bursts (Gilbert-Elliott: p 1 %, r 10 %, 1-h 100 %, 1-k 0 %)"],
    ),
    "four states and marks": (
        {"loss_state": {"p13": 0.01, "p31": 0.1, "p32": 0.0, "p23": 1.0, "p14": 0.0}, "ecn": True},
        [
            "packets are lost by a chain of four states (p13 1 %, p31 10 %, p32 0 %, p23 100 %, p14 0 %)",
            "packets of connections that know ECN are marked instead of lost",
        ],
    ),
    "another link": (
        {
            "rate_bit_per_s": 1e6,
            "rate_overhead": {"packet_bytes": -14, "cell_bytes": 48, "cell_overhead_bytes": 5},
            "slot": {"min_s": 0.01, "max_s": 0.02, "packets": 32, "bytes": 0},
            "seed": 42,
        },
        [
            "at most 1 Mbit/s",
            "of which a packet takes more than its own bytes (-14 bytes, in cells of 48 bytes and 5 more)",
            "packets leave in slots (every 10 ms to 20 ms, at most 32 packets each)",
            "chance begins from 42",
        ],
    ),
    "a rate and a queue": (
        {"rate_bit_per_s": 1.5e6, "limit_packets": 100, "rto_min_s": 0.002},
        [
            "at most 1.5 Mbit/s",
            "at most 100 packets wait at once, more are dropped",
            "TCP sends again after 2 ms at the earliest",
        ],
    ),
    "where": (
        {"to": ["10.0.0.0/8", "::1"], "port": [1094], "device": "eth0", "direction": "both"},
        [
            "only packets to or from 10.0.0.0/8 or ::1",
            "only TCP and UDP, port 1094 at either end",
            "on the device eth0",
            "outgoing and incoming packets (a round trip meets it twice)",
        ],
    ),
}


@pytest.mark.parametrize("case", SPECS)
def test_a_specification_is_said_in_words(case: str) -> None:
    spec, wanted = SPECS[case]
    assert condition_descriptions.describe_parts(spec) == wanted


DOCUMENT: dict[str, object] = {
    "requested": "delay=50ms",
    "applied": "delay=50ms",
    "devices": [{"device": "eth0", "direction": "egress", "qdisc": "netem"}],
    "protected": ["10.0.0.1/32"],
    "peer": "10.0.0.2",
    "rtt": {
        "before": {"received": 10, "mean_s": 0.0002},
        "during_start": {"received": 0, "mean_s": None},
        "during_end": None,
        "after": None,
    },
    "loss": {"achieved": 0.01, "low": 0.008, "high": 0.0125, "packets": 10000},
    "valid": True,
    "undone": True,
}


def test_what_was_held_is_asked_applied_and_measured() -> None:
    assert list(condition_descriptions.format_document(DOCUMENT)) == [
        "requested delay=50ms",
        "applied   delay=50ms, on eth0 egress (netem), sparing 10.0.0.1/32",
        "measured  round trip to 10.0.0.2: before 200 µs, at the start no answer",
        "measured  loss 1 % (0.8 to 1.25 %) of 10000 packets",
    ]


def test_why_no_round_trip_was_measured_is_said() -> None:
    missing = {"rtt.during_start": "10.0.0.2 did not answer"}
    lines = list(
        condition_descriptions.format_document(DOCUMENT | {"rtt": None, "missing": missing})
    )
    assert "measured  no round trip: 10.0.0.2 did not answer" in lines


def test_what_does_not_count_or_is_left_behind_is_said() -> None:
    lines = list(
        condition_descriptions.format_document(
            DOCUMENT
            | {"valid": False, "invalid_reason": "12 packets were dropped", "undone": False}
        )
    )
    assert lines[-2] == "NOT VALID 12 packets were dropped"
    noted = condition_descriptions.format_document(DOCUMENT | {"notes": ["the queue was full"]})
    assert "note      the queue was full" in list(noted)
    assert lines[-1].startswith("NOT UNDONE: ")
    assert not any(
        "NOT" in line
        for line in condition_descriptions.format_document(DOCUMENT | {"undone": None})
    )


def test_a_state_tells_whose_it_is() -> None:
    state = {"job_id": "4711", "node": "n1", "user_id": 1000, "stale": False}
    assert condition_descriptions.format_owner(state) == "job 4711 on n1, of user 1000"
    assert "STALE" in condition_descriptions.format_owner(state | {"stale": True})


@pytest.mark.parametrize(
    ("spec", "modules"),
    [
        ({}, []),
        ({"delay_s": 0.0}, ["sch_netem"]),
        ({"rate_bit_per_s": 1e6}, ["sch_tbf"]),
        ({"rate_bit_per_s": 1e6, "loss": 0.1, "direction": "both"}, ["sch_netem", "ifb"]),
        ({"rate_bit_per_s": 1e6, "direction": "ingress"}, ["sch_tbf", "ifb"]),
        ({"rate_bit_per_s": 1e6, "limit_packets": 9}, ["sch_tbf"]),
        ({"limit_packets": 9}, ["sch_netem"]),
        ({"rto_min_s": 0.002}, ["sch_netem"]),
        ({"rto_min_s": 0.002, "to": ["::1"]}, ["sch_netem"]),
    ],
)
def test_what_a_specification_needs_of_the_kernel(
    spec: dict[str, object], modules: list[str]
) -> None:
    assert list(kernel_support.list_required_modules(spec)) == modules


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_support, "find_program", lambda _: None)
    assert (
        kernel_support.try_module("sch_netem").message
        == "unshare is missing: apt install util-linux"
    )
