"""The factors network and cache: checked by steelyard-node, asked of Slurm, held on this machine."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import kernel as netem_kernel
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.netem.kernel import Found
from steelyard.wrappers.schedulers import ledger as submit_ledger
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan, study
from steelyard.wrappers.study.folder import StudyDir

Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch

TEXT = """\
[study]
name = "wan"
repeat = 2
blocks = 2
[factors]
network = ["delay=0ms", "delay=50ms,loss=1%"]
cache = ["warm", "cold"]
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 4
iterations = 1
"""
PLUGIN_HELP = """\
Usage: sbatch [OPTIONS(0)...] executable [args(0)...]
      --tag=KEY=VALUE         [steelyard] a tag
      --netem=SPEC            [steelyard] network conditions
                              of the job
      --cache=cold|warm       [steelyard] caches
"""
MODEST_HELP = "  -t, --time=minutes\n      --tag=KEY=VALUE   [steelyard] a tag, not --netem\n"


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.folder_of(path).absolute())


def factors(line: str) -> bytes:
    return f'[factors]\n{line}\n[[benchmark]]\nuse = "filesystem"\n'.encode()


@pytest.mark.parametrize(
    ("line", "begin", "part"),
    [
        ('network = ["none", "delay=-5ms"]', 'factors.network: "delay=-5ms": ', "delay"),
        ('network = ["delay=1ms; reboot"]', 'factors.network: "delay=1ms; reboot": ', "delay"),
        ('network = ["dealy=1ms"]', 'factors.network: "dealy=1ms": ', "dealy"),
        ('network = ["a\\u0000b"]', 'factors.network: "a?b": ', ""),
        ('network = ["--help"]', 'factors.network: "--help": ', ""),
        ("network = [50]", "factors.network = 50: allowed is a specification such as", "none"),
        (
            'network = ["delay=50ms", "delay=0.05s"]',
            'factors.network: "delay=0.05s" asks for the same as "delay=50ms": ',
            "a level is named once",
        ),
        (
            'network = ["delay=1ms", "delay=1ms,direction=egress"]',
            'factors.network: "delay=1ms,direction=egress" asks for the same as "delay=1ms": ',
            "a level is named once",
        ),
        ('cache = ["direct"]', 'factors.cache: "direct": going around the cache', "direct = true"),
        (
            'cache = ["hot"]',
            'factors.cache = "hot": allowed is "cold", "warm", or "cold:cvmfs=300"',
            "",
        ),
        ("cache = [1]", 'factors.cache = 1: allowed is "cold", "warm", or "cold:cvmfs=300"', ""),
    ],
)
def test_a_level_that_cannot_be_is_one_line_that_names_it(line: str, begin: str, part: str) -> None:
    with pytest.raises(UsageError) as caught:
        study.parse(factors(line), Path("s.toml"))
    text = str(caught.value)
    assert text.startswith(f"s.toml: {begin}")
    assert part in text
    assert "\n" not in text


def test_levels_stay_as_they_were_written() -> None:
    levels = 'network = ["none", "loss=1%,delay=50.0ms", "trace=wan:repeat,to=10.1.0.0/16"]'
    found = study.parse(factors(levels), Path("s.toml"))
    assert found.factors["network"] == (
        "none", "loss=1%,delay=50.0ms", "trace=wan:repeat,to=10.1.0.0/16",
    )  # fmt: skip
    assert found.baseline == {"network": "none"}


def test_a_study_without_network_conditions_needs_no_program(monkeypatch: Patch) -> None:
    monkeypatch.setenv("STEELYARD_NODE", "/nowhere/steelyard-node")
    text = factors('network = ["none"]\ncache = ["warm", "cold"]')
    assert study.parse(text, Path("s.toml")).factors["cache"] == ("warm", "cold")


def test_conditions_become_options_and_submissions_of_their_own(
    slurm: Any, write_study: Write
) -> None:
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path)]) == 0
    entries = submit_ledger.read(folder_of(path))
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


def test_none_is_no_option(slurm: Any, write_study: Write) -> None:
    path = write_study(('["delay=0ms", "delay=50ms,loss=1%"]', '["none"]'), text=TEXT)
    (slurm.folder / "sbatch.help").write_text(PLUGIN_HELP)
    assert cli.main(["submit", str(path)]) == 0
    assert not any("--netem" in job["script"] for job in slurm.jobs.values())


def test_a_cluster_whose_plugin_cannot_is_told_before_anything_is_submitted(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study(text=TEXT)
    (slurm.folder / "sbatch.help").write_text(MODEST_HELP)
    assert cli.main(["submit", str(path)]) == 4
    assert "sbatch of this cluster has no option --netem of ours" in capsys.readouterr().err
    assert slurm.jobs == {}
    assert not folder_of(path).plan.exists()


def test_warm_caches_need_no_plugin(slurm: Any, write_study: Write) -> None:
    path = write_study(
        ('network = ["delay=0ms", "delay=50ms,loss=1%"]\n', ""), ('"warm", "cold"', '"warm"'),
        text=TEXT,
    )  # fmt: skip
    assert cli.main(["submit", str(path)]) == 0
    assert not any("--cache" in job["script"] for job in slurm.jobs.values())


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


def test_here_an_ordinary_user_is_refused_before_any_run(
    write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 4
    err = capsys.readouterr().err
    assert re.search(r"--netem=delay=\S+ --cache=cold: needs root on this machine", err)
    assert "sbatch --netem=" in err
    assert not folder_of(path).plan.exists()


def test_here_a_kernel_that_cannot_is_told_before_any_run(
    write_study: Write, capsys: Capture, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(netem_kernel, "can", lambda module: Found(False, f"no {module}"))
    path = write_study(text=TEXT)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 4
    assert re.search(r"--netem=delay=\S+: no sch_netem\n", capsys.readouterr().err)
    assert not folder_of(path).plan.exists()


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
    monkeypatch.setattr(netem, "check_here", lambda _: None)
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
