"""steelyard run: weighs a command here, with the real sampler."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.run import run, shown

Capture = pytest.CaptureFixture[str]
RATE = "expected a rate in Hz: 0 (totals only), or 0.001 to 1000"


def steelyard(*words: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: the weighed command writes to its descriptors."""
    command = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, input="in\n")


def test_one_run_has_the_terminal_for_itself_and_no_spread() -> None:
    done = steelyard("--", "sh", "-c", "cat; echo oops >&2")
    assert done.returncode == 0
    assert done.stdout.startswith("in\n")
    assert done.stderr == "oops\n"
    line = next(line for line in done.stdout.splitlines() if line.startswith(" elapsed"))
    assert line.split()[-1] == "1"
    assert "…" not in line


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
    assert 50_000_000 <= values["write calls"] < 51_000_000
    assert values["memory"] > 50_000_000
    assert values["cpu"] > 0


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
    assert "run 1 failed (signal 9): it is not in the figures" in done.stdout


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


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--", "no-such-program-here"], 3, "no-such-program-here: no such program"),
        (["--tag", "novalue", "--", "true"], 2, "--tag novalue: allowed is KEY=VALUE"),
        (["--sample-rate", "9999", "--", "true"], 2, f"--sample-rate=9999: {RATE}"),
        (["--sample-rate", "nan", "--", "true"], 2, f"--sample-rate=nan: {RATE}"),
        (["--sample-rate", "1e-301", "--", "true"], 2, f"--sample-rate=1e-301: {RATE}"),
    ],
)
def test_wrong_words_get_one_line(
    words: list[str], code: int, message: str, capsys: Capture
) -> None:
    assert cli.main(["run", *words]) == code
    assert message in capsys.readouterr().err


def test_repeat_zero_is_wrong_usage(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", "--repeat", "0", "--", "true"])
    assert caught.value.code == 2
    assert "argument --repeat" in capsys.readouterr().err


def test_dashes_of_the_command_stay_the_commands() -> None:
    done = steelyard("--", "printf", "%s|", "--", "--repeat", "-x")
    assert done.stdout.startswith("--|--repeat|-x|")


def test_a_record_cut_short_gives_no_figures(tmp_path: Path) -> None:
    (tmp_path / "n.1.json").write_text(
        json.dumps(
            {"version": 1, "complete": False, "incomplete_reason": "disk full", "elapsed_s": 3.0}
        )
    )
    found = run.weighed(tmp_path, 1, 0)
    assert set(found.values.values()) == {None}
    assert found.missing["elapsed"] == "the record was cut short: disk full"


def test_a_record_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "n.1.json").write_text(json.dumps({"version": 2, "complete": True}))
    with pytest.raises(MissingError, match="records of version 2, this command reads version 1"):
        run.weighed(tmp_path, 1, 0)


def test_figures_read_as_in_the_report() -> None:
    """All of a row in one unit, and to the decimals that its spread allows."""

    def row(values: list[float], unit: str) -> tuple[str, ...]:
        runs = [run.Weighed(n, 0, None, {"x": v}, {}) for n, v in enumerate(values, 1)]
        return tuple(map(str, shown.row(run.summary("x", unit, runs))[1:]))

    assert row([30430.0, 30410.0, 30450.0], "files_per_s") == (
        "30430 ± 20 files/s", "30380 … 30480", "30410 … 30450", "3",
    )  # fmt: skip
    assert row([0.0120, 0.0128, 0.0124], "s")[0] == "12.40 ± 0.40 ms"
    assert row([0.004122], "1") == ("0.004122", "None", "None", "1")
    assert row([0.0, 0.0], "bytes")[0] == "0 ± 0 B"


@pytest.mark.parametrize("count", ["0", "-1", "two", "1.5"])
def test_how_often_is_a_whole_number(count: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["run", f"--repeat={count}", "--", "true"])
    assert caught.value.code == 2
    assert f"expected a whole number from 1, found '{count}'" in capsys.readouterr().err


def test_no_value_is_not_zero() -> None:
    runs = [run.Weighed(1, 0, None, dict.fromkeys(run.METRICS), {"energy": "no RAPL"})]
    energy = next(one for one in run.summaries(runs) if one.metric == "energy")
    assert (energy.mean, energy.min, energy.n, energy.reason) == (None, None, 0, "no RAPL")


def test_what_cannot_be_negative_has_no_negative_bound() -> None:
    """26 ms: -17.9 … 69.9 ms was told."""
    runs = [
        run.Weighed(n, 0, None, {"elapsed_s": v}, {}) for n, v in enumerate((0.0225, 0.0295), 1)
    ]
    found = run.summary("elapsed_s", "s", runs)
    assert found.low == 0.0 and found.high is not None and found.high > 0.0295
