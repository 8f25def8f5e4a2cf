"""A real XRootD server: what is read from it, what it counts, and how it ends."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import each_process
from tests.system.hep.conftest import RECIPE, Server, parameters
from tests.waiting import wait_for

from steelyard.jobscripts.hep import input_files, xrootd_server
from steelyard.jobscripts.hep.counting_reader import ReadError, Tally, XRootDReader, open_reader

Start = Callable[..., Server]
RECIPE_PARAMETERS = {key: value for key, value in RECIPE.items() if key != "structure"}
FEW = [(0, 100), (500, 501), (2000, 2077)]


def processes(running: Server) -> list[int]:
    """The server and its guard."""
    return [pid for pid, words in each_process("cmdline") if running.own.encode() in words]


def gone(running: Server) -> None:
    """No process, no file."""
    wait_for("a process is left", lambda: not processes(running))
    wait_for(f"something is left in {running.base}", lambda: not list(running.base.iterdir()))
    assert not Path(running.own).exists()


# --- reading ---


def test_bytes_come_as_they_are_and_requests_are_counted(start: Start, data: Path) -> None:
    whole = (data / input_files.file_name(RECIPE)).read_bytes()
    wanted = [whole[a:b] for a, b in FEW]
    running, tally = start(), Tally()
    reader = open_reader(running.url, tally, vector=True)
    assert (reader.size, reader.read(FEW)) == (len(whole), wanted)
    assert (tally.vector_read_requests, tally.vector_read_segments) == (1, 3)
    assert reader.read(FEW[:1]) == wanted[:1]
    assert (tally.read_requests, tally.bytes_read) == (1, 278)
    reader.close()
    reader = open_reader(running.url, tally, vector=False)
    assert reader.read(FEW) == wanted
    assert (tally.read_requests, tally.vector_read_requests) == (4, 1)
    reader.close()


def test_ranges_beyond_the_servers_limits_are_cut(
    start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (data / input_files.file_name(RECIPE)).read_bytes()
    monkeypatch.setattr(XRootDReader, "_query_limits", lambda *_: None)
    monkeypatch.setattr(XRootDReader, "most_ranges", 2)
    monkeypatch.setattr(XRootDReader, "most_bytes", 40)
    tally = Tally()
    reader = open_reader(start().url, tally, vector=True)
    assert reader.read(FEW) == [whole[a:b] for a, b in FEW]
    # 3 + 1 + 2 pieces, two at a time
    assert (tally.vector_read_requests, tally.vector_read_segments) == (3, 6)
    reader.close()


def test_what_is_not_there_is_an_error_of_one_line(start: Start) -> None:
    running = start()
    with pytest.raises(ReadError, match=r"no-such.*root: .*[Nn]o such file"):
        open_reader(running.url.replace("jagged", "no-such"), Tally(), vector=True)
    reader = open_reader(running.url, Tally(), vector=True)
    with pytest.raises(ReadError, match="bytes instead of"):
        reader.read([(reader.size - 5, reader.size + 5)])
    with pytest.raises(ReadError, match="vector read"):
        reader.read([(0, 5), (reader.size + 5, reader.size + 10)])
    reader.close()


def test_nobody_can_write_to_it(start: Start, tmp_path: Path) -> None:
    running = start()
    target = f"root://{running.address}//new.root"
    done = subprocess.run(
        ["xrdcp", "--silent", "/etc/hostname", target],
        capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "read/only" in done.stderr


def test_the_servers_own_counts_are_those_of_the_clients(start: Start) -> None:
    running = start()
    code = (
        "import sys; from steelyard.jobscripts.hep.counting_reader import *\n"
        "for vector in (True, False):\n"
        "    r = open_reader(sys.argv[1], Tally(), vector); r.read([(0, 9), (20, 29)]); r.close()"
    )
    # A separate process, since the connection lasts as long as it.
    subprocess.run([sys.executable, "-c", code, running.url], check=True, timeout=60)
    found = xrootd_server.server_counts(running.address, running.words["version"])
    assert found["reason"] is None
    counts = found["counts"]
    assert (counts["opens"], counts["reads"], counts["vector_reads"]) == (2, 2, 1)
    assert counts["vector_segments"] == 2
    assert counts["bytes_sent"] > 36
    assert re.fullmatch(r"v\d+\.\d+\.\d+\S*", found["version"])


def test_without_a_server_of_ones_own_there_are_no_counts() -> None:
    found = xrootd_server.server_counts(None, None)
    assert found == {"counts": None, "reason": "no server of the run's own"}


def test_a_client_that_stays_connected_is_a_reason(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = start()
    monkeypatch.setattr(xrootd_server, "QUIET_S", 0.3)
    reader = open_reader(running.url, Tally(), vector=True)
    found = xrootd_server.server_counts(running.address, None)
    assert found["counts"] is None
    assert "still connected" in found["reason"]
    reader.close()


# --- its end ---


def test_it_ends_when_asked_to(start: Start) -> None:
    running = start()
    assert len(processes(running)) == 3
    running.process.terminate()
    assert running.process.wait(60) == 128 + signal.SIGTERM
    gone(running)


def test_it_ends_when_nobody_reads_its_output(start: Start) -> None:
    running = start()
    assert running.process.stdout is not None
    running.process.stdout.close()
    assert running.process.wait(60) == 0
    gone(running)


def test_it_ends_when_its_keeper_is_killed(start: Start) -> None:
    running = start()
    running.process.kill()
    gone(running)


def test_the_folder_that_was_given_is_served_in_place(start: Start, base: Path) -> None:
    other = base / "with blanks"
    other.mkdir()
    input_files.keep_file(other, RECIPE)
    running = start(**parameters("xrootd", data=str(other), **RECIPE_PARAMETERS))
    reader = open_reader(running.url, Tally(), vector=True)
    assert reader.size == (other / input_files.file_name(RECIPE)).stat().st_size
    reader.close()


def test_a_server_that_does_not_start_says_why(start: Start, tmp_path: Path) -> None:
    own, copies = tmp_path / "own", tmp_path / "copies"
    own.mkdir()
    with pytest.raises(xrootd_server.ServerError, match=r"xrootd does not start: .*xrootd ended"):
        xrootd_server.start(own, copies, "/bin/false")
    running = start(PATH="/nowhere")
    assert running.process.wait(60) == 1
    assert running.process.stderr is not None
    words = running.process.stderr.read()
    assert words == "steelyard: xrootd is missing: install the Debian package xrootd-server\n"


def test_a_damaged_input_is_not_served(start: Start, tmp_path: Path) -> None:
    start()
    path = tmp_path / "study" / "data" / input_files.file_name(RECIPE)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    running = start()
    assert running.process.wait(60) == 1
    assert running.process.stderr is not None
    assert "is not the file that was made" in running.process.stderr.read()
