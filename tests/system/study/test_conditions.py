"""The factors network and cache: checked by steelyard-node, requested of Slurm, in force here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.study.test_conditions import PLUGIN_HELP, TEXT, folder_of

from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import ledger as submit_ledger
from steelyard.wrappers.study import plan

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def test_conditions_become_options_and_submissions_of_their_own(
    slurm: Any, write_study: Write
) -> None:
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path)]) == 0
    entries = submit_ledger.read_submissions(folder_of(path))
    runs = {run.run_id: run for run in plan.read_runs(folder_of(path).plan)}
    assert len(entries) == 8
    for entry in entries:
        (run_id,) = entry.run_ids
        condition = runs[run_id].condition
        assert entry.options == (
            f"--netem={condition['network']}",
            f"--cache={condition['cache']}",
        )
        script = slurm.jobs[entry.job_id]["script"]
        assert f"#SBATCH --netem={condition['network']}\n" in script
        assert f"#SBATCH --cache={condition['cache']}\n" in script
    first = [entries[0].options, entries[4].options]
    assert first[0] != first[1], "each block begins with another set"


def test_what_the_cluster_refuses_is_passed_on(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study(text=TEXT)
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    slurm.fail(
        "sbatch",
        "steelyard: --netem=delay=0ms: network conditions are switched off here\n"
        "sbatch: error: Invalid --netem argument: delay=0ms",
    )
    assert cli.main(["submit", str(path)]) == 4
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.endswith("steelyard: --netem=delay=0ms: network conditions are switched off here")


def output_of_another_job(study_file: Path, job_id: str) -> Path:
    """Where the first submission of another job says what its job said."""
    (ledger,) = study_file.parent.glob("*.study/submissions.jsonl")
    lines = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    name = next(line["submission_id"] for line in lines if line.get("job_id", job_id) != job_id)
    return ledger.parent / "submissions" / f"{name}.out"


def test_a_job_whose_node_could_not_apply_its_condition_has_failed_and_says_so(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    path = write_study(text=TEXT)
    cli.main(["submit", str(path)])
    slurm.end_jobs("FAILED")
    slurm.change(exit_codes=dict.fromkeys(slurm.jobs, "4:0") | {"100": "1:0"})
    capsys.readouterr()
    line = "--netem=delay=25ms: this node has no default route"
    for script in path.parent.glob("*.study/submissions/*.sh"):
        script.with_suffix(".out").write_text(f"steelyard: {line}\n", encoding="utf-8")
    silent = output_of_another_job(path, "100")
    silent.write_text("", encoding="utf-8")
    assert cli.main(["status", str(path), "--json"]) == 5
    reasons = [entry["reason"] for entry in json.loads(capsys.readouterr().out)["failures"]]
    assert sum(reason == "sacct: FAILED" for reason in reasons) == 1
    assert sum("condition could not be applied (exit code 4): " in r for r in reasons) == 7
    assert sum(reason.endswith(f": {line}") for reason in reasons) >= 5
    assert any(reason.endswith(f": {silent} may say why") for reason in reasons)
    cli.main(["submit", str(path)])
    assert "nothing to add" in capsys.readouterr().out


def test_a_dry_run_without_a_cluster_shows_the_options(
    write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(["submit", str(write_study(text=TEXT)), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.count("#SBATCH --netem=delay=50ms,loss=1%\n") == 4


def test_here_a_dry_run_shows_what_would_be_done(write_study: Write, capsys: Capture) -> None:
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path), "--scheduler", "local", "--dry-run"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if " sample " in line]
    assert len(lines) == 8
    assert sum(" cache --cold --no-policy && " in line for line in lines) == 4
    assert sum("--watch=$$ -- delay=50ms,loss=1% && env " in line for line in lines) == 4


def test_here_a_condition_that_fails_is_a_failed_run_with_its_reason(
    write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    """A device that is not there: found out only when the condition is applied."""
    monkeypatch.setattr(netem, "check_on_this_machine", lambda _: None)
    monkeypatch.setenv("STEELYARD_RUN_DIR", str(write_study(text=TEXT).parent / "run"))
    path = write_study(
        ('["delay=0ms", "delay=50ms,loss=1%"]', '["rate=1mbit,dev=sy-nowhere"]'),
        ('"warm", "cold"', '"warm"'), ("repeat = 2\nblocks = 2", "repeat = 1"),
        text=TEXT,
    )  # fmt: skip
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 5
    (file,) = folder_of(path).path.glob("runs/*/*/result.json")
    result = json.loads(file.read_text())
    assert result["state"] == "failed"
    assert result["reason"].startswith("its condition could not be applied: ")
    assert not (file.parent / "job.out").exists(), "nothing was run"
