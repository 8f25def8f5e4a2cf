"""pyslurm, Slurm's own library, in place of sacct: for `collect --accounting pyslurm`.

It has to be of the same release as Slurm: its structures are compiled in. What it does not tell as
sacct does stays empty: CPU times (whole seconds), the largest memory and I/O (0 for not known), what
steps had (it fails on mem=0). It has one start of each job, and tells exit codes above 128 less 128:
of jobs that started again, or had any exit code but 0, sacct tells all.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import slurm_environment
from steelyard.analysis.sources.accounting import SEPARATOR, AccountingRow, StepRow
from steelyard.analysis.sources.sacct import FIELDS, Sacct, parse_row
from steelyard.analysis.sources.sacct_json import NO_TIME, UNKNOWN, user_id, waiting

OLDEST = (25, 11)  # before, it does not tell how often a job started
# Filled as sacct fills them; tests/system/cluster/test_pyslurm.py compares each.
TOLD = tuple(
    name
    for name in FIELDS
    if name not in ("TotalCPU", "UserCPU", "SystemCPU", "MaxRSS", "MaxVMSize", "MaxDiskRead",
                    "MaxDiskWrite", "ConsumedEnergyRaw", "OriginalSLUID")
)  # fmt: skip
# sluid.c: Crockford's digits.
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def release_of(text: str) -> tuple[int, int] | None:
    """`slurm-wlm 25.11.7` or `25.11.2` -> (25, 11)."""
    found = re.search(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def library(sacct: str = "sacct") -> Any:
    """The module; MissingError where it is not there, or not of Slurm's release."""
    try:
        module = importlib.import_module("pyslurm")
    except ImportError as error:
        raise MissingError(
            f"pyslurm cannot be loaded ({error}): pip install 'steelyard[pyslurm]' with Slurm's "
            "headers and library there, or leave out --accounting: sacct is asked then"
        ) from None
    own, slurm = release_of(str(module.__version__)), slurm_release(sacct)
    if own is None or own < OLDEST or own != slurm:
        shown = ".".join(f"{part:02}" for part in slurm or ()) or "of a release that is not known"
        raise MissingError(
            f"pyslurm {module.__version__} does not fit: Slurm here is {shown}, and pyslurm has to "
            "be of the same release, 25.11 or later. Leave out --accounting: sacct is asked then"
        )
    return module


