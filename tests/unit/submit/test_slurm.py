"""Submitting to a Slurm of paper: exact scripts, no run twice, nothing lost in a crash."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.jobscripts import registry
from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.submit import run_state, status

GOLDEN = Path(__file__).parent / "golden"
Write = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def run_ids_of(folder: Path) -> list[str]:
    return [
        run_id for entry in ledger.read_submissions(StudyDir(folder)) for run_id in entry.run_ids
    ]


def submitted(path: Path, *options: str) -> int:
    return cli.main(["submit", str(path), *options])


def folder_of(path: Path) -> StudyDir:
    return StudyDir(studydir.derive_folder(path).absolute())


def test_one_array_per_block_and_set_of_options(slurm: Any, write_study: Write) -> None:
    path = write_study()
    assert submitted(path) == 0
    entries = ledger.read_submissions(folder_of(path))
    assert [(entry.block, len(entry.run_ids)) for entry in entries] == [(1, 4)] * 2 + [(2, 4)] * 2
    handed_in = [words for words in slurm.calls("sbatch") if "--parsable" in words]
    assert len(handed_in) == 4
    for entry in entries:
        runs = {run.run_id: run for run in plan.read_runs(folder_of(path).plan)}
        assert len({runs[run_id].clients for run_id in entry.run_ids}) == 1
        assert [runs[r].position for r in entry.run_ids] == sorted(
            runs[r].position for r in entry.run_ids
        )
        job = slurm.jobs[entry.job_id]
        assert f"#SBATCH --nodes={runs[entry.run_ids[0]].clients}\n" in job["script"]
        assert job["script"] == folder_of(path).script(entry.submission_id).read_text()


def test_every_planned_run_is_submitted_once(slurm: Any, write_study: Write) -> None:
    path = write_study()
    submitted(path)
    ids = run_ids_of(folder_of(path).path)
    assert sorted(ids) == sorted(run.run_id for run in plan.read_runs(folder_of(path).plan))


@pytest.mark.parametrize("case", ["plain", "everything"])
def test_the_script_is_the_golden_one(
    case: str, slurm: Any, write_study: Write, monkeypatch: Patch, capsys: Capture
) -> None:
    """To renew: STEELYARD_RENEW_GOLDEN=1 pytest …, and read the difference."""
    path = write_study() if case == "plain" else write_study(text=EVERYTHING)
    if case == "everything":
        slurm.with_plugin()
    assert submitted(path, "--dry-run") == 0
    text = capsys.readouterr().out.replace(str(path.parent), "/home/me")
    text = re.sub(r"b(\d{3})-[0-9a-f]{8}", r"b\1-XXXXXXXX", text)
    golden = GOLDEN / f"{case}.txt"
    if os.environ.get("STEELYARD_RENEW_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


EVERYTHING = """\
[study]
name = "everything"
repeat = 2
blocks = 2
[job]
time_limit = "1-00:10:00"
partition = "main"
account = "physics"
qos = "low"
at_once = 2
tasks_per_node = 2
options = ["--mem=1G", "--comment-free"]
constraint = "big"
tags = { who = "me & 'you'" }
[factors]
node_type = ["physical", "virtual"]
[place.virtual]
slurm = "--constraint=vm --nice=5 --licenses=nodes:{nodes}"
[[benchmark]]
use = "filesystem"
"""


def test_a_dry_run_writes_and_submits_nothing(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    assert submitted(path, "--dry-run", "--json") == 0
    done = json.loads(capsys.readouterr().out)
    assert done["submitted"] == 16
    assert len(done["scripts"]) == 4
    assert not folder_of(path).path.exists()
    assert slurm.jobs == {}


def test_a_dry_run_says_that_nothing_is_missing(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    capsys.readouterr()
    assert submitted(path, "--dry-run") == 0
    assert capsys.readouterr().out.startswith("nothing to add: all 16 runs are done, waiting")


def test_a_dry_run_is_what_is_submitted(slurm: Any, write_study: Write, capsys: Capture) -> None:
    path = write_study()
    submitted(path, "--dry-run", "--json")
    scripts = json.loads(capsys.readouterr().out)["scripts"]
    submitted(path)
    assert scripts == {
        entry.submission_id: folder_of(path).script(entry.submission_id).read_text()
        for entry in ledger.read_submissions(folder_of(path))
    }


def test_a_job_gets_named_variables_only(
    slurm: Any, write_study: Write, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("WANTED", "y")
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    monkeypatch.setenv("SBATCH_TIMELIMIT", "1")
    monkeypatch.setenv("SBATCH_ACCOUNT", "mine")
    submitted(write_study(("[factors]", '[job]\nexport = ["WANTED"]\n[factors]')))
    variables = next(iter(slurm.jobs.values()))["variables"]
    assert variables["WANTED"] == "y"
    assert variables["SBATCH_ACCOUNT"] == "mine"
    assert {"SECRET", "SLURM_JOB_ID", "SBATCH_TIMELIMIT"}.isdisjoint(variables)


def test_submitting_again_adds_nothing_while_runs_wait_or_are_done(
    slurm: Any, write_study: Write, finish_run: Callable[..., None], capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    before = slurm.jobs.keys()
    assert submitted(path) == 0
    assert "nothing to add: all 16 runs" in capsys.readouterr().out
    slurm.end_jobs()
    for run in plan.read_runs(folder_of(path).plan):
        finish_run(folder_of(path).run(run.run_id), "1.0")
    submitted(path)
    assert slurm.jobs.keys() == before


def test_cancelled_runs_that_never_began_are_submitted_again(
    slurm: Any, write_study: Write
) -> None:
    path = write_study()
    submitted(path)
    first = ledger.read_submissions(folder_of(path))[0]
    slurm.set_tasks(first.job_id, "CANCELLED by 0")
    submitted(path)
    added = ledger.read_submissions(folder_of(path))[4:]
    assert [sorted(entry.run_ids) for entry in added] == [sorted(first.run_ids)]


def test_a_run_that_completed_while_its_job_was_cancelled_can_be_repeated(
    slurm: Any, write_study: Write, finish_run: Callable[..., None]
) -> None:
    """For collect it is cancelled, as the accounting has it: submit must not call it done."""
    path = write_study()
    submitted(path)
    first = ledger.read_submissions(folder_of(path))[0]
    slurm.set_tasks(first.job_id, "RUNNING")
    slurm.change(begun=[first.job_id])
    assert cli.main(["cancel", str(folder_of(path).path)]) == 0
    finish_run(folder_of(path).run(first.run_ids[0]), f"{first.job_id}000.0")
    progress = status.read_progress(folder_of(path).path)
    assert (progress.done, progress.cancelled) == (0, 16)
    submitted(path, "--retry-failed")
    again = [one for e in ledger.read_submissions(folder_of(path))[4:] for one in e.run_ids]
    assert first.run_ids[0] in again


def test_failed_runs_only_when_asked(
    slurm: Any, write_study: Write, finish_run: Callable[..., None]
) -> None:
    path = write_study()
    submitted(path)
    slurm.end_jobs()
    ids = run_ids_of(folder_of(path).path)
    for run_id in ids:
        state = "failed" if run_id == ids[3] else "completed"
        finish_run(folder_of(path).run(run_id), "1.0", state)
    submitted(path)
    assert len(slurm.jobs) == 4
    blocks = {run.run_id: run.block for run in plan.read_runs(folder_of(path).plan)}
    submitted(path, "--retry-failed")
    assert ledger.read_submissions(folder_of(path))[-1].run_ids == (ids[3],)
    found = {run.run_id: run.block for run in plan.read_runs(folder_of(path).plan)}
    assert found == blocks | {ids[3]: max(blocks.values()) + 1}  # it takes no turns with its block
    submitted(path, "--retry-failed")  # it waits now
    assert len(slurm.jobs) == 5


def test_a_grown_study_submits_what_was_added(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    old = plan.read_runs(folder_of(path).plan)
    write_study(("repeat = 4", "repeat = 6"), ("[1, 2]", "[1, 2, 3]"))
    submitted(path)
    assert "not interleaved" in capsys.readouterr().err
    runs = plan.read_runs(folder_of(path).plan)
    assert len(runs) == 36
    assert runs[:16] == old
    assert sorted(run_ids_of(folder_of(path).path)) == sorted(run.run_id for run in runs)


def test_changed_job_settings_reach_new_runs_only(slurm: Any, write_study: Write) -> None:
    path = write_study()
    submitted(path)
    write_study(("repeat = 4", "repeat = 5"), ("[factors]", '[job]\nqos = "low"\n[factors]'))
    submitted(path)
    scripts = [job["script"] for job in slurm.jobs.values()]
    assert ["--qos=low" in text for text in scripts] == [False] * 4 + [True] * 2


def test_a_new_version_continues_a_study_with_its_own_library(
    slurm: Any, write_study: Write, monkeypatch: Patch
) -> None:
    """A run that waits keeps the shell functions that its run.sh was made for."""
    path = write_study()
    assert submitted(path) == 0
    study = folder_of(path).path
    sourced = {run: library_of(run) for run in study.glob("runs/*/run.sh")}
    monkeypatch.setattr(registry, "library", lambda: "# of a newer Steelyard\n")
    assert submitted(write_study(("repeat = 4", "repeat = 5"))) == 0
    added = {library_of(run) for run in study.glob("runs/*/run.sh") if run not in sourced}
    assert [library.read_text() for library in added] == ["# of a newer Steelyard\n"]
    assert {run: library_of(run) for run in sourced} == sourced
    (before,) = set(sourced.values())
    assert "sy_main() {" in before.read_text()


def library_of(run: Path) -> Path:
    """Return what a run.sh sources."""
    (name,) = re.findall(
        r'^\. "\$SY_STUDY_DIR/lib/(.*)" \|\| exit 1$', run.read_text(), re.MULTILINE
    )
    return run.parents[2] / "lib" / name


def test_arrays_are_cut_at_max_array_size(slurm: Any, write_study: Write) -> None:
    slurm.change(max_array_size=3)
    path = write_study()
    assert submitted(path) == 0
    assert [len(e.run_ids) for e in ledger.read_submissions(folder_of(path))] == [3, 1] * 4


def test_at_once_holds_over_all_submissions(slurm: Any, write_study: Write) -> None:
    path = write_study(("[factors]", "[job]\nat_once = 1\n[factors]"))
    submitted(path)
    scripts = [job["script"] for job in slurm.jobs.values()]
    assert all("#SBATCH --array=0-3%1\n" in text for text in scripts)
    assert "--dependency" not in scripts[0]
    for job_id, text in zip(slurm.jobs, scripts[1:], strict=False):
        assert f"#SBATCH --dependency=afterany:{job_id}\n" in text


def test_more_runs_wait_for_those_that_are_there(slurm: Any, write_study: Write) -> None:
    path = write_study(("[factors]", "[job]\nat_once = 1\n[factors]"))
    submitted(path)
    write_study(("repeat = 4", "repeat = 5"), ("[factors]", "[job]\nat_once = 1\n[factors]"))
    submitted(path)
    texts = [job["script"] for job in slurm.jobs.values()]
    assert "afterany:103\n" in texts[4]


def test_the_cluster_name_is_recorded_and_a_federated_answer_understood(
    slurm: Any, write_study: Write
) -> None:
    slurm.change(cluster_in_answer=True)
    path = write_study()
    submitted(path)
    assert {(e.cluster, e.job_id) for e in ledger.read_submissions(folder_of(path))} == {
        ("fake", str(number)) for number in range(100, 104)
    }


def test_the_study_is_kept_to_the_byte(slurm: Any, write_study: Write) -> None:
    path = write_study()
    submitted(path)
    assert folder_of(path).toml.read_bytes() == path.read_bytes()


def test_dir_moves_the_folder(slurm: Any, write_study: Write, tmp_path: Path) -> None:
    path = write_study()
    submitted(path, "--dir", str(tmp_path / "elsewhere"))
    assert studydir.resolve_study(str(tmp_path / "elsewhere" / "small")).name == "small.study"
    (tmp_path / "elsewhere" / "small").mkdir()  # somebody's folder of that name hides nothing
    assert studydir.resolve_study(str(tmp_path / "elsewhere" / "small")).name == "small.study"
    submitted(path, "--dir", str(tmp_path / "other.study"))
    assert (tmp_path / "other.study" / "plan.json").is_file()


def test_right_after_cancel_runs_are_cancelled_and_not_lost(slurm: Any, write_study: Write) -> None:
    """Seen twice: "lost: the scheduler no longer knows the job", until the accounting had it."""
    path = write_study()
    assert cli.main(["submit", str(path)]) == 0
    slurm.change(accounting=False)
    assert cli.main(["cancel", str(path)]) == 0
    found = status.read_progress(folder_of(path).path)
    assert (found.cancelled, found.failed) == (16, 0)
    assert {one.reason for one in found.failures} == {run_state.CANCELLED_BY_US}
    slurm.change(accounting=True)
    assert cli.main(["submit", str(path)]) == 0  # once more: nobody has cancelled these
    slurm.end_jobs()
    slurm.change(accounting=False)
    found = status.read_progress(folder_of(path).path)
    assert (found.cancelled, found.failed) == (0, 16)


def test_cancel_stops_what_waits_and_submit_takes_it_up(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    assert cli.main(["cancel", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("16 runs cancelled.")
    assert status.read_progress(folder_of(path).path).cancelled == 16
    assert cli.main(["cancel", str(path)]) == 0
    assert capsys.readouterr().out == "nothing to cancel: no run waits or runs\n"
    submitted(path)
    assert status.read_progress(folder_of(path).path).waiting == 16


def test_the_folders_own_study_file_leads_to_the_folder_also_where_it_was_moved(
    slurm: Any, write_study: Write, tmp_path: Path, capsys: Capture
) -> None:
    path = write_study()
    submitted(path)
    slurm.end_jobs("CANCELLED")
    moved = folder_of(path).path.rename(tmp_path / "moved.study")
    submitted(moved / "study.toml")
    assert "16 of 16 runs submitted" in capsys.readouterr().out
    assert not list(moved.glob("*.study"))
    run = next(moved.glob("runs/*/run.sh")).read_text(encoding="utf-8")
    assert str(moved) in run and str(folder_of(path).path) not in run


SCALED = """\
[study]
name = "scaled"
repeat = 2
blocks = 1
scaling = "strong"
[job]
cpus_per_task = 2
[factors]
nodes = [1, 2]
tasks_per_node = [1, 4]
[[benchmark]]
use = "npb"
kernel = "ep"
"""


def test_each_size_of_a_job_is_an_array_of_its_own(slurm: Any, write_study: Write) -> None:
    path = write_study(text=SCALED)
    assert submitted(path) == 0
    sizes = set()
    for entry in ledger.read_submissions(folder_of(path)):
        lines = slurm.jobs[entry.job_id]["script"].splitlines()
        names = ("nodes", "ntasks-per-node", "cpus-per-task")
        found = {n: line for line in lines for n in names if line.startswith(f"#SBATCH --{n}=")}
        nodes, tasks, cpus = (int(found[name].partition("=")[2]) for name in names)
        assert cpus == 2
        sizes.add((nodes, tasks))
        assert len(entry.run_ids) == 2
        for run_id in entry.run_ids:
            script = (folder_of(path).run(run_id) / "run.sh").read_text()
            assert f"export SY_PARAM_RANKS={nodes * tasks}\n" in script
            assert "export OMP_NUM_THREADS=2\n" in script
    assert sizes == {(1, 1), (1, 4), (2, 1), (2, 4)}


def test_own_threads_are_the_studys(slurm: Any, write_study: Write) -> None:
    own = SCALED.replace("[factors]", 'export = ["OMP_NUM_THREADS"]\n[factors]')
    path = write_study(text=own)
    submitted(path)
    for run_id in run_ids_of(folder_of(path).path):
        assert "OMP_NUM_THREADS" not in (folder_of(path).run(run_id) / "run.sh").read_text()


def test_processors_of_a_task_have_a_key_of_their_own(
    slurm: Any, write_study: Write, capsys: Capture
) -> None:
    for option in ("--cpus-per-task=2", "-c2"):
        path = write_study(("[factors]", f'[job]\noptions = ["{option}"]\n[factors]'))
        assert submitted(path) == 2
        assert "use [job] cpus_per_task instead" in capsys.readouterr().err


def test_one_machine_has_no_levels_of_nodes(write_study: Write, capsys: Capture) -> None:
    path = write_study(text=SCALED)
    assert submitted(path, "--scheduler", "local", "--dry-run") == 2
    assert capsys.readouterr().err == (
        f"steelyard submit: {path}: factors.nodes: 2: without a scheduler each run has this one "
        "machine: submit to Slurm or PBS, or make tasks_per_node or cpus_per_task the factor\n"
    )
