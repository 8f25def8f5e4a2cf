"""Submitting when something is wrong: nothing is duplicated or lost; one line reports it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import sacct
from steelyard.wrappers.commands import cli
from steelyard.wrappers.netem import kernel_support
from steelyard.wrappers.schedulers import ledger as submit_ledger
from steelyard.wrappers.schedulers import registry, retries
from steelyard.wrappers.schedulers.base import Batch
from steelyard.wrappers.schedulers.slurm import Slurm
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan
from steelyard.wrappers.study import study as study_file
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.job_settings import Job
from steelyard.wrappers.submit import batches
from steelyard.wrappers.submit.status import read_progress

USE = '[[benchmark]]\nuse = "filesystem"\n'
Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def submitted(path: Path, *options: str) -> int:
    return cli.main(["submit", str(path), *options])


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.derive_folder(path).absolute())


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
    assert [e.job_id for e in submit_ledger.read_submissions(folder_of(path))] == list(slurm.jobs)


def test_a_controller_that_stays_lost_ends_it_and_nothing_is_lost(
    slurm: Any, write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    monkeypatch.setattr(retries, "PATIENCE_S", 0.05)
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
    entries = submit_ledger.read_submissions(folder_of(path))
    assert [entry.job_id for entry in entries[:4]] == ["100", "101", "102", "103"]
    if where == "queue":
        assert len(slurm.jobs) == 4


def test_cancel_and_status_know_what_was_accepted_and_not_recorded(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    """Ctrl-C, or a kill, between sbatch's answer and its record: the array still runs."""
    path = write_study()
    submitted(path)
    folder = folder_of(path)
    *lines, _ = folder.submissions.read_text().splitlines(keepends=True)
    folder.submissions.write_text("".join(lines))
    slurm.set_tasks("103", "RUNNING")
    progress = read_progress(folder.path)
    assert progress.failures == []
    assert progress.planned == 0
    capsys.readouterr()
    assert cli.main(["cancel", str(folder.path)]) == 0
    assert "had been accepted as job 103" in capsys.readouterr().err
    assert not {"PENDING", "RUNNING"} & {
        task for job in slurm.jobs.values() for task in job["tasks"]
    }


