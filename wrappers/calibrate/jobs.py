"""What Slurm and the nodes have left of jobs: accounting, AdminComment, records."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.sources import hostlist
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers import slurm_command

FIELDS = "JobIDRaw,State,End,ElapsedRaw,NNodes,NodeList,AdminComment"
RUNNING = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUE_HOLD")
# A user's own defaults for these programs must not change what they answer.
NOT_OURS = ("SLURM_", "SQUEUE_", "SACCT_", "SINFO_", "SRUN_")
KEPT = ("SLURM_CONF", "SLURM_CLUSTERS", "SLURM_JWT")


@dataclass(frozen=True)
class Row:
    """One start of a job, as sacct has it."""

    job: str
    state: str
    ended: bool
    elapsed_s: float | None
    nodes: int
    node_list: str
    comment: Mapping[str, Any] | None

    def node_names(self) -> list[str]:
        """Every node of it."""
        return hostlist.expand_nodes(self.node_list)


def environment() -> dict[str, str]:
    """For Slurm's programs."""
    return {
        key: value
        for key, value in os.environ.items()
        if key in KEPT or not key.startswith(NOT_OURS)
    }


def rows(jobs: Iterable[str]) -> dict[str, list[Row]]:
    """By job, every start of it in its order; array tasks and het components by their own ids."""
    listed = ",".join(sorted(set(jobs)))
    if not listed:
        return {}
    argv = ["sacct", "-X", "-D", "-n", "-P", "--noconvert", "-j", listed, "-o", FIELDS]
    found: dict[str, list[Row]] = {}
    for line in slurm_command.run(argv, environment()).splitlines():
        parts = line.split("|", 6)
        if len(parts) == 7:
            row = parse(parts)
            found.setdefault(row.job, []).append(row)
    return found


def parse(parts: Sequence[str]) -> Row:
    """One line of sacct's."""
    job, state, end, elapsed, nodes, node_list, comment = parts
    try:
        document = json.loads(comment) if comment else None
    except ValueError:
        document = None
    return Row(
        job,
        state,
        end not in ("Unknown", "None", "") and state.split()[0] not in RUNNING,
        float(elapsed) if elapsed.isdigit() else None,
        int(nodes) if nodes.isdigit() else 1,
        node_list,
        document if isinstance(document, dict) else None,
    )


def records(folders: Iterable[Path], job: str) -> list[dict[str, Any]]:
    """Of a job, as far as they can be seen from here."""
    found = []
    for folder in folders:
        for path in sorted((folder / job).glob("*.json")):
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
    for name in row.node_names():
        argv = ["srun", "-Q", "-N1", "-n1", f"--nodelist={name}", *options]
        argv += ["sh", "-c", 'cat "$0"/*.json 2>/dev/null || :', str(folder / job)]
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
