"""Slurm's accounting by the library pyslurm, for programs that request it:

    collect(study_dir, accounting={"slurm": PySlurm()})

pyslurm must be of the same release as Slurm, whose structures are compiled in. It reads jobs of one
start that completed with their steps; Sacct reads all others. Some fields stay empty, since pyslurm
has other values there than sacct: CPU times (whole seconds), largest memory and I/O (0 if unknown).
Steps are not read.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import slurm_command_environment
from steelyard.analysis.sources.accounting import AccountingRow, StepRow
from steelyard.analysis.sources.sacct import FIELDS, Sacct, parse_row

OLDEST = "25.11"  # earlier releases do not have the number of starts
# sacct's fields and the library's names; tests/system/cluster/test_pyslurm.py compares each with
# sacct.
OF_JOB = {
    "JobID": "id", "JobIDRaw": "id", "JobName": "name", "User": "user_name", "State": "state",
    "Partition": "partition", "Reason": "state_reason", "Submit": "submit_time",
    "Eligible": "eligible_time", "Start": "start_time", "End": "end_time",
    "NodeList": "nodelist", "WorkDir": "working_directory", "AdminComment": "admin_comment",
    "Cluster": "cluster", "Account": "account", "NCPUS": "cpus", "ElapsedRaw": "elapsed_time",
}  # fmt: skip
EMPTY = ("TotalCPU", "UserCPU", "SystemCPU", "MaxRSS", "MaxVMSize", "MaxDiskRead", "MaxDiskWrite",
         "ConsumedEnergyRaw", "OriginalSLUID")  # fmt: skip
TOLD = tuple(name for name in FIELDS if name not in EMPTY)
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32: sluid.c


def parse_release(text: str) -> str:
    """Return `25.11` for `slurm-wlm 25.11.7` or `25.11.2`."""
    found = re.search(r"\d\d\.\d\d", text)
    return found[0] if found else "not known"


def load_library(sacct: str = "sacct") -> Any:
    """Return the module; raise MissingError if it is missing or not of Slurm's release."""
    try:
        module = importlib.import_module("pyslurm")
        done = subprocess.run(
            [sacct, "--version"], capture_output=True, text=True, timeout=30, check=False,
            env=slurm_command_environment.build_environment(),
        )  # fmt: skip
    except (ImportError, OSError, subprocess.TimeoutExpired) as error:
        raise MissingError(f"pyslurm cannot be used ({error}): use Sacct") from None
    own, slurm = parse_release(str(module.__version__)), parse_release(done.stdout)
    if own != slurm or own < OLDEST:
        raise MissingError(
            f"pyslurm is of release {own} and Slurm of {slurm}; expected the same release, {OLDEST} "
            "or later: use Sacct"
        )
    return module


class PySlurm(Sacct):
    """Slurm's accounting by its library, and by sacct for jobs that the library cannot read."""

    def rows(
        self, job_ids: Sequence[str], since_unix_s: float = 0.0
    ) -> Iterator[AccountingRow | StepRow]:
        """See Accounting.rows."""
        jobs = self.load_jobs(load_library(self.program), job_ids) if job_ids else []
        for job in jobs:
            yield build_row(job)
        read = {str(job.id) for job in jobs}
        yield from super().rows([job_id for job_id in job_ids if job_id not in read])

    def load_jobs(self, module: Any, job_ids: Sequence[str]) -> list[Any]:
        """Return the jobs that the library has complete; it cannot find `4711_3` and `4711+1`."""
        plain = [int(job_id) for job_id in job_ids if job_id.isdecimal()]
        try:
            found = module.db.Jobs.load(module.db.JobFilter(ids=plain)) if plain else {}
        except module.RPCError as error:
            raise MissingError(
                f"slurmdbd does not answer pyslurm: {error}. Is it running, and does SLURM_CONF "
                "point to the cluster the jobs ran on?"
            ) from None
        return [job for job in found.values() if is_complete(job)]


def is_complete(job: Any) -> bool:
    """Whether the job is plain, had one start, and completed with its steps.

    A plain job is no array task and no component of a heterogeneous job.
    """
    states = {job.state, *(step.state for step in job.steps.values())}
    is_plain = not job.array_id and not job.heterogeneous_id and not job.requeue_count
    return is_plain and states == {"COMPLETED"}


def build_row(job: Any) -> AccountingRow:
    """Return the job's row, with fields in sacct's order."""
    cells: dict[str, object] = {
        **{name: getattr(job, attribute) for name, attribute in OF_JOB.items()},
        "ExitCode": "0:0",
        "DerivedExitCode": "0:0",
        "CPUTimeRAW": job.elapsed_time * job.cpus,
        "ReqTRES": format_resources(job.requested_tres),
        "AllocTRES": format_resources(job.allocated_tres),
        "NNodes": job.allocated_tres.node.count,
        "Constraints": ",".join(job.constraints or ()),
        "TimelimitRaw": "UNLIMITED" if job.time_limit is None else job.time_limit,
        "Restarts": 0,
        "SLUID": format_sluid(job.db_index),
    }
    values = ["" if cells.get(name) is None else str(cells[name]) for name in FIELDS]
    row = parse_row(values)
    if row is None:
        raise MissingError(f"pyslurm has a job without an id: {job!r}")
    return row


def format_sluid(number: int | None) -> str:
    """Format an id as sluid2str of Slurm's src/common/sluid.c: thirteen digits of five bits."""
    if not number:
        return ""
    return "s" + "".join(DIGITS[number >> shift & 31] for shift in range(60, -5, -5))


def format_resources(found: Any) -> str:
    """Format the library's objects as `billing=1,cpu=1,mem=1000M,node=1`."""
    parts = {}
    for name in found.to_dict():
        value = getattr(found, name, None)
        for one in value.values() if isinstance(value, dict) else [value] if value else []:
            unit = "M" if one.type_and_name == "mem" and one.count else ""
            parts[one.type_and_name] = f"{one.type_and_name}={one.count}{unit}"
    return ",".join(parts[name] for name in sorted(parts))
