"""A guest's job and its host: records of the real sampler, with samples of known laws."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from steelyard.facts import json_fields
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.commands import cli

BEGIN = 1_790_000_000.0  # of the host's record; the job is 20 s to 50 s behind it
COLUMNS = "unix_s,elapsed_s,cpu_s,node_cpu_s,energy_j,rx_bytes,tx_bytes"


@functools.cache
def real_record(node: str) -> tuple[str, str]:
    """The path below its folder and the text of a record that the real sampler has written."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(find_node_program())
        subprocess.run(
            [program, "sample", "--record-dir", folder, "--job-id", "7", "--node", node, "--", "true"],
            check=True, capture_output=True,
        )  # fmt: skip
        (path,) = Path(folder).rglob("*.json")
        return str(path.relative_to(folder)), path.read_text()


def record(folder: Path, node: str, begin: float, seconds: float, power_w: float | None) -> Path:
    """The document of a real record, with the times and the samples of a law: at power_w, half a
    core of two busy ones the job's, 1 MB/s received, nothing sent. Samples at odd tenths."""
    name, text = real_record(node)
    path = folder / node / name
    path.parent.mkdir(parents=True, exist_ok=True)
    told = json.loads(text)
    told |= {
        "start_unix_s": begin,
        "end_unix_s": begin + seconds,
        "samples_file": f"{path.stem}.csv",
    }
    path.write_text(json.dumps(told))
    times = [0.0, *(n + 0.3 for n in range(int(seconds))), seconds]
    lines = [
        f"{begin + t},{t},{0.5 * t},{2 * t},{'' if power_w is None else power_w * t},{int(1e6 * t)},0"
        for t in times
    ]
    path.with_suffix(".csv").write_text("\n".join([COLUMNS, *lines]) + "\n")
    return path


@pytest.fixture
def guest(tmp_path: Path) -> Path:
    return record(tmp_path, "v1", BEGIN + 20, 30.0, None)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return record(tmp_path / "host", "n1", BEGIN, 100.0, 90.0)


