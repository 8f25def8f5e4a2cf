"""Captures: flows as tshark sees them, read once, and a reason where there are none."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.collect import captures_in as captures
from steelyard.analysis.sources import flows

query, run_id = HELP.query, HELP.run_id
DATA = Path(__file__).parents[2] / "data" / "captures"
COLUMNS = "flow, direction, packets, bytes, retransmissions"


@pytest.fixture
def study(tmp_path: Path) -> Any:
    """A study whose two-node job left a capture on its first node."""
    study = HELP.Study(tmp_path)
    both = study.row("11")
    study.attempt(run_id("twonodes"), both)
    path = study.record(both, both.nodes[0], capture={"file": "", "truncated": False})
    name = path.with_suffix(".pcapng").name
    text = path.read_text(encoding="utf-8").replace('"file": ""', f'"file": "{name}"')
    path.write_text(text, encoding="utf-8")
    shutil.copy(DATA / "veth.pcapng", path.with_suffix(".pcapng"))
    study.record(both, both.nodes[1], capture=None)
    study.capture = path.with_suffix(".pcapng")
    return study


def packets(name: str, wanted: str) -> int:
    """How many packets tshark shows under a filter: a witness of the counts."""
    argv = ["tshark", "-n", "-r", str(DATA / name), "-Y", wanted]
    return len(subprocess.run(argv, capture_output=True, check=False).stdout.splitlines())


@pytest.mark.slow
def test_flows_agree_with_tsharks_own_filters(study: Any) -> None:
    study.collect()
    rows = query(study, f"SELECT {COLUMNS} FROM flows ORDER BY flow, direction DESC")
    assert [row[:2] for row in rows] == [
        (0, "to_server"), (0, "to_client"), (1, "to_server"), (1, "to_client"),
    ]  # fmt: skip
    for flow, direction, number, _, again in rows:
        port = "tcp.dstport" if direction == "to_server" else "tcp.srcport"
        wanted = f"tcp.stream == {flow} && {port} == 1094"
        assert number == packets("veth.pcapng", wanted)
        assert again == packets("veth.pcapng", f"{wanted} && tcp.analysis.retransmission")
    assert sum(row[4] for row in rows) == 12


def test_bytes_are_what_was_sent_and_what_was_sent_again(study: Any) -> None:
    study.collect()
    rows = {row[:2]: row[3:] for row in query(study, f"SELECT {COLUMNS} FROM flows")}
    assert rows[1, "to_server"][0] == 8 * 501
    assert rows[1, "to_client"][0] == 8 * 20000
    assert rows[0, "to_client"][0] == 3 * 20000
    assert rows[0, "to_server"][0] >= 3 * 30001 - 1448  # one lost segment was never seen here


def test_times_and_windows(study: Any) -> None:
    study.collect()
    ((client, server, first, last, low, middle, high, small, large),) = query(
        study,
        "SELECT client, server, first_unix_s, last_unix_s, rtt_min_s, rtt_median_s, rtt_max_s, "
        "window_min_bytes, window_max_bytes FROM flows WHERE flow = 1 AND direction = 'to_client'",
    )
    assert client.startswith("10.99.7.1:") and server == "10.99.7.2:1094"
    assert 0 < last - first < 1 and first > 1_790_000_000
    assert 0 < low <= middle <= high < 0.1
    assert 60_000 < small <= large


def test_a_capture_is_read_once_until_it_changes(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    study.collect()
    before = query(study, "SELECT * FROM flows ORDER BY ALL")
    with monkeypatch.context() as patch:
        patch.setattr(captures, "read_capture", lambda *_: pytest.fail("read again"))
        study.collect()
    assert query(study, "SELECT * FROM flows ORDER BY ALL") == before
    shutil.copy(DATA / "cut.pcapng", study.capture)
    study.collect()
    assert 0 < query(study, "SELECT sum(packets) FROM flows")[0][0] < sum(row[8] for row in before)
    (reason,) = [g for g in query(study, "SELECT what, reason FROM gaps") if g[0] == "capture"]
    assert "cut short" in reason[1]


def test_a_later_record_of_the_node_brings_another_capture(study: Any) -> None:
    """Its flows take the place of the others': both would be the same connections of a node."""
    study.collect()
    flows = query(study, "SELECT * FROM flows ORDER BY ALL")
    assert flows
    record = study.capture.with_suffix(".json")
    node, start = study.capture.stem.rsplit(".", 1)
    later = study.capture.with_name(f"{node}.{int(start) + 1}.pcapng")
    document = json.loads(record.read_text(encoding="utf-8"))
    document |= {"start_unix_s": document["start_unix_s"] + 1}
    document |= {"capture": {"file": later.name, "truncated": False}}
    later.with_suffix(".json").write_text(json.dumps(document), encoding="utf-8")
    shutil.copy(study.capture, later)
    study.collect()
    assert query(study, "SELECT * FROM flows ORDER BY ALL") == flows
    assert query(study, "SELECT path FROM captures") == [(f"records/11/{later.name}",)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no TCP packet"),
        (b"no packets at all, only words\n" * 9, "isn't a capture file"),
    ],
)
def test_what_is_no_capture_gives_a_reason(study: Any, content: bytes, words: str) -> None:
    study.capture.write_bytes(content)
    study.collect()
    ((reason, number),) = query(study, "SELECT reason, flows FROM captures")
    assert words in reason and number == 0
    assert query(study, "SELECT count(*) FROM flows") == [(0,)]


