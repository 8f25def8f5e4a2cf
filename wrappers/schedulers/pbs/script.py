"""The script for qsub: one array, whose tasks each execute the run of their index."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import base, ledger
from steelyard.wrappers.schedulers.base import Batch
from steelyard.wrappers.schedulers.pbs import node_request
from steelyard.wrappers.schedulers.pbs import options as pbs_options
from steelyard.wrappers.schedulers.pbs.dialects import Dialect
from steelyard.wrappers.study.job_settings import Job

# Variables travel in a file: -V and -v break on quotes, commas and newlines. The server sets
# TMPDIR.
EXPORTED = tuple(name for name in base.EXPORTED if name != "TMPDIR")
NAME_LENGTH = 200  # 230 in OpenPBS, 256 in Torque

# The number after the job's id separates the starts of a requeued job: PBS does not report it.
BODY = """\

# Each task of the array executes one run; line INDEX + 1 of the list names it.
set -u
study={study}
cd -- "$study" || exit 1
mapfile -t runs <submissions/{submission_id}.runs || exit 1
run=${{runs[${{PBS_ARRAYID:-${{PBS_ARRAY_INDEX:-0}}}}]}}
. submissions/{submission_id}.env || exit 1
number=0
until mkdir -- "runs/$run/$PBS_JOBID.$number" 2>/dev/null; do
    [[ -d runs/$run/$PBS_JOBID.$number ]] || {{ mkdir -- "runs/$run/$PBS_JOBID.$number"; exit 1; }}
    number=$((number + 1))
done
export SY_SCHEDULER=pbs SY_ATTEMPT=$PBS_JOBID.$number{time_limit}
exec bash "$study/runs/$run/run.sh" >"runs/$run/$SY_ATTEMPT/job.out" 2>&1
"""


def render_script(batch: Batch, after: str | None, dialect: Dialect, request: str | None) -> str:
    """Return the batch script; `after` is a job that has to end first, `request` the text for the
    node."""
    options = steelyard_options(batch, dialect) + job_options(batch.job)
    # The request comes before the nodes: Torque's prologue gets only the beginning of a very long
    # list.
    options += [] if request is None else [dialect.request_option(request)]
    options += node_options(batch, dialect)
    if after is not None:
        options.append(dialect.dependency_option(after))
    lines = ["#!/bin/bash", *(f"#PBS {quote_option(option)}" for option in options)]
    limit_s = batch.job.time_limit_s
    body = BODY.format(
        study=shlex.quote(str(batch.study_dir)),
        submission_id=batch.submission_id,
        time_limit="" if limit_s is None else f" SY_TIME_LIMIT_S={limit_s}",
    )
    return "\n".join(lines) + "\n" + body


def quote_option(option: str) -> str:
    """Quote an option for qsub's reading of a script, whose quotes and backslashes are nearly a
    shell's."""
    letter, _, value = option.partition(" ")
    return f"{letter} {shlex.quote(value)}" if value else letter


def job_name(batch: Batch) -> str:
    """Return the job's name, which must begin with a letter. It identifies unrecorded
    submissions."""
    name = batch.job_name if re.match("[A-Za-z]", batch.job_name) else f"s{batch.job_name}"
    return name[-NAME_LENGTH:]


def steelyard_options(batch: Batch, dialect: Dialect) -> list[str]:
    """Return the options that Steelyard itself needs."""
    number = len(batch.run_ids)
    array = [dialect.array_option(number, batch.job.at_once)] if number > 1 else []
    return [
        f"-N {job_name(batch)}",
        *array,
        "-S /bin/bash",
        "-j oe",
        f"-o {dialect.output_option(f'{batch.study_dir}/submissions/{batch.submission_id}.out', number)}",
    ]


def job_options(job: Job) -> list[str]:
    """Return the options of [job] in the study file, without those for nodes. Raises UsageError for
    a QOS, which PBS does not have."""
    if job.qos is not None:
        raise UsageError(
            f"job.qos = '{job.qos}': PBS has no such thing. Name a queue (partition), or say what "
            "your site's scheduler takes in [job] options, such as -W x=QOS:NAME for Maui and Moab"
        )
    _, others = pbs_options.split_node_options(
        pbs_options.normalize_options(pbs_options.split_options(job.options))
    )
    mail = [] if any(option.startswith("-m ") for option in others) else ["-m n"]
    options = (
        [] if job.time_limit_s is None else [f"-l walltime={format_time_limit(job.time_limit_s)}"]
    )
    options += [] if job.partition is None else [f"-q {job.partition}"]
    options += [] if job.account is None else [f"-A {job.account}"]
    return options + mail + others


def format_time_limit(limit_s: int) -> str:
    """Return HH:MM:SS with as many hours as needed; PBS has no days."""
    return f"{limit_s // 3600:02}:{limit_s // 60 % 60:02}:{limit_s % 60:02}"


def node_options(batch: Batch, dialect: Dialect) -> list[str]:
    """Return the options that select nodes: from the runs' conditions, from [job] options, or
    none."""
    job = batch.job
    placing = [o for o in batch.options if pbs_options.split_node_options([o])[0] is not None]
    if len(placing) > 1:
        raise UsageError(
            f"'{placing[0]}' and '{placing[1]}': nodes are said in one place on PBS: leave one of "
            'the factors node, node_type and kernel_release out, or write pbs = "" into its [place.LEVEL]'
        )
    of_level, others = pbs_options.split_node_options(
        option for option in batch.options if not option.startswith("--")
    )
    of_job, _ = pbs_options.split_node_options(
        pbs_options.normalize_options(pbs_options.split_options(job.options))
    )
    if of_level is not None and of_job is not None:
        raise UsageError(
            f"job.options has '{of_job}' and [place.LEVEL] '{of_level}': nodes are said in one place"
        )
    wanted = node_request.NodeRequest(
        batch.nodes,
        job.cpus_per_node,
        node_request.parse_properties(job.constraint),
        job.tasks_per_node or 1,
    )
    return [*dialect.node_options(of_level or of_job, wanted, job, others), *others]


def remove_dependency(script: Path) -> bool:
    """Remove the dependency on an earlier job; return False if the script has none."""
    lines = script.read_text(encoding="utf-8").splitlines(keepends=True)
    remaining = [
        line for line in lines if not line.startswith(("#PBS -W depend=", "#PBS -W 'depend="))
    ]
    if len(remaining) == len(lines):
        return False
    ledger.write_atomically(script, "".join(remaining), durable=False)
    return True


def request_arguments(batch: Batch, with_conditions: bool = True) -> list[str]:
    """Return the arguments of `steelyard-node job encode`: conditions, then tags."""
    requested = [option for option in batch.options if option.startswith("--")]
    tags = [f"--tag={key}={value}" for key, value in (*batch.tags, *batch.job.tags)]
    return (requested if with_conditions else []) + tags


def encode_request(options: list[str]) -> str:
    """Return the request to the node as one word without blanks, commas and quotes."""
    return netem.run_node_program("job", "encode", *options).strip()


def render_environment(batch: Batch) -> str:
    """Return shell lines that export the job's part of this environment."""
    names = dict.fromkeys((*EXPORTED, *batch.job.export))
    lines = [f"export {n}={shlex.quote(os.environ[n])}" for n in names if n in os.environ]
    return "\n".join(["# What the submitting shell had.", *lines]) + "\n"
