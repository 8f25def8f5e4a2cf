"""Jobs that slurmctld has and the accounting does not have yet: squeue's answer as accounting rows.

slurmdbd hears of a job some seconds after sbatch, and not at all while it is away.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from steelyard.analysis.sources import slurm_environment
from steelyard.analysis.sources.accounting import SEPARATOR
from steelyard.analysis.sources.slurm_allocation import parse_duration_s

# sacct's names of columns, and squeue's letters for them; a name may have a line break, so it is not
# the last.
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
    """Lines of FORMAT; "" where squeue knows none of the jobs, or gives no answer."""
    arguments = ["squeue", "--noheader", f"--format={FORMAT}", f"--jobs={','.join(job_ids)}"]
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            env=slurm_environment.build_environment(),
            timeout=time_out_s,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""


def convert_to_sacct(cells: Sequence[str]) -> dict[str, str]:
    """One line of squeue by sacct's names and in its units."""
    said = dict(zip(LETTERS, cells, strict=True))
    limit_s, elapsed_s = (
        parse_duration_s(said["TimelimitRaw"]),
        parse_duration_s(said["ElapsedRaw"]),
    )
    if limit_s is not None:
        said["TimelimitRaw"] = str(int(limit_s // 60))
    said["ElapsedRaw"] = "" if elapsed_s is None else str(int(elapsed_s))
    said["ReqTRES"] = f"cpu={said['NCPUS']}"
    if said["NodeList"]:
        said["AllocTRES"] = said["ReqTRES"]
    else:
        said["Start"] = said["ElapsedRaw"] = ""  # squeue gives the expected start of what waits
    return said
