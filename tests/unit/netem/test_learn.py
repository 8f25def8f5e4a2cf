"""Delay tables: what was measured is what the table has, and what the command says of it."""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import netem
from steelyard.wrappers.netem import delay_table, round_trips

# iproute2's own, made by its maketable.
TC_NORMAL = [
    *Path("/usr/lib").glob("*/tc/normal.dist"),
    *Path("/usr/lib/tc").glob("normal.dist"),
    *Path("/usr/share/tc").glob("normal.dist"),
]
needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark")


def drawn(table: delay_table.DelayTable) -> list[float]:
    """Every delay in seconds that the kernel may draw: sch_netem.c, tabledist()."""
    return [(table.delay_us + table.jitter_us * v / 8192) / 1e6 for v in table.values]


def bimodal() -> list[float]:
    source = random.Random(5)
    return [
        source.uniform(0.010, 0.014) if source.random() < 0.3 else source.gauss(0.040, 0.002)
        for _ in range(5000)
    ]


def test_moments_and_quantiles_come_back() -> None:
    samples = bimodal()
    table = delay_table.learn(samples)
    delays = drawn(table)
    assert table.cut == 0
    assert statistics.fmean(delays) == pytest.approx(statistics.fmean(samples), rel=1e-3)
    assert statistics.pstdev(delays) == pytest.approx(statistics.pstdev(samples), rel=1e-3)
    cuts = statistics.quantiles(samples, n=20, method="inclusive")
    for at, wanted in enumerate(cuts, start=1):
        assert table.delay_s(at / 20) == pytest.approx(wanted, rel=5e-3)
        assert sorted(delays)[at * len(delays) // 20] == pytest.approx(wanted, rel=5e-3)


def test_a_normal_distribution_is_tcs_own_table() -> None:
    if not TC_NORMAL:
        pytest.skip("no normal.dist of tc's: apt install iproute2")
    theirs = [int(word) for line in TC_NORMAL[0].read_text().splitlines()
              if not line.startswith("#") for word in line.split()]  # fmt: skip
    normal = statistics.NormalDist(0.050, 0.005)
    ours = delay_table.learn([normal.inv_cdf((at + 0.5) / 20000) for at in range(20000)])
    assert (ours.delay_us, ours.jitter_us) == (50000, 5000)
    assert len(ours.values) == len(theirs) == 4096
    middle = range(40, 4056)  # maketable fills up the last percent on either side by lines
    assert max(abs(ours.values[at] - sorted(theirs)[at]) for at in middle) < 0.01 * 8192


def test_what_lies_too_far_is_cut_and_told() -> None:
    table = delay_table.learn([0.010 + at * 1e-6 for at in range(980)] + [5.0] * 20)
    assert table.cut == pytest.approx(0.02)
    assert max(table.values) == 32767
    assert table.jitter_us == table.delay_us, "a jitter is at most the delay"
    assert table.delay_s(0.5) == pytest.approx(0.0105, rel=1e-2)


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ([0.01, 0.02] * 9, "18 round-trip times: expected at least 20"),
        ([0.01] * 30, "all round-trip times are alike: ask for --netem=delay=10000us"),
    ],
)
def test_what_is_no_distribution_is_refused(samples: list[float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        delay_table.learn(samples)


def learn(*words: str) -> int:
    parser = argparse.ArgumentParser()
    netem.add_arguments(parser)
    return netem.main(parser.parse_args(["learn", *words]))


def test_samples_of_a_job(tmp_path: Path) -> None:
    path = tmp_path / "n1.csv"
    path.write_text("unix_s,rtt_s\n1,0.05\n2,\n3,0.06\n")
    assert round_trips.of_samples(path).seconds == [0.05, 0.06]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nosuch.pcap"], "nosuch.pcap: expected a capture of packets, found no file"),
        (["folder/what"], "folder/what: expected FILE.pcap, FILE.pcapng, FILE.cap or a job's id"),
        (["x.pcap", "--name", "../x"], "--name ../x: expected at most 31 letters"),
    ],
)
@needs_tshark
def test_what_cannot_be_learnt_from_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said.replace(".", r"\.")):
        learn(*words)
