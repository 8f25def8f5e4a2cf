"""steelyard run with several commands, on the real sampler: what is printed, exported, interrupted."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit
from tests.system.leftovers import without_sweeps

from steelyard.facts import json_fields
from steelyard.wrappers.commands import cli

Capture = pytest.CaptureFixture[str]
RUN = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run"]


def said_by(capfd: Capture, code: int, *words: str) -> tuple[str, str]:
    """stdout and stderr of a run that exits with `code`."""
    assert cli.main(["run", *words]) == code
    out, err = capfd.readouterr()
    return out, without_sweeps(err)


def test_the_first_table_has_a_row_for_each_command(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    out, _ = said_by(capfd, 0, "sleep 0.02", "sleep 0.1", "--repeat", "3", "--export", str(path))
    table = out.partition("elapsed of")[2].partition(" was\n")[0].splitlines()
    assert table[0].endswith("times the fastest") and "elapsed of" in out.lstrip().splitlines()[0]
    (first,) = (line for line in table if line.lstrip().startswith("1: sleep 0.02"))
    (second,) = (line for line in table if line.lstrip().startswith("2: sleep 0.1"))
    (one,) = json.loads(path.read_bytes())["comparisons"]
    assert re.search(r" 3 +1$", first.rstrip())
    (ratio,) = re.findall(r" 3 +([\d.]+)(?: \(.*\))?$", second.rstrip())
    # A wide interval, of a busy machine, leaves one digit.
    assert float(ratio) == pytest.approx(one["ratio"], rel=0.05, abs=0.5)
    assert out.index("sleep 0.02 was") < out.index("\n1: sleep 0.02"), "details come after it"


def test_two_lines_are_compared_with_an_interval_that_holds_the_truth(capfd: Capture) -> None:
    out, err = said_by(capfd, 0, "sleep 0.02", "sleep 0.3", "--repeat", "12", "--export", "json")
    found = json.loads(out)
    assert [one["command"] for one in found["commands"]] == ["sleep 0.02", "sleep 0.3"]
    assert [len(one["runs"]) for one in found["commands"]] == [12, 12]
    assert sorted(found["order"]) == [0] * 12 + [1] * 12
    (one,) = found["comparisons"]
    assert (one["place"], one["baseline"], one["design"]) == (1, 0, "paired in 12 rounds")
    # Their own time comes on top of both: less than fifteen times.
    assert 1 < one["low"] < one["ratio"] < one["high"]
    assert one["ratio"] < 15.1
    assert err == ""


def test_after_until_the_interval_is_the_one_that_the_rule_looked_at(capfd: Capture) -> None:
    """Student's of 96 %, which then holds 95 %: by scipy, from the runs themselves."""
    out, _ = said_by(capfd, 0, "--until=90%", "--export", "json", "sleep 0.005", "sleep 0.01")
    command = json.loads(out)["commands"][0]
    values = [run["values"]["elapsed"] for run in command["runs"]]
    (elapsed,) = [one for one in command["metrics"] if one["metric"] == "elapsed"]
    degrees, error = len(values) - 1, np.std(values, ddof=1) / len(values) ** 0.5
    low = np.mean(values) - stdtrit(degrees, 0.98) * error
    assert elapsed["low"] == pytest.approx(low, rel=1e-9)


def test_what_is_printed_of_several(capfd: Capture) -> None:
    out, _ = said_by(capfd, 0, "--repeat=3", "-L", "t=0.01,0.05", "--", "sleep", "{t}")
    assert "1: sleep 0.01" in out and "2: sleep 0.05" in out
    assert "t=0.01 was\n" in out
    assert "than t=0.05" in out
    assert "runs were interleaved, in random order" in out
    assert [line for line in out.splitlines() if len(line) > 80 and line[0] != " "] == []


def test_a_parameter_is_a_tag_and_records_lie_by_command(capfd: Capture, tmp_path: Path) -> None:
    said_by(capfd, 0, "-o", str(tmp_path / "kept"), "--repeat=1", "-L", "t=1,2", "true {t}")
    for place in (1, 2):
        (record,) = (tmp_path / f"kept/command-{place}/run-001").rglob("*.json")
        assert json.loads(record.read_bytes())["tags"] == {"t": str(place)}


