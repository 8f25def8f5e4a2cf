"""The local scheduler, with the real sampler and a real benchmark."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.processes import each_process

from steelyard.facts import json_fields
from steelyard.jobscripts import registry
from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.submit import status

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
LONG = (
    '[study]\nname = "long"\nrepeat = 2\n[[benchmark]]\nuse = "filesystem"\niterations = 1000000\n'
)


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.derive_folder(path).absolute())


def results(study: StudyDir) -> list[dict[str, Any]]:
    paths = sorted(study.path.glob("runs/*/*/result.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_a_study_runs_from_end_to_end_with_records(write_study: Write, capsys: Capture) -> None:
    path = write_study()
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    study = folder_of(path)
    assert [result["state"] for result in results(study)] == ["completed"] * 16
    assert [
        fault for one in results(study) for fault in json_fields.compare("run_result", one)
    ] == []
    assert json_fields.compare("plan", json.loads(study.plan.read_text())) == []
    lines = (study.path / "submissions.jsonl").read_text().splitlines()
    assert lines
    assert [
        fault for one in lines for fault in json_fields.compare("submission", json.loads(one))
    ] == []
    runs = {run.run_id: run for run in plan.read_runs(study.plan)}
    for result in results(study):
        attempt = study.run(result["run_id"]) / "local.1"
        assert len(result["exit_codes"]) == runs[result["run_id"]].clients
        (record,) = attempt.glob("record/**/*.json")
        document = json.loads(record.read_text())
        assert document["complete"] is True
        assert document["tags"]["study"] == "small"
        assert document["elapsed_s"] >= result["elapsed_s"] > 0
    assert {(e.scheduler, e.job_id) for e in ledger.read_submissions(study)} == {("local", None)}
    assert status.read_progress(study.path).done == 16
    capsys.readouterr()
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    assert "nothing to add" in capsys.readouterr().out


SHELLS = (
    '[study]\nname = "shells"\nrepeat = 1\n[job]\nexport = ["ASKED_FOR"]\n'
    '[[benchmark]]\nuse = "app"\ncommand = "env >env.txt; cp env.txt {here}/"\n'
)


def test_a_run_has_of_the_shell_what_a_job_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/study.md: named variables and no others; else it would not be the same tomorrow."""
    monkeypatch.setenv("ASKED_FOR", "yes")
    monkeypatch.setenv("LEFT_FROM_YESTERDAY", "yes")
    path = tmp_path / "shells.toml"
    path.write_text(SHELLS.replace("{here}", str(tmp_path)))
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    names = {line.partition("=")[0] for line in (tmp_path / "env.txt").read_text().splitlines()}
    assert "ASKED_FOR" in names and "PATH" in names
    assert "LEFT_FROM_YESTERDAY" not in names


def test_runs_come_in_the_plans_order(write_study: Write) -> None:
    path = write_study()
    cli.main(["submit", str(path), "--scheduler", "local"])
    study = folder_of(path)
    by_start = sorted(results(study), key=lambda result: result["start_unix_s"])
    assert [r["run_id"] for r in by_start] == [run.run_id for run in plan.read_runs(study.plan)]


