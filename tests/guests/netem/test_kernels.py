"""All conditions of netem on real kernels: this machine's package (Linux 6.1), and Debian's newest.

The newest takes a seed and counts random events (struct tc_netem_xstats).
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from steelyard.wrappers.netem import sites

from .guest import OWN, Case, Kernel, boot, newer

PEER = "10.99.0.1"  # tests/guests/layouts/guest_init.sh
TO = f"to={PEER}"
CASES = [
    ("chances", f"loss=5%,duplicate=10%,corrupt=10%,{TO}", f"ping -q -f -c800 -W1 {PEER}"),
    ("reorder", f"delay=2ms,reorder=20%,{TO}", f"ping -q -c300 -i0.002 {PEER}"),
    ("state", f"loss=state:10%:40%:20%:50%:1%,{TO}", f"ping -q -f -c1500 -W1 {PEER}"),
    # Type of service 2: the sender supports ECN.
    ("marked", f"loss=100%,ecn=yes,{TO}", f"ping -q -Q2 -c40 -i0.01 -W1 {PEER}"),
    ("lost", f"loss=100%,ecn=yes,{TO}", f"ping -q -c20 -i0.01 -W1 {PEER}"),
    ("overhead", f"rate=1mbit:1000,{TO}", f"ping -q -c20 -i0.05 -s1400 {PEER}"),
    ("cells", f"rate=1mbit:0:100:100,{TO}", f"ping -q -c20 -i0.05 -s1400 {PEER}"),
    ("slot", f"slot=20ms,{TO}", f"ping -q -c20 -i0.1 {PEER}"),
    ("slots", f"slot=10ms:30ms:2:3000,{TO}", f"ping -q -c20 -i0.1 {PEER}"),
    ("spread", f"slot=20ms~4ms/normal,{TO}", f"ping -q -c100 -i0.1 {PEER}"),
    *((name, f"loss=30%,seed={seed},to=10.99.0.0/24", f"ping -n -c100 -i0.002 -W1 {PEER}")
      for name, seed in (("seed", 7), ("again", 7), ("other", 8))),
]  # fmt: skip
Cases = Mapping[str, Case]
ANSWERS = 500


LINK = "time_s,delay_ms,loss_percent\n0,10,0\n4,40,0\n8,20,0\n"
SHORT = "time_s,delay_ms\n0,10\n1,40\n2,20\n"
LATE = "time_s,delay_ms\n0,10\n5,40\n"  # a busy guest kills before the second step is due


# The way there takes 30 ms, the way back 15.
SITES = f"""
[site.here]
addresses = ["10.99.0.2"]
[site.there]
addresses = ["{PEER}"]
[[link]]
from = "here"
to = "there"
netem = "delay=30ms"
[[link]]
from = "there"
to = "here"
netem = "delay=15ms"
"""
OTHER_NODE = "ip netns exec peer $node netem {} --run-dir=/run/peer --node=peer --job-id=site-1"


def pair(folder: Path) -> tuple[str, str, str]:
    """Both nodes of a pair shape what they send, by one file."""
    (folder / "sites.toml").write_text(SITES)
    found = sites.read_sites(folder / "sites.toml")
    ((_, own),) = sites.list_conditions(found, "here")
    ((_, other),) = sites.list_conditions(found, "there")
    apply = f"{OTHER_NODE.format('apply')} --uid=0 --no-policy -- {other} >/dev/null"
    ping = f"ping -q -c20 -i0.05 {PEER}"
    return "pair", own, f"{apply} && {ping}; {OTHER_NODE.format('finish')}"


MEAN_US, JITTER_US = 101_600, 59_000  # of the two ways, about


def delay_us(share: float) -> float:
    """A quantile of the delay table: 30 % are 10 to 14 ms and 70 % are 130 to 150 ms."""
    if share < 0.3:
        return 10_000 + 4_000 * share / 0.3
    return 130_000 + 20_000 * (share - 0.3) / 0.7


def two_ways() -> str:
    """tc's format: quantiles at 4096 equal steps, in 8192ths of the jitter from the delay."""
    quantiles = [delay_us((at + 0.5) / 4096) for at in range(4096)]
    return "\n".join(f"{round((us - MEAN_US) / JITTER_US * 8192)}" for us in quantiles) + "\n"