def test_the_first_submission_is_cancelled_though_nothing_is_recorded(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    folder = folder_of(path)
    folder.submissions.unlink()
    slurm.set_tasks("100", "RUNNING")
    assert cli.main(["cancel", str(folder.path)]) == 0
    assert "had been accepted as job 100" in capsys.readouterr().err
    assert not {"PENDING", "RUNNING"} & {
        task for job in slurm.jobs.values() for task in job["tasks"]
    }


def test_a_submission_is_as_old_as_its_request(
    slurm: Any, write_study: Write, monkeypatch: Patch
) -> None:
    """sbatch may answer minutes after slurmctld took the job: the job is not older than its submission."""
    clock = [1_700_000_000.0]
    accepted: list[float] = []
    real = Slurm.submit

    def submit(self: Slurm, batch: Batch, script: Path) -> str:
        accepted.append(clock[0])
        clock[0] += 95
        return real(self, batch, script)

    monkeypatch.setattr(Slurm, "submit", submit)
    monkeypatch.setattr("steelyard.wrappers.submit.batch_submission.time.time", lambda: clock[0])
    path = write_study()
    assert submitted(path) == 0
    entries = submit_ledger.read_submissions(folder_of(path))
    assert [entry.submitted_unix_s for entry in entries] == accepted


def test_a_recovered_submission_is_as_old_as_its_list_of_runs(
    slurm: Any, write_study: Write
) -> None:
    path = write_study()
    submitted(path)
    folder = folder_of(path)
    *lines, _ = folder.submissions.read_text().splitlines(keepends=True)
    lost = submit_ledger.read_submissions(folder)[-1]
    folder.submissions.write_text("".join(lines))
    asked_unix_s = time.time() - 3600
    os.utime(folder.run_list(lost.submission_id), (asked_unix_s, asked_unix_s))
    assert submitted(path) == 0
    (found,) = [
        e for e in submit_ledger.read_submissions(folder) if e.submission_id == lost.submission_id
    ]
    assert found.submitted_unix_s == pytest.approx(asked_unix_s, abs=0.001)


def test_a_crash_before_acceptance_leaves_nothing_behind(slurm: Any, write_study: Write) -> None:
    slurm.fail("sbatch", "Batch job submission failed: Invalid account")
    path = write_study()
    assert submitted(path) == 3
    assert submit_ledger.read_submissions(folder_of(path)) == []
    assert len(submit_ledger.find_orphans(folder_of(path), [])) == 1
    assert submitted(path) == 0
    entries = submit_ledger.read_submissions(folder_of(path))
    assert len(entries) == len(slurm.jobs) == 4
    assert submit_ledger.find_orphans(folder_of(path), entries) == []


def test_a_full_queue_says_what_to_do(slurm: Any, write_study: Write, capsys: Capture) -> None:
    slurm.fail(
        "sbatch",
        "Batch job submission failed: Job violates accounting/QOS policy (job submit limit)",
    )
    assert submitted(write_study()) == 3
    assert "submit again when some have ended" in capsys.readouterr().err


def test_a_job_that_requests_too_much_is_not_to_be_submitted_again(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    said = "Requested time limit is invalid (missing or exceeds some limit)"
    slurm.fail("sbatch", said)
    assert submitted(write_study()) == 3
    assert f"{said}\n" in capsys.readouterr().err


def test_a_full_disk_is_named_by_the_file() -> None:
    fd = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(OSError, match="No space left") as caught:
        submit_ledger.write_all(fd, b"x")
    os.close(fd)
    assert caught.value.filename == "/dev/full"


def test_two_submits_at_once_are_refused(slurm: Any, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    with studydir.lock_study(folder_of(path)):
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


@pytest.mark.parametrize("name", ["torque", "sge"])
def test_other_schedulers_get_one_clear_line(
    name: str, write_study: Write, capsys: Capture
) -> None:
    assert submitted(write_study(), "--scheduler", name) == 2
    said = f"steelyard submit: --scheduler {name}: allowed is slurm or pbs or local\n"
    assert capsys.readouterr().err == said


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


VARIABLES = {
    "SQUEUE_STATES": "RUNNING", "SQUEUE_PARTITION": "other", "SACCT_FORMAT": "jobid",
    "SCANCEL_STATE": "RUNNING", "SINFO_FORMAT": "x", "SLURM_TIME_FORMAT": "relative",
    "SLURM_BITSTR_LEN": "1", "SBATCH_ARRAY_INX": "0", "TZ": "Asia/Tokyo", "LC_ALL": "C",
}  # fmt: skip


def test_a_users_variables_change_no_answer(
    slurm: Any, write_study: Write, monkeypatch: Patch
) -> None:
    """With SQUEUE_STATES=RUNNING squeue is silent about runs that wait: they are not lost."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SLURM_CONF", "/mine/slurm.conf")
    path = write_study()
    assert submitted(path) == 0
    jobs = len(slurm.jobs)
    assert submitted(path) == 0
    assert len(slurm.jobs) == jobs
    assert {task for job in slurm.jobs.values() for task in job["tasks"]} == {"PENDING"}


def test_times_are_asked_for_in_the_zone_that_slurm_answers_in(monkeypatch: Patch) -> None:
    """In local time two moments of an autumn night have one name."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    assert slurm_task_states.start_option(1_792_893_900) == "--starttime=2026-10-25T02:00:00"
    monkeypatch.undo()
    time.tzset()


def test_a_level_outside_ascii_can_be_submitted_again() -> None:
    """The plugin takes printable ASCII: alone in its batch, the level is a tag."""
    levels = ["/tmp/größe", "/tmp/50% ö", "x" * 300, "/tmp/50%"]
    text = f"[factors]\ndirectory = {levels!r}\n[baseline]\ndirectory = {levels[3]!r}\n{USE}"
    for level in levels:
        study = study_file.parse_study(text.encode(), Path("s.toml"))
        runs = [run for run in plan.make_plan(study) if run.condition["directory"] == level]
        system = registry.make_scheduler("slurm", Path("/s.study"))
        batch = batches.make_batch(study, StudyDir(system.study_dir), runs[:1], 0, system)
        tags = dict(batch.tags)
        assert (
            tags["directory"]
            == {
                levels[0]: "/tmp/gr%C3%B6%C3%9Fe",
                levels[1]: "/tmp/50%25 %C3%B6",
                levels[2]: "x" * 256,
                levels[3]: "/tmp/50%",
            }[level]
        )


def test_a_tag_outside_ascii_is_refused_in_one_line(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    slurm.with_plugin()
    path = write_study(text='[job.tags]\nwho = "Jürgen"\n' + USE)
    assert submitted(path) == 2
    assert "job.tags.who" in (said := capsys.readouterr().err)
    assert "all of them ASCII" in said and len(said.splitlines()) == 1
    assert not folder_of(path).path.exists()


@pytest.mark.parametrize(
    ("name", "scheduler", "word"),
    [("a\\b", "slurm", r"'\\\\'"), ("a\nb", "slurm", r"'\\n'"), ("a\nb", "local", r"'\\n'")],
)
def test_a_folder_in_which_jobs_would_fail_is_refused(
    slurm: Any,
    write_study: Write,
    tmp_path: Path,
    capsys: Capture,
    name: str,
    scheduler: str,
    word: str,
) -> None:
    target = tmp_path / name
    assert submitted(write_study(), "--dir", str(target), "--scheduler", scheduler) == 2
    said = capsys.readouterr().err
    assert re.search(word, said) and "choose another one, with --dir" in said
    assert len(said.splitlines()) == 1
    assert not target.exists()


NETWORKS = '[factors]\nnetwork = ["none", "delay=50ms"]\n[baseline]\nnetwork = "none"\n' + USE
MIXED = {"n1": "physical", "v1": "virtual,fast", "v2": "virtual"}
LINE = (
    'n1 as well as onto the virtual v1, v2: [job] constraint = "virtual" keeps them on the latter'
)


@pytest.mark.parametrize(
    ("nodes", "job", "there", "says"),
    [
        (MIXED, "", False, LINE),
        (MIXED, '[job]\nconstraint = "virtual"\n', False, None),
        (MIXED, "", True, None),
        ({"v1": "virtual"}, "", False, None),
        ({"n1": "(null)"}, "", False, "and maybe on some of the nodes, this kernel has no sch_netem"),
    ],
)  # fmt: skip
def test_conditions_that_only_some_nodes_can_have_are_told_before_they_fail(
    slurm: Any, write_study: Write, monkeypatch: Patch, capsys: Capture,
    nodes: dict[str, str], job: str, there: bool, says: str | None,
) -> None:  # fmt: skip
    slurm.with_plugin()
    slurm.change(features=nodes)
    found = kernel_support.Support(there, "this kernel has no sch_netem: modprobe it")
    monkeypatch.setattr(kernel_support, "try_module", lambda _: found)
    assert submitted(write_study(text=job + NETWORKS)) == 0
    said = capsys.readouterr().err
    assert ("warning: network conditions" in said) == (says is not None)
    assert says is None or says in said


@pytest.mark.parametrize(
    ("said", "is_lost"), [("Connection refused", True), ("accounting storage is disabled", False)]
)
def test_a_job_that_the_accounting_may_know_is_not_handed_in_again(
    slurm: Any, tmp_path: Path, monkeypatch: Patch, said: str, is_lost: bool
) -> None:
    """A slurmdbd that does not answer now may know of it; a cluster without accounting never will."""
    monkeypatch.setattr(sacct.Sacct, "try_once", lambda *_: said)
    batch = Batch("b001-x", "s", tmp_path, 1, 1, (), (), ("a",), Job())
    if is_lost:
        with pytest.raises(retries.LostError, match=said):
            Slurm(tmp_path).find_submission(batch, 0.0)
    else:
        assert Slurm(tmp_path).find_submission(batch, 0.0) is None