def test_csv_has_a_row_a_command_and_metric(capfd: Capture, tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    out, _ = said_by(
        capfd,
        0,
        "-L",
        "t=1,2",
        "--repeat=2",
        f"--export={path}",
        "--export=md",
        "--",
        "true",
        "{t}",
    )
    rows = list(csv.DictReader(io.StringIO(path.read_text())))
    elapsed = [row for row in rows if row["metric"] == "elapsed"]
    assert [(row["command"], row["parameter_t"], row["n"]) for row in elapsed] == [
        ("true 1", "1", "2"), ("true 2", "2", "2"),
    ]  # fmt: skip
    assert {"1.0"} < {row["times_fastest"] for row in elapsed}
    energy = next(row for row in rows if row["metric"] == "energy")
    assert bool(energy["mean"]) != bool(energy["reason"])
    assert out.splitlines()[2].startswith("| `true 1` | ")
    assert len(out.splitlines()) == 4


def test_a_shell_is_said_with_what_it_takes(capfd: Capture) -> None:
    out, _ = said_by(capfd, 0, "--repeat=2", "echo a | cat")
    assert "through sh, for '|': the shell is in the figures\n  by itself it takes " in out
    assert "(sh -c :, n = 20); without it " in out
    out, _ = said_by(capfd, 0, "--repeat=2", "--json", "exit 0")
    document = json.loads(out)
    assert json_fields.compare("measured", document) == []
    (one,) = document["commands"]
    assert one["shell"] == "sh"
    elapsed = next(metric for metric in one["metrics"] if metric["metric"] == "elapsed")
    assert 0 < one["shell_s"] < 3 * elapsed["max"] + 0.05


def test_user_and_system_are_the_commands(capfd: Capture) -> None:
    code = "import os, time\nwhile sum(os.times()[:2]) < 0.3: os.getppid()"
    out, _ = said_by(capfd, 0, "--json", "--", sys.executable, "-c", code)
    values = json.loads(out)["commands"][0]["runs"][0]["values"]
    assert values["user"] + values["system"] == pytest.approx(values["cpu"], abs=1e-5)
    assert 0.3 <= values["cpu"] < 0.6
    assert values["user"] > 0 and values["system"] > 0


def test_rate_0_means_totals_only_as_help_says(capfd: Capture) -> None:
    out, _ = said_by(capfd, 0, "--sample-rate=0", "--json", "--", "sleep", "0.05")
    values = json.loads(out)["commands"][0]["runs"][0]["values"]
    assert 0.05 <= values["elapsed"] < 10
    assert values["cpu"] > 0 and values["memory"] > 0 and values["rchar_bytes"] > 0


def test_a_hook_that_fails_is_no_run_to_go_on_from(capfd: Capture) -> None:
    _, err = said_by(capfd, 5, "--prepare=exit 3", "--", "true")
    assert err == ("steelyard run: --prepare 'exit 3' failed (exit code 3): stopped after 0 runs\n")


@pytest.mark.parametrize("launcher", ["bare", "unshare"])
def test_in_a_container_too(capfd: Capture, launcher: str) -> None:
    code = "import os\nwhile os.times()[0] < 0.1: pass"
    out, _ = said_by(capfd, 0, "--json", "--in", launcher, "--", sys.executable, "-c", code)
    values = json.loads(out)["commands"][0]["runs"][0]["values"]
    assert 0.1 <= values["user"] <= values["cpu"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max-repeat", "3", "--", "true"], "--max-repeat: goes with --until"),
        (["--until", "2", "--", "true"], "--until 2: expected a share of the mean, such as 2%"),
        (
            ["--export", "x.txt", "--", "true"],
            "--export x.txt: expected csv, json or md, or a file",
        ),
        (["--export", "/no/x.csv", "--", "true"], "there is no folder /no"),
        (["--json", "--export=csv", "--", "true"], "--export json: csv is on stdout already"),
        (["-c", "true", "--", "true"], "give commands by -c, or after the options"),
        (["-L", "a=1", "--", "true"], "-L a=…: no command has {a} in it"),
        (["--prepare=a", "--prepare=b", "--", "true"], "once for each of the 1; found 2"),
        (["--setup=a", "--order=rounds", "a b", "c d"], "--setup of several commands: goes with"),
        (["--shell=none", "a | b"], "needs a shell ('|'), which --shell=none rules out"),
    ],
)
def test_what_is_wrong_is_one_line(words: list[str], message: str, capfd: Capture) -> None:
    out, err = said_by(capfd, 2, *words)
    assert out == ""
    assert message in err
    assert len(err.splitlines()) == 1


def test_ctrl_c_tells_what_is_known(tmp_path: Path) -> None:
    began = tmp_path / "began"
    line = f"echo x >>{began}; sleep 0.1; test $(wc -l <{began}) -lt 4 || sleep 60"
    child = subprocess.Popen(
        [*RUN, "--repeat", "9", "--json", line],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not began.exists() or len(began.read_text().splitlines()) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(0.2)
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err == "steelyard run: interrupted: stopped after 3 runs\n"
    found = json.loads(out)
    assert found["ended_early"] == "interrupted"
    assert [run["exit_code"] for run in found["commands"][0]["runs"]] == [0, 0, 0]


def on_a_terminal(*arguments: str) -> str:
    """Return what is on stderr at the end, and what was before."""
    ours, its = pty.openpty()
    child = subprocess.Popen(
        [*RUN, *arguments],
        stdout=subprocess.DEVNULL, stderr=its, env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(its)
    said = b""
    try:
        while chunk := os.read(ours, 65536):
            said += chunk
    except OSError:  # Linux returns EIO when the other end is closed
        pass
    os.close(ours)
    assert child.wait(60) == 0
    return said.decode()


def test_on_a_terminal_it_shows_how_far_it_is() -> None:
    text = on_a_terminal("--repeat=3", "sleep 0.01", "sleep 0.02")
    assert "sleep 0.02" in text and "0/3" in text and "3/3" in text
    assert " ms ± " in text
    # No clock is shown of a run that is shorter than three seconds, as on all but very busy machines.
    assert not re.search(r"run \d: [012] s", text)


def test_a_long_run_shows_its_time_as_it_passes() -> None:
    text = on_a_terminal("--warmup=1", "--repeat=2", "sleep 4.5")
    for run in ("warm-up 1", "run 1", "run 2"):
        assert re.search(rf"{run}: [3-9] s", text), text