def run(kernel: Kernel, folder: Path) -> Cases:
    (folder / "wan.dist").write_text(two_ways())
    asked = f"delay={MEAN_US}us~{JITTER_US}us/table"
    ping = f"ping -c{ANSWERS} -i0.004 -W1 {PEER}"
    (folder / "link.csv").write_text(LINK)
    (folder / "short.csv").write_text(SHORT)
    (folder / "late.csv").write_text(LATE)
    (folder / "slower.csv").write_text("time_s,rate_mbit\n0,10\n1,1\n")
    traces = [
        ("trace", f"trace=link,{TO}", f"ping -D -c120 -i0.1 {PEER}"),
        ("repeat", f"trace=short:repeat,{TO}", "sleep 5"),
        ("slower", f"trace=slower,{TO}", f"sleep 2.5; ping -q -c10 -i0.05 -s1400 {PEER}"),
        # In the guest there is one process of that name.
        ("killed", f"trace=late,{TO}", "pkill -9 steelyard-node; sleep 8"),
    ]
    cases = [("table", f"{asked}:wan,{TO}", ping), ("nosuch", f"{asked}:nosuch,{TO}", "true")]
    return boot(kernel, folder, [*CASES, *cases, *traces, pair(folder)])


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return run(OWN, tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    return run(newer("sid"), tmp_path_factory.mktemp("newest"))


@pytest.fixture(params=["own", "newest"])
def cases(request: pytest.FixtureRequest) -> Cases:
    found: Cases = request.getfixturevalue(request.param)
    return found


def answers(case: Case) -> int:
    found = re.search(r"(\d+) received", case.text("out"))
    assert found, case.text("out")
    return int(found[1])


def test_a_newer_kernel_counts_what_chance_did(newest: Cases) -> None:
    done = newest["chances"].done
    counters = done["counters"]
    for key, count in (("duplicate", "duplicated_packets"), ("corrupt", "corrupted_packets")):
        found = done[key]
        assert found["low"] < 0.1 < found["high"]
        assert found["achieved"] == pytest.approx(counters[count] / found["packets"])
    assert done["loss"]["low"] < 0.05 < done["loss"]["high"]
    # Every received packet is an original or a copy.
    came = counters["sent_packets"] + counters["dropped_packets"]
    copies = counters["duplicated_packets"] - (
        counters["lost_packets"] - counters["dropped_packets"]
    )
    assert came == 800 + copies


def test_an_older_kernel_does_not_and_the_document_says_so(own: Cases) -> None:
    done = own["chances"].done
    assert done["duplicate"] is None and done["corrupt"] is None
    assert "does not count packets that are sent twice" in done["missing"]["duplicate"]
    assert "does not count packets that are spoilt" in done["missing"]["corrupt"]
    assert done["loss"]["low"] < 0.05 < done["loss"]["high"]


def test_packets_sent_ahead_are_judged_everywhere(cases: Cases) -> None:
    done = cases["reorder"].done
    assert done["reorder"]["packets"] == done["counters"]["sent_packets"] == 300
    assert done["reorder"]["low"] < 0.2 < done["reorder"]["high"]


def test_four_states_lose_what_their_chain_says(cases: Cases) -> None:
    done = cases["state"].done
    # By the flows between the states: 1 + 0.01 + 0.25 + 0.1, of which 0.26 are lost.
    lost = done["counters"]["dropped_packets"]
    assert 1500 * 0.26 / 1.36 * 0.6 < lost < 1500 * 0.26 / 1.36 * 1.4
    assert answers(cases["state"]) == 1500 - lost


def test_who_knows_ecn_is_marked_and_others_are_lost(cases: Cases) -> None:
    assert answers(cases["marked"]) == 40
    assert answers(cases["lost"]) == 0
    assert cases["marked"].done["counters"]["sent_packets"] == 40


def test_marks_are_told_where_the_kernel_tells_them(newest: Cases, own: Cases) -> None:
    assert newest["marked"].done["counters"]["marked_packets"] == 40
    assert newest["marked"].done["loss"]["achieved"] == 1
    assert own["marked"].done["loss"] is None
    assert "as dropped and as sent" in own["marked"].done["missing"]["loss"]


def test_overhead_takes_its_time(cases: Cases) -> None:
    """1442 bytes on the wire: 2442 with 1000 more; 15 cells of 100 that take 200 each; at 1 mbit."""
    for name, asked_ms in (("overhead", 2442 * 8e-3), ("cells", 15 * 200 * 8e-3)):
        assert cases[name].done["requested"]
        assert asked_ms <= cases[name].rtt_ms("min") < asked_ms + 3


def test_packets_leave_in_slots(cases: Cases) -> None:
    assert cases["slot"].done["valid"] and cases["slots"].done["valid"]
    assert 20 <= cases["slot"].rtt_ms("min") < 23
    assert 10 <= cases["slots"].rtt_ms("min") < 26
    assert cases["slots"].rtt_ms("max") > 20


def test_times_between_slots_have_their_distribution(cases: Cases) -> None:
    """Each echo comes into an empty queue, and waits for one slot: 3.29 standard deviations."""
    case = cases["spread"]
    assert case.done["valid"] is True
    assert "slot distribution" in case.done["devices"][0]["kernel"]
    low, high = 20 - 3.29 * 4 / 100**0.5, 20 + 3.29 * 4 / 100**0.5
    assert low < case.rtt_ms("avg") < high + 3  # of a busy machine
    assert case.rtt_ms("min") < 16 and case.rtt_ms("max") > 24
    assert case.done["spec"]["slot"]["distribution"] == "normal"


def test_a_seed_repeats_what_chance_does(newest: Cases) -> None:
    came = {name: re.findall(r"icmp_seq=\d+", newest[name].text("out"))
            for name in ("seed", "again", "other")}  # fmt: skip
    assert 50 < len(came["seed"]) < 90
    assert came["seed"] == came["again"] != came["other"]
    assert newest["seed"].done["spec"]["seed"] == 7


def test_a_kernel_that_takes_no_seed_is_told_by_one_line(own: Cases) -> None:
    assert own["seed"].text("err") == (
        "steelyard-node netem apply: seed: this kernel's sch_netem takes none: it came with "
        "Linux 6.6; leave seed= out\n"
    )
    assert own["seed"].text("before") == own["seed"].text("after")


def test_round_trips_have_the_quantiles_of_the_table(cases: Cases) -> None:
    done = cases["table"].done
    assert done["delay_table"]["name"] == "wan" and done["delay_table"]["values"] == 4096
    found = sorted(float(ms) for ms in re.findall(r"time=([\d.]+)", cases["table"].text("out")))
    assert len(found) == ANSWERS
    # 3.29 standard deviations of a share of 500; between the two ways nothing is.
    assert abs(sum(ms < 100 for ms in found) / ANSWERS - 0.3) < 3.29 * (0.3 * 0.7 / ANSWERS) ** 0.5
    for share in (0.1, 0.5, 0.75, 0.9):  # the two ways lie far apart, whatever holds packets up
        half = 3.29 * (share * (1 - share) / ANSWERS) ** 0.5
        low, high = delay_us(share - half) / 1e3, delay_us(share + half) / 1e3
        assert low <= found[int(share * ANSWERS)] <= high + 15  # of a busy machine


def test_a_table_that_is_not_there_is_told_by_one_line(own: Cases) -> None:
    assert own["nosuch"].text("err") == (
        "steelyard-node netem apply: delay table /etc/steelyard/netem/nosuch.dist: cannot be opened; "
        "on each node root puts it there; its format is in docs/netem.md: No such file or directory\n"
    )


def test_a_link_varies_as_its_trace_says(cases: Cases) -> None:
    trace = cases["trace"].done["trace"]
    delays_ms = [10, 40, 20]
    assert [step["applied"] for step in trace["step_log"]] == [
        f"delay={delay}ms,loss=0%,{TO}" for delay in delays_ms
    ]
    assert (trace["lines"], trace["steps"], trace["failed"]) == (3, 3, None)
    assert trace["sha256"] == hashlib.sha256(LINK.encode()).hexdigest()
    assert trace["length_s"] == 8
    assert trace["held_s"] > 3, "the job is longer than its trace"
    (note,) = (one for one in cases["trace"].done["notes"] if one.startswith("trace link"))
    assert re.fullmatch(r"trace link was over after 8.0 s: what its last line says held .*", note)
    begins = [step["unix_s"] for step in trace["step_log"]]
    due = [step["unix_s"] - step["late_s"] for step in trace["step_log"]]
    assert [at - due[0] for at in due] == pytest.approx([0, 4, 8], abs=0.2)
    seen: dict[int, list[float]] = {0: [], 1: [], 2: []}
    for at, ms in re.findall(r"\[([\d.]+)\].*time=([\d.]+)", cases["trace"].text("out")):
        for number, begin in enumerate(begins):
            # ping prints when the answer arrived.
            if begin < float(at) - float(ms) / 1e3 < [*begins[1:], math.inf][number] - 0.05:
                seen[number].append(float(ms))
    for number, delay_ms in enumerate(delays_ms):
        assert len(seen[number]) >= 5
        assert delay_ms <= min(seen[number]) < delay_ms + 5


def test_a_trace_begins_again(own: Cases) -> None:
    trace = own["repeat"].done["trace"]
    assert trace["repeats"] is True
    assert trace["held_s"] is None
    assert trace["step_log"][-1]["number"] > 2
    for step in trace["step_log"]:  # a busy guest may pass over one
        assert step["applied"] == f"delay={(10, 40)[step['number'] % 2]}ms,{TO}"


def test_a_rate_of_a_trace_holds(own: Cases) -> None:
    assert own["slower"].done["trace"]["now"] == f"rate=1mbit,{TO}"
    # 1442 bytes at 1 mbit.
    assert 11.5 <= own["slower"].rtt_ms("min") < 15


def test_a_trace_that_nobody_follows_any_more_makes_the_run_invalid(own: Cases) -> None:
    case = own["killed"]
    done = json.loads(case.text("done"))
    assert done["valid"] is False
    assert re.match(r"trace: a step was due \d+\.\d s before the end", done["invalid_reason"])
    assert done["undone"] is True
    assert case.text("before") == case.text("after")


def test_a_round_trip_between_sites_is_the_sum_of_both_ways(cases: Cases) -> None:
    assert cases["pair"].done["requested"] == f"delay=30ms,{TO}"
    assert 45 <= cases["pair"].rtt_ms("min") < 50