def joined(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert cli.main(["join-host", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert json_fields.compare("joined", found) == []
    return found


def test_the_hosts_joules_of_the_jobs_time(
    guest: Path, host: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = joined(capsys, guest, host, "--idle-power", "30")
    assert found["end_unix_s"] - found["begin_unix_s"] == 30
    ours = found["host"]
    assert ours["energy_j"] == pytest.approx(30 * 90.0)
    assert ours["cpu_s"] == pytest.approx(15.0)
    assert ours["rx_bytes"] == pytest.approx(30e6, abs=2)
    assert found["guest"]["rx_bytes"] == 30_000_000
    assert found["guest"]["energy_j"] is None
    assert found["guest"]["missing"]["energy_j"]
    # 60 W above idle, a quarter of the CPU time, which may be worth 1/3 to 3 times as much. Of the
    # others' 1.5 s of the second in which the job begins or ends, 0 to all are in its time.
    low, high = found["share"]["low_j"], found["share"]["high_j"]
    assert low == pytest.approx(
        sum(60 * s * least(0.5 * s, 1.5) for s in (0.3, 0.7)) + 60 * 29 * least(0.5, 1.5)
    )
    assert high == pytest.approx(60 * 1 + 60 * 29 * 1.5 / (1.5 + 1.5 - 0.06))


def least(own_s: float, others_s: float) -> float:
    """The part of `own_s`, with 2 % and two ticks for what the kernel's count may be off."""
    return own_s / (own_s + 3 * (others_s + 0.02 * (own_s + others_s) + 0.02))


@pytest.mark.parametrize("tenth", [0, 4, 7])
@pytest.mark.parametrize("seconds", [0.25, 0.9, 1.1, 2.5])
def test_others_come_and_go_where_a_job_begins_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seconds: float, tenth: int
) -> None:
    """Others work on two cores up to the job's begin and from its end on, or just in it; the
    virtual machine always on half a core. Samples at 5 Hz, the node's CPU time read each second."""
    begin = 20 + tenth / 10
    guest = record(tmp_path, "v1", BEGIN + begin, seconds, None)
    host = record(tmp_path / "host", "n1", BEGIN, 60.0, None)
    for is_in_it in (False, True):
        lines, node_s, read_at = [COLUMNS], 0.0, -1.0
        for n in range(301):
            t = n / 5
            in_job = min(max(t - begin, 0), seconds)
            busy_s = 0.5 * t + 2 * (in_job if is_in_it else t - in_job)
            if t - read_at >= 1:
                node_s, read_at = busy_s, t
            lines.append(f"{BEGIN + t},{t},{0.5 * t},{node_s},{20 * t + 15 * busy_s},0,0")
        host.with_suffix(".csv").write_text("\n".join(lines) + "\n")
        share = joined(capsys, guest, host, "--idle-power", "20")["share"]
        # Between two samples, 0.2 s, counters are taken to grow evenly; they do so at 30 W more or less.
        assert share["low_j"] <= 15 * 0.5 * seconds <= share["high_j"] + 2 * 0.2 * 30 / 4


def test_a_job_by_its_id(
    guest: Path, host: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = ("--record-dir", tmp_path / "v1")
    assert joined(capsys, "7", host, *records)["guest"]["record"] == str(guest)
    assert cli.main(["join-host", "7", str(host), *map(str, records), "--node", "v2"]) == 2
    assert "there are: v1" in capsys.readouterr().err


def test_in_words_and_as_a_figure(
    guest: Path, host: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "power.svg"
    assert cli.main(["join-host", str(guest), str(host), "--figure", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "30.0 s of v1 on n1" in text and "2700.00 J" in text
    svg = picture.read_text(encoding="utf-8")
    words = set(re.findall(r"<!-- (.*?) -->", svg)) | set(re.findall(r">([^<>]+)<", svg))
    assert {"power (W)", "time since the job's start (s)", "guest received", "host"} <= words


def test_a_folder_is_its_one_record_of_that_time(
    guest: Path, host: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "host", "before", BEGIN - 500, 100.0, 90.0)
    assert joined(capsys, guest, tmp_path / "host")["host"]["node"] == "n1"
    record(tmp_path / "host", "n2", BEGIN, 60.0, 90.0)
    assert cli.main(["join-host", str(guest), str(tmp_path / "host")]) == 3
    assert "expected one record that holds" in capsys.readouterr().err


def test_a_virtual_machine_that_still_runs_is_joined_up_to_its_last_sample(
    guest: Path, host: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = joined(capsys, guest, host, "--idle-power", "30")
    host.write_text(json.dumps(json.loads(host.read_text()) | {"end_unix_s": None}))
    assert joined(capsys, guest, tmp_path / "host", "--idle-power", "30") == ended
    samples = host.with_suffix(".csv")
    whole = samples.read_text().splitlines(keepends=True)
    # Its last line is not complete yet: it is ignored.
    samples.write_text("".join(whole[:51]) + f"{BEGIN + 80},8")
    assert cli.main(["join-host", str(guest), str(host)]) == 3
    assert f"to {BEGIN + 47.3:.1f}" in capsys.readouterr().err.splitlines()[0]
    samples.write_text(whole[0])
    assert cli.main(["join-host", str(guest), str(host)]) == 3
    assert "has no samples so far" in capsys.readouterr().err


def test_a_record_of_another_time_is_no_host(
    guest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = record(tmp_path / "late", "n1", BEGIN + 25, 100.0, 90.0)
    assert cli.main(["join-host", str(guest), str(late)]) == 3
    assert "expected a record of all of the job's time" in capsys.readouterr().err
    assert cli.main(["join-host", str(guest), str(late), "--figure", "x.doc"]) == 2
    assert cli.main(["join-host", str(guest), str(tmp_path / "nothing")]) == 2
