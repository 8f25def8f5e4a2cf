"""Slurm's own imitation of Torque's commands (slurm-wlm-torque): what of ours works behind it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, until

from steelyard.jobscripts import registry, runscript

pytestmark = [
    pytest.mark.skipif(
        not Path("/usr/bin/generate_pbs_nodefile").exists(),
        reason="qsub of Slurm is missing: apt-get install slurm-wlm-torque",
    ),
]
JOB = """\
#!/bin/bash
#PBS -N odd.name
#PBS -l nodes=1:ppn=1,walltime=00:07:00
{lines}
: >running.$SLURM_JOB_ID
{body}
"""


def qsub(lab: Lab, body: str, *options: str, lines: str = "") -> str:
    """Submit a job script with #PBS lines; the job's id."""
    script = lab.work / "job.sh"
    script.write_text(JOB.format(lines=lines, body=body), encoding="utf-8")
    done = lab.run("qsub", *options, str(script))
    assert done.returncode == 0, done.stderr
    lab.jobs.append(done.stdout.split(".")[0].strip())
    return lab.jobs[-1]


def test_a_job_of_qsub_is_one_of_slurm_and_is_measured(lab: Lab) -> None:
    job_id = qsub(lab, "sleep 0.5", lines="#SBATCH --tag=by=qsub")
    found = lab.job(job_id)
    assert (found["JobName"], found["TimeLimit"]) == ("odd.name", "00:07:00")
    lab.wait_state(job_id, "COMPLETED")
    (record,) = lab.records(job_id, 1)
    assert (record["job"]["scheduler"], record["job"]["job_id"]) == ("slurm", job_id)
    assert record["tags"] == {"by": "qsub"}


def test_qstat_shows_it_and_qdel_ends_it_with_its_record(lab: Lab) -> None:
    job_id = qsub(lab, "sleep 600")
    lab.wait_running(job_id)
    done = lab.run("qstat", job_id)
    assert job_id in done.stdout
    assert lab.run("qdel", job_id).returncode == 0
    lab.wait_state(job_id, "CANCELLED")
    assert lab.records(job_id, 1)[0]["complete"]


def test_a_run_in_such_a_job_is_slurms(lab: Lab) -> None:
    study = lab.work / "study"
    run = study / "runs" / "r1"
    run.mkdir(parents=True)
    (study / "lib").mkdir()
    (study / "lib/steelyard.sh").write_text(registry.library(), encoding="utf-8")
    benchmark = registry.load("filesystem")
    text = runscript.render(
        benchmark, {"test": "small_file_write", "write_files": 5}, study_dir=study, run_id="r1"
    )
    (run / "run.sh").write_text(text, encoding="utf-8")
    job_id = qsub(lab, f"exec env STEELYARD_FSTEST={shutil.which('true')} bash {run}/run.sh")
    result = run / f"{job_id}.0" / "result.json"
    until(result.exists, "the run has a result")
    assert '"scheduler":"slurm"' in result.read_text()
    lab.wait_state(job_id, "COMPLETED", "FAILED")


def test_the_doors_of_torque_lead_nowhere_there(lab: Lab) -> None:
    """Slurm's qsub drops unknown options: the condition must be requested from Slurm."""
    asked = "other=steelyard:tag=a%3Db"
    job_id = qsub(lab, "true", "-l", asked, lines="#STEELYARD --tag=c=d")
    lab.wait_state(job_id, "COMPLETED")
    assert lab.records(job_id, 1, complete=False)[0]["tags"] == {}


def test_a_study_by_pbs_is_refused_and_told_why(lab: Lab) -> None:
    text = '[study]\nname = "t"\nrepeat = 1\n[[benchmark]]\nuse = "filesystem"\n'
    (lab.work / "t.toml").write_text(text, encoding="utf-8")
    cli = ("-m", "steelyard.wrappers.commands.cli")
    done = lab.run(sys.executable, *cli, "submit", "t.toml", "--scheduler", "pbs")
    assert (done.returncode, done.stdout) == (3, "")
    said = "qsub is Slurm's imitation of Torque's qsub: its jobs are Slurm's"
    assert said in done.stderr
    assert not (lab.work / "t.study" / "submissions.jsonl").exists()
