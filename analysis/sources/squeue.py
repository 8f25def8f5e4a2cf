"""Converts squeue's answer to accounting rows, for jobs that are not in the accounting yet.

slurmdbd receives a job some seconds after sbatch, and none while it is down.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from steelyard.analysis.sources import slurm_command_environment
from steelyard.analysis.sources.accounting import SEPARATOR
from steelyard.analysis.sources.slurm_allocation import parse_duration_s

# sacct's column names and squeue's format letters. A name may have a line break, so that it is not
# last.
LETTERS = {
    "JobID": "%i",
    "JobIDRaw": "%A",
    "State": "%T",
    "Reason": "%r",
    "Partition": "%P",
    "User": "%u",
    "Account": "%a",
    "Submit": "%V",
    "Start": "%S",
    "ElapsedRaw": "%M",
    "NodeList": "%N",
    "NNodes": "%D",
    "NCPUS": "%C",
    "JobName": "%j",
    "TimelimitRaw": "%l",
}
FORMAT = SEPARATOR.join(LETTERS.values())


def query_jobs(job_ids: Sequence[str], time_out_s: float) -> str:
    """Return squeue's lines in FORMAT; "" if it knows none of the jobs or does not answer."""
    arguments = ["squeue", "--noheader", f"--format={FORMAT}", f"--jobs={','.join(job_ids)}"]
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=slurm_command_environment.build_environment(),
            timeout=time_out_s,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def convert_to_sacct(cells: Sequence[str]) -> dict[str, str]:
    """Convert one line of squeue to sacct's names and units."""
    named_cells = dict(zip(LETTERS, cells, strict=True))
    limit_s, elapsed_s = (
        parse_duration_s(named_cells["TimelimitRaw"]),
        parse_duration_s(named_cells["ElapsedRaw"]),
    )
    if limit_s is not None:
        named_cells["TimelimitRaw"] = str(int(limit_s // 60))
    named_cells["ElapsedRaw"] = "" if elapsed_s is None else str(int(elapsed_s))
    named_cells["ReqTRES"] = f"cpu={named_cells['NCPUS']}"
    if named_cells["NodeList"]:
        named_cells["AllocTRES"] = named_cells["ReqTRES"]
    else:
        # squeue reports the expected start of waiting jobs.
        named_cells["Start"] = named_cells["ElapsedRaw"] = ""
    return named_cells