def test_without_tshark_a_gap_says_so_and_the_next_collect_reads_it(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(captures, "find_tshark", lambda: None)
        study.collect()
        gaps = query(study, "SELECT reason FROM gaps WHERE what = 'capture'")
        assert gaps == [("tshark missing: apt-get install tshark, then collect again",)]
    study.collect()
    assert query(study, "SELECT count(*) FROM flows") == [(4,)]
    assert query(study, "SELECT count(*) FROM gaps WHERE what = 'capture'") == [(0,)]


def test_a_capture_that_is_not_there_is_a_gap(study: Any) -> None:
    study.capture.unlink()
    study.collect()
    ((reason,),) = query(study, "SELECT reason FROM gaps WHERE what = 'capture'")
    assert reason == f"the record names {study.capture.name}, which is not beside it"


def test_a_capture_that_takes_too_long_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flows, "TIME_LIMIT_S", 0.0)
    with pytest.raises(flows.CaptureError, match="did not end within 0 s"):
        flows.read_capture(str(shutil.which("tshark")), DATA / "veth.pcapng", tmp_path)
    assert not (tmp_path / "packets.tsv").exists()


def line(**values: str) -> str:
    """A line of tshark's table; what is not given is empty."""
    return "\t".join(values.get(name.replace(".", "_"), "") for name in flows.FIELDS) + "\n"


def test_a_connection_that_was_already_open(tmp_path: Path) -> None:
    """The higher port is the client's, windows are not known, IPv6 stands in brackets."""
    common = {"tcp_stream": "0", "frame_time_epoch": "1.5", "ipv6_src": "::1", "ipv6_dst": "::2"}
    packet = line(
        **common,
        tcp_srcport="1094",
        tcp_dstport="40000",
        tcp_len="10",
        tcp_flags_ack="1",
        tcp_window_size="501",
        tcp_window_size_scalefactor="-1",
        tcp_analysis_ack_rtt="0.25",
    )
    up, down = flows.flows_of([packet, "cut\toff"])
    assert (up.client, up.server) == ("[::2]:40000", "[::1]:1094")
    assert (up.packets, list(up.rtts)) == (0, [0.25])
    assert (down.packets, down.bytes, list(down.windows)) == (1, 10, [])
    assert up.row()[-5:] == (None,) * 5