def slurm_release(sacct: str) -> tuple[int, int] | None:
    """Of the programs that are here."""
    try:
        done = subprocess.run(
            [sacct, "--version"], capture_output=True, text=True, timeout=30, check=False,
            env=slurm_environment.own(),
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return None
    return release_of(done.stdout)


class PySlurm(Sacct):
    """Slurm's accounting by its library; sacct's where that tells more."""

    def rows(self, job_ids: Sequence[str]) -> Iterator[AccountingRow | StepRow]:
        """See Accounting.rows."""
        jobs = self.ask_library(library(self.program), job_ids) if job_ids else []
        again = {job.id for job in jobs if not is_told(job)}
        for job in jobs:
            if job.id not in again:
                yield from rows_of(job)
        yield from super().rows([str(job_id) for job_id in sorted(again)])

    def ask_library(self, module: Any, job_ids: Sequence[str]) -> list[Any]:
        """Jobs of these ids; it knows no `4711_3` and `4711+1`, so that those are picked out here."""
        bare = sorted({int(re.split("[_+]", job_id)[0]) for job_id in job_ids})
        try:
            found = module.db.Jobs.load(module.db.JobFilter(ids=bare))
        except module.RPCError as error:
            raise MissingError(
                f"slurmdbd does not answer pyslurm: {error}. Is it running, and does SLURM_CONF "
                "point to the cluster the jobs ran on?"
            ) from None
        return [job for job in found.values() if names_of(job) & set(job_ids)]


def is_told(job: Any) -> bool:
    """Whether the library tells all of it: one start, and no exit code, of which it takes 128."""
    codes = [job.exit_code, job.derived_exit_code, *(s.exit_code for s in job.steps.values())]
    return not job.requeue_count and not any(codes)


def names_of(job: Any) -> set[str]:
    """What sacct would know it by."""
    leaders = {str(job.array_id or job.id), str(job.heterogeneous_id or job.id)}
    return {str(job.id), job_id(job), *leaders}


def job_id(job: Any) -> str:
    """`100`, `100_3`, `100_[1-3]`, `100+1`; the library tells task 0 as none."""
    if job.array_id:
        tasks = waiting(job.array_tasks_waiting or "")
        return f"{job.array_id}_{f'[{tasks}]' if tasks else job.array_task_id or 0}"
    if job.heterogeneous_id:
        return f"{job.heterogeneous_id}+{job.heterogeneous_offset or 0}"
    return str(job.id)


def rows_of(job: Any) -> Iterator[AccountingRow | StepRow]:
    """The job, then its steps."""
    cells = job_cells(job)
    row = parse_row([cells.get(name, "") for name in FIELDS])
    if row is None:
        raise MissingError(f"pyslurm has a job without an id: {job!r}")
    yield row
    for name, step in job.steps.items():
        found = step_cells(job, cells, str(name), step)
        yield StepRow(row.job_id, str(name), SEPARATOR.join(found.get(n, "") for n in FIELDS))


def job_cells(job: Any) -> dict[str, str]:
    """The job's own line."""
    has_nodes = job.allocated_tres is not None
    cpus = job.cpus if has_nodes else 0
    return {
        "JobID": job_id(job),
        "JobIDRaw": str(job.id),
        "JobName": job.name or "",
        "User": job.user_name or "",
        "Partition": job.partition or "",
        "DerivedExitCode": f"{job.derived_exit_code}:{job.derived_exit_code_signal}",
        "Reason": job.state_reason or "",
        "Submit": moment(job.submit_time),
        "Eligible": moment(job.eligible_time),
        "ReqTRES": tres(job.requested_tres),
        "Constraints": ",".join(job.constraints or ()),
        "WorkDir": job.working_directory or "",
        "AdminComment": job.admin_comment or "",
        "TimelimitRaw": limit(job.time_limit),
        "Restarts": str(job.requeue_count or 0),
        "NNodes": str(node_count(job)),
        "AllocTRES": tres(job.allocated_tres),
        **shared(job, job, cpus),
    }


def node_count(job: Any) -> int:
    """Those it has, else those that were asked for."""
    found = job.allocated_tres or job.requested_tres
    return found.node.count if found is not None and found.node is not None else 0


def step_cells(job: Any, of_job: dict[str, str], name: str, step: Any) -> dict[str, str]:
    """A step's line."""
    return {
        "JobID": f"{of_job['JobID']}.{name}",
        "JobIDRaw": f"{job.id}.{name}",
        "JobName": step.name or "",
        "Submit": moment(step.start_time),
        "Eligible": moment(step.start_time),
        "NNodes": str(step.num_nodes or 0),
        "NTasks": str(step.ntasks or 0),
        **shared(job, step, step.cpus or 0),
    }


def shared(job: Any, one: Any, cpus: int) -> dict[str, str]:
    """What a job and its steps tell alike."""
    by = f" by {user_id(one.cancelled_by)}" if one.cancelled_by else ""
    elapsed = one.elapsed_time or 0
    return {
        "Cluster": job.cluster or "",
        "Account": job.account or "",
        "State": one.state + (by if one.state == "CANCELLED" else ""),
        "ExitCode": f"{one.exit_code}:{one.exit_code_signal}",
        "Start": moment(one.start_time, UNKNOWN if one.state == "PENDING" else NO_TIME),
        "End": moment(one.end_time),
        "ElapsedRaw": str(elapsed),
        "CPUTimeRAW": str(elapsed * cpus),
        "NCPUS": str(cpus),
        "NodeList": one.nodelist or "",
        "SLUID": sluid(job.db_index),
    }


def moment(seconds: int | None, nothing: str = UNKNOWN) -> str:
    """Seconds since 1970 UTC."""
    return str(seconds) if seconds else nothing


def limit(minutes: int | str | None) -> str:
    """Minutes, as sacct writes them."""
    if minutes is None:
        return "UNLIMITED"
    return "Partition_Limit" if isinstance(minutes, str) else str(minutes)


def sluid(number: int | None) -> str:
    """sluid2str of Slurm's src/common/sluid.c: thirteen digits of five bits."""
    if not number:
        return ""
    return "s" + "".join(DIGITS[number >> shift & 31] for shift in range(60, -5, -5))


def tres(found: Any) -> str:
    """`billing=1,cpu=1,mem=1000M,node=1` of the library's objects."""
    parts = {}
    for one in resources(found):
        value = f"{one.count}M" if one.type_and_name == "mem" and one.count else str(one.count)
        parts[one.type_and_name] = f"{one.type_and_name}={value}"
    return ",".join(parts[name] for name in sorted(parts))


def resources(found: Any) -> Iterable[Any]:
    """Each of them, those of several kinds in turn."""
    for name, one in (found.to_dict() if found is not None else {}).items():
        value = getattr(found, name, one)
        if isinstance(value, dict):
            yield from value.values()
        elif value is not None:
            yield value
