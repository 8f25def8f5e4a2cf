"""Delay tables: what was measured is what the table has, and what the command says of it."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import struct
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import netem
from steelyard.wrappers.netem import delay_table, round_trips

CAPTURE = Path(__file__).parents[2] / "data/captures/veth.pcapng"
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


def echo(kind: int, number: int, source: int) -> bytes:
    """An Ethernet frame with an ICMP echo request (8) or its answer (0), checksums right."""
    message = struct.pack("!BBHHH", kind, 0, 0, 7, number)
    total = sum(struct.unpack("!4H", message))
    message = message[:2] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + message[4:]
    ends = bytes([10, 0, 0, source]) + bytes([10, 0, 0, 3 - source])
    head = struct.pack("!BBHHHBBH", 0x45, 0, 28, 0, 0, 64, 1, 0) + ends
    total = sum(struct.unpack("!10H", head))
    head = head[:10] + struct.pack("!H", ~(total % 0xFFFF) & 0xFFFF) + head[12:]
    return bytes(12) + b"\x08\x00" + head + message


def write_echoes(path: Path, delays_us: list[int]) -> None:
    """A pcap file of echoes a second apart, answered after these times."""
    packets = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, delay_us in enumerate(delays_us):
        for kind, at_us, source in ((8, 0, 1), (0, delay_us, 2)):
            frame = echo(kind, number, source)
            packets += struct.pack("<IIII", 1000 + number, at_us, len(frame), len(frame)) + frame
    path.write_bytes(packets)


def learn(*words: str) -> int:
    parser = argparse.ArgumentParser()
    netem.add_arguments(parser)
    return netem.main(parser.parse_args(["learn", *words]))


@needs_tshark
def test_echoes_of_a_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    delays_us = [20000 + 100 * at for at in range(101)]
    write_echoes(tmp_path / "wan.pcap", delays_us)
    assert learn("wan.pcap", "--name", "wan", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["netem"] == "delay=25000us~2930us/table:wan"
    assert (said["round_trips"], said["cut"]) == (101, 0)
    assert said["of"] == "ICMP echoes, wan.pcap"
    (median,) = (found for found in said["quantiles"] if found["share"] == 0.5)
    assert median["measured_s"] == pytest.approx(0.025)
    assert median["table_s"] == pytest.approx(0.025, rel=1e-3)
    lines = (tmp_path / "wan.dist").read_text().splitlines()
    assert lines[:2] == ["# steelyard netem learn wan.pcap", "# ICMP echoes, wan.pcap"]
    assert len([word for line in lines[2:] for word in line.split()]) == 4096
    with pytest.raises(UsageError, match=r"no round-trip time with 10\.9\.9\.9: it holds no TCP"):
        learn("wan.pcap", "--peer", "10.9.9.9")


@needs_tshark
def test_connections_of_a_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert learn(str(CAPTURE), "--name", "veth") == 0
    said = capsys.readouterr().out
    assert "49 round-trip times (TCP, veth.pcapng)" in said
    assert "install -D -m 644 veth.dist /etc/steelyard/netem/veth.dist" in said
    assert "Then ask for: --netem=delay=" in said and "/table:veth" in said


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


@needs_tshark
def test_a_capture_of_nothing_is_told(tmp_path: Path) -> None:
    write_echoes(tmp_path / "none.pcap", [])
    with pytest.raises(UsageError, match="it holds no TCP packet, no answered ICMP echo"):
        learn(str(tmp_path / "none.pcap"))
