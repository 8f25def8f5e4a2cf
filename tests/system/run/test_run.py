"""steelyard run: measures a command here, with the real sampler."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.leftovers import without_sweeps

RUN = (sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run")


def steelyard(*words: str, given: str = "in\n") -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process: the measured command writes to its descriptors."""
    return subprocess.run([*RUN, *words], capture_output=True, text=True, check=False, input=given)


def test_one_run_has_the_terminal_for_itself_and_no_spread() -> None:
    done = steelyard("--", "sh", "-c", "cat; echo oops >&2")
    assert done.returncode == 0
    assert done.stdout.startswith("in\n")
    assert without_sweeps(done.stderr) == "oops\n"
    line = next(line for line in done.stdout.splitlines() if line.startswith(" elapsed"))
    assert line.split()[-1] == "1"
    assert "…" not in line


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_change_nothing(tmp_path: Path, closed: str) -> None:
    """With stdin closed the run never ended; with another one it ended in a traceback."""
    figures = tmp_path / "figures.json"
    words = [*RUN, "--export", figures, "--", "sh", "-c", "exit 3"]
    done = subprocess.run(
        ["bash", "-c", f'exec "$@" {closed}', "-", *words], check=False, timeout=60
    )
    assert done.returncode == 3
    assert json.loads(figures.read_text())["commands"][0]["runs"][0]["exit_code"] == 3


def test_where_a_parent_has_left_sigchld_ignored_the_exit_code_is_the_commands() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = subprocess.Popen([*RUN, "--", "sh", "-c", "exit 3"], stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGCHLD, before)
    output, _ = process.communicate(timeout=90)
    assert b"run 1 failed (exit code 3)" in output
    assert process.returncode == 3


def test_repeats_have_intervals_and_show_the_first_output_only() -> None:
    done = steelyard("--repeat", "3", "--json", "--", "sh", "-c", "echo once; sleep 0.05")
    assert done.returncode == 0
    assert done.stderr.count("once") == 1
    document = json.loads(done.stdout)
    metrics = {entry["metric"]: entry for entry in document["commands"][0]["metrics"]}
    elapsed = metrics["elapsed"]
    values = [entry["values"]["elapsed"] for entry in document["commands"][0]["runs"]]
    mean = sum(values) / 3
    # Student's t for 2 degrees of freedom, from a printed table: 4.303.
    half = 4.303 * math.sqrt(sum((v - mean) ** 2 for v in values) / 2) / math.sqrt(3)
    assert elapsed["mean"] == pytest.approx(mean)
    # Of what cannot be negative the upper end is that of a logarithmic scale; a busy machine may have
    # spread the three so far that the lower one is 0.
    assert elapsed["low"] == pytest.approx(max(0.0, mean - half), abs=1e-3 * mean)
    assert elapsed["high"] == pytest.approx(mean * math.exp(half / mean), rel=1e-3)
    assert (elapsed["min"], elapsed["max"], elapsed["n"]) == (min(values), max(values), 3)
    assert all(value >= 0.05 for value in values)


def test_bytes_and_memory_are_the_commands(tmp_path: Path) -> None:
    code = "x = b'a' * 50_000_000; open('f', 'wb').write(x)"
    command = [sys.executable, "-c", f"import os; os.chdir({str(tmp_path)!r}); {code}"]
    document = json.loads(steelyard("--json", "--", *command).stdout)
    values = document["commands"][0]["runs"][0]["values"]
    assert 50_000_000 <= values["wchar_bytes"] < 51_000_000
    assert values["memory"] > 50_000_000
    assert values["cpu"] > 0


