"""The script for sbatch: one array, whose tasks each execute the run of their index."""

from __future__ import annotations

import functools
import re
import shlex

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.schedulers.base import Batch
from steelyard.wrappers.study.job_settings import Job

CONSTRAINT = "--constraint="
PLAIN_CONSTRAINT = re.compile(r"[A-Za-z0-9_.&-]+")

# The raw job id and the restart count name the attempt (docs/formats.md part 6). Output before the
# run has its folder goes to --output, later output to the run's job.out.
BODY = """\

# Each task of the array executes one run; line SLURM_ARRAY_TASK_ID + 1 of the list names it.
set -u
study={study}
mapfile -t runs <"$study/submissions/{submission_id}.runs" || exit 1
run=${{runs[SLURM_ARRAY_TASK_ID]}}
attempt=$study/runs/$run/$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}
mkdir -p -- "$attempt" || exit 1
exec bash "$study/runs/$run/run.sh" >"$attempt/job.out" 2>&1
"""


def render_script(batch: Batch, after: str | None, with_tags: bool) -> str:
    """Return the batch script; `after` is a job that has to end first, `with_tags`: the plugin is
    loaded."""
    options = steelyard_options(batch) + job_options(batch.job) + condition_options(batch)
    if with_tags:
        options += [f"--tag={key}={value}" for key, value in (*batch.tags, *batch.job.tags)]
    if after is not None:
        options.append(f"--dependency=afterany:{after}")
    lines = ["#!/bin/bash", *(f"#SBATCH {quote_option(option)}" for option in options)]
    body = BODY.format(study=shlex.quote(str(batch.study_dir)), submission_id=batch.submission_id)
    return "\n".join(lines) + "\n" + body


def quote_option(option: str) -> str:
    """Quote an option for sbatch, which reads it from a script as a shell does."""
    name, equals, value = option.partition("=")
    return name + equals + (shlex.quote(value) if equals else "")


def steelyard_options(batch: Batch) -> list[str]:
    """Return the options that Steelyard itself needs."""
    limit = "" if batch.job.at_once is None else f"%{batch.job.at_once}"
    folder = str(batch.study_dir)
    output = f"{folder}/submissions/{batch.submission_id}.out".replace("%", "%%")
    return [
        f"--job-name={batch.job_name}",
        f"--array=0-{len(batch.run_ids) - 1}{limit}",
        f"--nodes={batch.nodes}",
        f"--chdir={folder}",
        f"--output={output}",
        "--open-mode=append",
        "--export=ALL",
    ]


def job_options(job: Job) -> list[str]:
    """Return the options of [job] in the study file, without its constraint."""
    values = {
        "ntasks-per-node": job.tasks_per_node,
        "cpus-per-task": job.cpus_per_task,
        "time": job.time_limit,
        "partition": job.partition,
        "account": job.account,
        "qos": job.qos,
    }
    options = [f"--{name}={value}" for name, value in values.items() if value is not None]
    return options + (["--exclusive"] if job.exclusive else []) + list(job.options)


def condition_options(batch: Batch) -> list[str]:
    """Return the options of the runs' conditions; several constraints are joined to one that
    requires all."""
    texts = [] if batch.job.constraint is None else [batch.job.constraint]
    texts += [o.partition("=")[2] for o in batch.options if o.startswith(CONSTRAINT)]
    options = [option for option in batch.options if not option.startswith(CONSTRAINT)]
    return options + ([f"{CONSTRAINT}{functools.reduce(join_constraints, texts)}"] if texts else [])


def join_constraints(first: str, second: str) -> str:
    """Return `first&second`. Raises UsageError if Slurm's grammar cannot express that."""
    for constraint in (first, second):
        if not PLAIN_CONSTRAINT.fullmatch(constraint):
            raise UsageError(
                f"the constraints '{first}' and '{second}' (job.constraint, node_type, "
                "kernel_release) cannot be joined by '&': write the whole in one [place.LEVEL]"
            )
    return f"{first}&{second}"
