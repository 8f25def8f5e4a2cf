"""Delay tables: what was measured is what the table has, and what the command says of it."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from tests.unit.netem.test_learn import learn

from steelyard.wrappers.base.errors import UsageError

CAPTURE = Path(__file__).parents[2] / "data/captures/veth.pcapng"
needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="no tshark")


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


@needs_tshark
def test_a_capture_of_nothing_is_told(tmp_path: Path) -> None:
    write_echoes(tmp_path / "none.pcap", [])
    with pytest.raises(UsageError, match="it holds no TCP packet, no answered ICMP echo"):
        learn(str(tmp_path / "none.pcap"))