# Its children use 0.3 s and write 3 MB, and nobody waits for them.
IGNORED = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(3):
    if os.fork() == 0:
        while time.process_time() < 0.1: pass
        os.write(os.open("/dev/null", os.O_WRONLY), bytes(1_000_000))
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
"""


@pytest.mark.parametrize("rate", ["0", "10"])  # 0: no sample meets a child
def test_what_children_used_that_nobody_waited_for_is_said(rate: str) -> None:
    """Observed: 0.03 s and 20 B for 0.45 s and 20.97 MB without a note, or elapsed omitted, too."""
    options = ("--no-bpf", f"--sample-rate={rate}", "--json")
    (one,) = json.loads(steelyard(*options, "--", sys.executable, "-c", IGNORED, given="").stdout)[
        "commands"
    ]
    values, metrics = one["runs"][0]["values"], {each["metric"]: each for each in one["metrics"]}
    assert 0.3 <= values["elapsed"] < 60
    assert values["memory"] > 5_000_000
    if values["cpu"] is None:  # a sample has met them, and not their end
        assert values["wchar_bytes"] is None
        assert "children of a parent that ignores SIGCHLD" in metrics["cpu"]["reason"]
    elif values["cpu"] < 0.3:
        assert "children of a parent that ignores SIGCHLD" in "".join(one["notes"])


def test_one_reason_of_several_figures_is_said_once() -> None:
    done = steelyard("--no-bpf", "--sample-rate=50", "--", sys.executable, "-c", IGNORED, given="")
    reasons = [line for line in done.stdout.splitlines() if "ignores SIGCHLD" in line]
    assert len(reasons) <= 1


def stolen_s() -> float:
    """As the kernel has it: the eighth number of all CPUs, in ticks."""
    first = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(first[8]) / os.sysconf("SC_CLK_TCK")


def test_what_the_host_took_is_in_the_record(tmp_path: Path) -> None:
    before = stolen_s()
    steelyard(f"--output={tmp_path}/kept", "--", "sleep", "0.3", given="")
    most = stolen_s() - before
    (path,) = (tmp_path / "kept").rglob("*.json")
    told = json.loads(path.read_text())["cpu"]["node_steal_s"]
    assert 0 <= told <= most + 0.01


def counted(done: subprocess.CompletedProcess[str]) -> list[int]:
    """Return the number that `wc -l` printed."""
    return [int(line) for line in done.stdout.splitlines() if line.isdecimal()]


def test_every_run_reads_the_file_of_input_from_its_start(tmp_path: Path) -> None:
    """Seen: `wc -l <big.log` printed 1000000, with --repeat 2 it printed 0 without a word."""
    (tmp_path / "big.log").write_text("line\n" * 1000)
    file = f"--input={tmp_path}/big.log"
    kept = tmp_path / "kept"
    done = steelyard("--repeat=3", file, f"--output={kept}", "--", "wc", "-l", given="")
    assert (done.returncode, counted(done)) == (0, [1000])
    assert [path.read_text() for path in kept.glob("run-*/out")] == ["1000\n"] * 3
    assert counted(steelyard(file, "--", "wc", "-l")) == [1000]
    assert counted(steelyard(file, "--in=unshare", "--", "wc", "-l")) == [1000]


def test_a_stdin_that_runs_would_not_see_is_refused_or_said(tmp_path: Path) -> None:
    path = tmp_path / "big.log"
    path.write_text("line\n" * 1000)
    command = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run"]
    with path.open() as file:
        words = [*command, "--repeat=2", "--", "wc", "-l"]
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--input FILE" in done.stderr and not counted(done)
    with path.open() as file:  # one run alone reads it
        words = [*command, "--", "wc", "-l"]
        done = subprocess.run(words, stdin=file, capture_output=True, text=True, check=False)
    assert counted(done) == [1000]
    done = steelyard("--repeat=2", "--", "wc", "-l", given="in\n")
    assert (done.returncode, counted(done)) == (0, [0])
    assert "note: the command's stdin is empty in every run; --input FILE" in done.stderr
    assert "note:" not in steelyard("--repeat=2", "--", "wc", "-l", given="").stderr
    done = steelyard("--input=/absent", "--", "true")
    assert (done.returncode, "--input /absent: no file" in done.stderr) == (2, True)


def test_what_cannot_be_measured_says_why() -> None:
    document = json.loads(steelyard("--json", "--", "true").stdout)
    energy = next(
        entry for entry in document["commands"][0]["metrics"] if entry["metric"] == "energy"
    )
    if energy["mean"] is None:  # a machine without RAPL
        assert energy["n"] == 0
        assert "RAPL" in energy["reason"]
    else:
        assert energy["mean"] > 0


def test_failed_runs_are_told_and_kept_apart(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"if test -e {flag}; then exit 0; fi; touch {flag}; echo broken >&2; exit 3"
    done = steelyard("-i", "--repeat", "3", "--json", "--", "sh", "-c", script)
    assert done.returncode == 5
    assert "broken" in done.stderr
    document = json.loads(done.stdout)
    assert [entry["exit_code"] for entry in document["commands"][0]["runs"]] == [3, 0, 0]
    assert next(e for e in document["commands"][0]["metrics"] if e["metric"] == "elapsed")["n"] == 2


def test_a_run_that_was_killed_names_its_signal() -> None:
    done = steelyard("--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + 9
    assert "run 1 failed (signal 9)\nno figures: 1 of 1 run failed\n" in done.stdout


def test_where_all_runs_failed_there_are_no_figures() -> None:
    done = steelyard("-i", "--repeat", "3", "--", "false")
    assert done.returncode == 5
    assert "no figures: 3 of 3 runs failed\n" in done.stdout
    assert "not in the figures" not in done.stdout


def test_records_are_kept_where_asked_and_nowhere_else(tmp_path: Path) -> None:
    place = tmp_path / "kept"
    words = ["-o", str(place), "--tag", "who=me", "--sample-rate", "50", "--", "sleep", "0.2"]
    assert steelyard(*words).returncode == 0
    (record,) = place.rglob("*.json")
    document = json.loads(record.read_text())
    assert document["tags"] == {"who": "me"}
    assert document["sampler"]["rate_hz"] == 50
    assert document["sampler"]["samples"] >= 8
    again = steelyard(*words)
    assert again.returncode == 2
    assert "has runs in it already" in again.stderr


def test_dashes_of_the_command_stay_the_commands() -> None:
    done = steelyard("--", "printf", "%s|", "--", "--repeat", "-x")
    assert done.stdout.startswith("--|--repeat|-x|")