def test_a_dry_run_prints_commands_and_writes_nothing(write_study: Write, capsys: Capture) -> None:
    path = write_study()
    assert cli.main(["submit", str(path), "--scheduler", "local", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.count("steelyard-node sample") == 16
    assert not folder_of(path).path.exists()


def test_failed_runs_are_told_and_repeated_when_asked(
    write_study: Write, capsys: Capture, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    text = (
        '[study]\nname = "f"\nrepeat = 2\n[[benchmark]]\nuse = "filesystem"\n'
        f'test = "small_file_write"\nwrite_files = 1\niterations = 1\ndirectory = "{place}"\n'
    )
    path = write_study(text=text)
    command = ["submit", str(path), "--scheduler", "local"]
    assert cli.main(command) == 5
    assert {result["state"] for result in results(folder_of(path))} == {"failed"}
    assert cli.main(command) == 5  # failed runs are not repeated without a request, but reported
    assert len(results(folder_of(path))) == 2
    place.mkdir()
    assert cli.main([*command, "--retry-failed"]) == 0
    assert status.read_progress(folder_of(path).path).done == 2
    assert {result["attempt"] for result in results(folder_of(path))} == {"local.1", "local.2"}


def start_submit(path: Path, sigint: signal.Handlers = signal.SIG_DFL) -> subprocess.Popen[bytes]:
    """Start a submit in a separate process, with its first run in progress."""
    command = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "submit", str(path)]
    before = signal.signal(signal.SIGINT, sigint)  # it is inherited
    child = subprocess.Popen([*command, "--scheduler", "local"], stderr=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 90
    while not list(folder_of(path).path.glob("runs/*/local.1/out.0")):
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return child


def processes_naming(text: str) -> list[str]:
    lines = (words.replace(b"\0", b" ") for _, words in each_process("cmdline"))
    return [line.decode(errors="replace") for line in lines if text.encode() in line]


def test_ctrl_c_stops_the_run_and_leaves_states_right(write_study: Write) -> None:
    path = write_study(text=LONG)
    child = start_submit(path)
    study = folder_of(path)
    assert status.read_progress(study.path).running == 1
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=90) == 130
    assert processes_naming(str(study.path)) == []
    (result,) = results(study)
    assert result["state"] == "failed"
    assert "SIGTERM" in result["reason"]
    found = status.read_progress(study.path)
    assert (found.failed, found.planned, found.running, found.waiting) == (1, 1, 0, 0)


def test_a_killed_submit_takes_its_run_with_it_and_leaves_no_lock(write_study: Write) -> None:
    path = write_study(text=LONG)
    child = start_submit(path)
    study = folder_of(path)
    assert processes_naming(str(study.path))
    child.kill()
    child.wait()
    deadline = time.monotonic() + 90
    while processes_naming(str(study.path)):
        assert time.monotonic() < deadline, "the run has outlived its submit"
        time.sleep(0.05)
    found = status.read_progress(study.path)
    assert (found.failed, found.planned) == (1, 1)
    assert found.failures[0].state == "failed"
    (result,) = results(study)
    assert "SIGTERM" in result["reason"]


@pytest.mark.parametrize("sigint", [signal.SIG_DFL, signal.SIG_IGN])
def test_cancel_ends_the_submit_that_is_at_work(
    write_study: Write, capsys: Capture, sigint: signal.Handlers
) -> None:
    """One that a script started with `&` ignores SIGINT. When it reports the end, nothing runs."""
    path = write_study(text=LONG)
    child = start_submit(path, sigint)
    assert cli.main(["cancel", str(path)]) == 0
    assert "1 run cancelled" in capsys.readouterr().out
    assert processes_naming(str(folder_of(path).path / "runs")) == []
    assert child.wait(timeout=90) == 128 + signal.SIGTERM
    assert len(results(folder_of(path))) == 1


def test_after_ctrl_c_the_rest_of_the_interrupted_block_is_not_forgotten(
    write_study: Write, capsys: Capture, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    command = f"test -e {flag} || sleep 60"
    text = (
        '[study]\nname = "b"\nrepeat = 3\nblocks = 1\n'
        f"[[benchmark]]\nuse = \"app\"\ncommand = '{command}'\n"
    )
    path = write_study(text=text)
    child = start_submit(path)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=90) == 130
    flag.touch()
    assert cli.main(["submit", str(path), "--scheduler", "local", "--retry-failed"]) == 0
    assert "3 of 3 runs executed here" in capsys.readouterr().out
    found = status.read_progress(folder_of(path).path)
    assert (found.done, found.planned) == (3, 0)


def test_a_time_limit_is_kept(write_study: Write) -> None:
    path = write_study(text=LONG.replace("2\n", "1\n", 1) + '[job]\ntime_limit = "00:00:01"\n')
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 5
    (result,) = results(folder_of(path))
    assert result["state"] == "timeout"


def test_a_run_whose_script_dies_early_has_a_result_that_says_so(write_study: Write) -> None:
    path = write_study(("repeat = 4\nblocks = 2", "repeat = 1"), ("[1, 2]", "[1]"))
    study = folder_of(path)
    study.path.mkdir()
    library = study.library(registry.library())
    library.parent.mkdir()
    library.write_text("echo library broken >&2\nexit 7\n")
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 5
    for result in results(study):
        assert result["state"] == "failed"
        assert result["reason"] == "the run left no result: exit code 7: library broken"
        assert result["start_unix_s"] is None
        assert "start_unix_s" in result["missing"]


def test_without_the_sampler_it_says_what_to_do(
    write_study: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEELYARD_NODE", "/nowhere/steelyard-node")
    assert cli.main(["submit", str(write_study()), "--scheduler", "local"]) == 3
    assert "STEELYARD_NODE=/nowhere/steelyard-node: no program" in capsys.readouterr().err


def test_missing_benchmark_programs_are_said_before_anything_runs(
    write_study: Write, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    path = write_study(text='[[benchmark]]\nuse = "hpl"\np = 2\n')
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 3
    err = capsys.readouterr().err
    assert "programs are missing on this machine: hpcc (" in err
    assert "apt install hpcc" in err
    assert "apt install openmpi-bin" in err
    assert not folder_of(path).plan.exists()


def test_after_ctrl_c_the_next_submit_executes_the_rest_of_the_block_too(
    write_study: Write, capsys: Capture
) -> None:
    text = (
        '[study]\nname = "rest"\nrepeat = 2\nblocks = 2\n[factors]\nn = [1, 2, 3]\n'
        '[[benchmark]]\nuse = "app"\ncommand = "echo {n}; sleep 0.5"\n'
    )
    path = write_study(text=text)
    child = start_submit(path)
    child.send_signal(signal.SIGINT)
    assert child.wait(60) == 130
    before = status.read_progress(folder_of(path).path)
    assert before.planned >= 4
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == (5 if before.failed else 0)
    words = f"{before.planned} of 6 runs executed here (0 failed"
    assert words in capsys.readouterr().out
    after = status.read_progress(folder_of(path).path)
    assert (after.planned, after.done + after.failed) == (0, 6)
    assert after.failed == before.failed <= 1
