"""Submitting when something is wrong: nothing comes twice, nothing is lost, one line says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.wrappers import cli, slurm_command, studydir, submit_ledger
from steelyard.wrappers.studydir import StudyDir

USE = '[[benchmark]]\nuse = "filesystem"\n'
Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def submitted(path: Path, *options: str) -> int:
    return cli.main(["submit", str(path), *options])


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.folder_of(path).absolute())


def test_a_lost_controller_is_tried_again_and_said(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    slurm.fail(
        "sbatch",
        "Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "Batch job submission failed: Socket timed out on send/recv operation",
    )
    path = write_study()
    assert submitted(path) == 0
    assert len(slurm.jobs) == 4
    err = capsys.readouterr().err
    assert err.count("trying again") == 2
    assert "Unable to contact slurm controller" in err


def test_an_answer_lost_after_acceptance_makes_no_second_job(
    slurm: Any, write_study: Write
) -> None:
    slurm.fail("sbatch", "accepted: Batch job submission failed: Socket timed out on send/recv")
    path = write_study()
    assert submitted(path) == 0
    assert len(slurm.jobs) == 4
    assert [e.job_id for e in submit_ledger.read(folder_of(path))] == list(slurm.jobs)


def test_a_controller_that_stays_lost_ends_it_and_nothing_is_lost(
    slurm: Any, write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(slurm_command, "RETRY_LIMIT_S", 0.05)
    path = write_study()
    submitted(path, "--dry-run")
    slurm.fail("sbatch", *["Unable to contact slurm controller"] * 1000)
    assert submitted(path) == 3
    assert "given up after 0 s. What was submitted is recorded" in capsys.readouterr().err
    slurm.fail("sbatch")
    assert submitted(path) == 0
    assert len(slurm.jobs) == 4


@pytest.mark.parametrize("where", ["queue", "accounting"])
def test_a_crash_between_acceptance_and_record_is_found(
    where: str, slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    ledger = folder_of(path).submissions
    *lines, last = ledger.read_text().splitlines(keepends=True)
    ledger.write_text("".join(lines) + last[: len(last) // 2])  # cut short, as by a power cut
    if where == "accounting":
        slurm.set_tasks("103", "RUNNING")
        jobs = slurm.jobs
        jobs["103"]["tasks"] = ["COMPLETED"] * 4
        slurm.change(jobs=jobs)
    assert submitted(path) == 0
    assert "had been accepted as job 103" in capsys.readouterr().err
    entries = submit_ledger.read(folder_of(path))
    assert [entry.job_id for entry in entries[:4]] == ["100", "101", "102", "103"]
    if where == "queue":
        assert len(slurm.jobs) == 4


def test_a_crash_before_acceptance_leaves_nothing_behind(slurm: Any, write_study: Write) -> None:
    slurm.fail("sbatch", "Batch job submission failed: Invalid account")
    path = write_study()
    assert submitted(path) == 3
    assert submit_ledger.read(folder_of(path)) == []
    assert len(submit_ledger.orphans(folder_of(path), [])) == 1
    assert submitted(path) == 0
    entries = submit_ledger.read(folder_of(path))
    assert len(entries) == len(slurm.jobs) == 4
    assert submit_ledger.orphans(folder_of(path), entries) == []


def test_a_full_queue_says_what_to_do(slurm: Any, write_study: Write, capsys: Capture) -> None:
    slurm.fail(
        "sbatch",
        "Batch job submission failed: Job violates accounting/QOS policy (job submit limit)",
    )
    assert submitted(write_study()) == 3
    assert "submit again when some have ended" in capsys.readouterr().err


def test_two_submits_at_once_are_refused(slurm: Any, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    with submit_ledger.locked(folder_of(path)):
        assert submitted(path) == 2
    assert "another submit is at work" in capsys.readouterr().err
    assert submitted(path) == 0


def test_without_slurm_it_says_what_to_do(
    write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert submitted(write_study()) == 3
    err = capsys.readouterr().err
    assert "`steelyard submit --scheduler local`" in err
    assert "`steelyard cluster up`" in err


def test_without_an_answering_cluster_it_says_what_to_do(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    slurm.fail("scontrol", "Could not establish a configuration source")
    assert submitted(write_study()) == 3
    assert "no Slurm cluster answers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "words"),
    [("pbs", "PBS is still to come"), ("sge", "allowed is slurm or local")],
)
def test_other_schedulers_get_one_clear_line(
    name: str, words: str, write_study: Write, capsys: Capture
) -> None:
    assert submitted(write_study(), "--scheduler", name) == 2
    assert words in capsys.readouterr().err


def test_missing_programs_are_a_warning_on_a_cluster(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study(text='[[benchmark]]\nuse = "hpl"\np = 2\n')
    assert submitted(path) == 0  # PATH of the test has them or not: nodes decide
    path = write_study(text='[[benchmark]]\nuse = "hpl"\nxhpl = "/opt/xhpl"\n')
    assert "hpcc" not in capsys.readouterr().err


def test_constraints_that_cannot_be_joined_are_said_before_anything_is_written(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    text = '[job]\nconstraint = "a|b"\n[factors]\nnode_type = ["c"]\n' + USE
    path = write_study(text=text)
    assert submitted(path) == 2
    assert "cannot be joined by '&'" in capsys.readouterr().err
    assert not folder_of(path).plan.exists()
