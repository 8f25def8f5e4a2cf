"""What Slurm and the nodes have left of jobs: accounting, AdminComment, records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.analysis.sources import admin_comment, slurm_environment
from steelyard.analysis.sources.accounting import WAITING_STATES, AccountingRow
from steelyard.analysis.sources.record_folders import job_folders
from steelyard.analysis.sources.sacct import Sacct
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.slurm import command as slurm_command

FIELDS = ("State", "Start", "End", "ElapsedRaw", "NodeList", "AdminComment")
# A user's own defaults for these programs must not change what they answer.
NOT_OURS = ("SLURM_", "SQUEUE_", "SACCT_", "SINFO_", "SRUN_")

# Of the flat layout and of that by day: analysis/sources/record_folders.py.
CAT = 'cat "$0/$1"/*.json "$0"/[0-9]*-[0-9]*/[0-9][0-9]/"$1"/*.json 2>/dev/null || :'


@dataclass(frozen=True)
class Row:
    """One start of a job, as its accounting has it."""

    job: str
    ended: bool
    elapsed_s: float | None
    nodes: tuple[str, ...]
    comment: Mapping[str, Any] | None
    extern_s: float | None = None  # its extern step's, which ends after the job; None: it has none
    whole: bool = True  # with the extern step's end


def environment() -> dict[str, str]:
    """For Slurm's programs that submit: what the user has set for sbatch and salloc counts."""
    return {
        key: value
        for key, value in os.environ.items()
        if key in slurm_environment.WAY or not key.startswith(NOT_OURS)
    }


def rows(jobs: Iterable[str]) -> dict[str, list[Row]]:
    """By job, every start of it in its order; array tasks and het components by their own ids."""
    listed = ",".join(sorted(set(jobs)))
    if not listed:
        return {}
    found: dict[str, list[Row]] = {}
    for row in Sacct().some(FIELDS, "-j", listed):
        starts = found.setdefault(row.job_id, [])
        if row.step is None:
            starts.append(of_row(row))
        elif row.step == "extern" and starts:
            whole = row.end_unix_s is not None
            starts[-1] = replace(starts[-1], extern_s=row.elapsed_s, whole=whole)
    return found


def of_row(row: AccountingRow) -> Row:
    """What calibrate looks at."""
    return Row(
        row.job_id,
        row.end_unix_s is not None and row.state not in WAITING_STATES,
        row.elapsed_s,
        row.nodes,
        admin_comment.own(row.admin_comment or ""),
    )


def records(folders: Iterable[Path], job: str) -> list[dict[str, Any]]:
    """Of a job, as far as they can be seen from here."""
    found = []
    for folder in folders:
        for path in (p for at in job_folders(folder, job) for p in sorted(at.glob("*.json"))):
            try:
                document = json.loads(path.read_bytes())
            except (OSError, ValueError):  # not whole yet, or not for us
                continue
            if isinstance(document, dict):
                found.append(document)
    return found


def fetch(folder: Path, job: str, row: Row, options: Sequence[str]) -> list[dict[str, Any]]:
    """The records of a job from its nodes' own disks, by a job on each: srun mixes tasks' lines."""
    found = []
    for name in row.nodes:
        argv = ["srun", "-Q", "-N1", "-n1", f"--nodelist={name}", *options]
        argv += ["sh", "-c", CAT, str(folder), job]
        try:
            found += documents(slurm_command.run_once(argv, environment()))
        except MissingError:  # the node is gone, or not for us any more
            continue
    return found


def documents(text: str) -> list[dict[str, Any]]:
    """JSON documents one after another."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        if isinstance(document, dict):
            found.append(document)
    return found
