"""Jobs of Slurm: their launch methods, and the reports of sacct."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from steelyard.analysis.sources import admin_comment, slurm_command_environment
from steelyard.analysis.sources.accounting import WAITING_STATES, AccountingRow
from steelyard.analysis.sources.sacct import Sacct
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import job_system, known_loads, limits, table
from steelyard.wrappers.calibrate.job_system import (
    JOB_NAME,
    RATE_HZ,
    JobSystem,
    LaunchMethod,
    Record,
    Report,
)
from steelyard.wrappers.calibrate.known_loads import KnownLoad
from steelyard.wrappers.schedulers.slurm import command as slurm_command
from steelyard.wrappers.schedulers.slurm.scheduler import Slurm

FIELDS = ("State", "Start", "End", "ElapsedRaw", "NodeList", "AdminComment")
NOT_OVER = WAITING_STATES | {"requeued"}  # of the last start: another follows
# A user's own defaults for these programs must not change their output.
NOT_OURS = ("SLURM_", "SQUEUE_", "SACCT_", "SINFO_", "SRUN_")
# For the flat layout and the layout by day: analysis/sources/record_folders.py.
CAT = 'cat "$0/$1"/*.json "$0"/[0-9]*-[0-9]*/[0-9][0-9]/"$1"/*.json 2>/dev/null || :'

BRIEF = "a step of less than a second without a tag leaves no AdminComment (docs/admin.md)"
RACE = "Slurm had ended the job before its comment came (docs/admin.md)"


class SlurmJobs(JobSystem):
    """The cluster that SLURM_CONF, or Slurm's default, names."""

    title = "Slurm"
    submit_program = "sbatch"
    cancel_program = "scancel"
    commands: ClassVar[Any] = slurm_command
    where = table.ACCOUNTING
    beside = (limits.STEPD,)
    no_report = Report(True, None, totals={None: None})
    restart_delay_s = 3.0  # slurmd rejects a job that it killed in the same second
    # Otherwise Slurm holds a requeued job for two minutes.
    restart = ("scontrol", "update", "StartTime=now", "JobId={job}")
    no_totals = RACE  # a step waits half a second for it
    elapsed_limit = staticmethod(limits.slurm_elapsed_limit)

    def check(self) -> Mapping[str, object]:
        """See JobSystem."""
        slurm = Slurm(Path(), patient=False)
        config = slurm.read_config
        if not slurm.has_plugin:
            raise MissingError(
                "Slurm answers, but its sbatch does not know Steelyard's plugin: its admin installs "
                "it (docs/admin.md); without it: `steelyard calibrate --scheduler local`"
            )
        interval = config.get("JobAcctGatherFrequency")
        return {
            "slurm": config.get("SLURM_VERSION"),
            "proctrack": config.get("ProctrackType"),
            "gather": f"{config.get('JobAcctGatherType')} every {interval} s",
        }

    def list_own_methods(self) -> Iterator[LaunchMethod]:
        """Yield methods with one node and steps in sequence, then with several nodes, steps or jobs
        at a time."""
        load = known_loads.standard_load()
        long = KnownLoad(load.name, (*load.actions, "sleep=1"))  # a step of over a second
        brief = KnownLoad("brief", ("cpu=0.1", "read=500000", "write=400000"), known_loads.CALLS)
        line, tag = self.load_line(load), ("--tag=launch=srun",)
        step = (limits.STEPD, limits.SRUN)
        srun = self.wrap_line(f"srun {line}")
        yield self.script_method("sbatch", load)
        yield self.script_method("sbatch, srun in it", load, srun, results=2, beside=step)
        yield self.script_method("srun alone", long, program="srun")
        yield self.script_method("srun alone, brief", brief, program="srun", no_totals=BRIEF)
        yield self.script_method("srun alone, tagged", load, program="srun", options=tag)
        twice = shlex.join(["sh", "-c", f"srun --tag=launch=salloc {line}; srun {line}"])
        yield self.script_method(
            "salloc, srun twice", load, twice, program="salloc", options=("--tag=launch=salloc",),
            results=2, beside=step[:1],
        )  # fmt: skip
        yield self.script_method("array", load, tasks=2, results=2)
        component = ("-N1", "-n1")
        yield self.script_method(
            "het job", load, self.wrap_line(f"srun --het-group=0,1 {line}"),
            options=(*component, f"--sample-rate={RATE_HZ}", ":", *component),
            results=3, beside=(*step, limits.SRUN),
        )  # fmt: skip
        yield self.script_method("two nodes, work on one", load, nodes=2)
        yield self.script_method("two nodes", load, srun, nodes=2, results=3, beside=step)
        both = f"sh -c {shlex.quote(f'srun --overlap {line} & srun --overlap {line}; wait')}"
        yield self.script_method(
            "--overlap", load, self.wrap_line(both), results=3, beside=2 * step
        )
        yield self.shared_node_methods()
        yield self.restarted_method("requeue", "scontrol", "requeue", options=("--requeue",))

    def command(
        self, method: LaunchMethod, line: str, folder: Path, node: str
    ) -> tuple[list[str], str]:
        """See JobSystem."""
        head = [method.program or self.submit_program, f"--job-name={JOB_NAME}", "--time=5"]
        head += [] if method.program else ["--parsable", "--output=out.%j"]
        options = [*self.options, *method.options]
        options += [f"-N{method.nodes}"] if method.nodes > 1 or node else []
        options += [f"-n{method.nodes}", f"--sample-rate={method.rate_hz}"]
        options += [f"--nodelist={node}"] if node else []
        options += [f"--array=0-{method.tasks - 1}"] if method.tasks else []
        if method.program:
            return [*head, *options, *shlex.split(line)], ""
        return [*head, *options], f"#!/bin/sh\nexec {line}\n"

    def environment(self) -> Mapping[str, str]:
        """Return the environment, including the user's settings for sbatch and salloc."""
        return {
            key: value
            for key, value in os.environ.items()
            if key in slurm_command_environment.WAY or not key.startswith(NOT_OURS)
        }

    def find_node_for_two(self) -> str:
        """See JobSystem."""
        argv = ["sinfo", "-h", "-N", "-t", "idle,mix,alloc,comp", "-o", "%N %c"]
        lines = [line.split() for line in slurm_command.run(argv).splitlines()]
        return next((line[0] for line in lines if len(line) == 2 and line[1] != "1"), "none")

    def query_reports(self, jobs: Collection[str]) -> Mapping[str, list[Report]]:
        """Return the starts in sacct, by job; array tasks and het components have their own ids."""
        found: dict[str, list[Report]] = {}
        for row in (
            Sacct().read_starts_with_steps(FIELDS, "-j", ",".join(sorted(jobs))) if jobs else ()
        ):
            starts = found.setdefault(row.job_id, [])
            if row.step is None:
                starts.append(parse_report(row))
            elif row.step == "extern" and starts:
                starts[-1] = replace(starts[-1], extern_s=row.elapsed_s)
        return found

    def fetch_records(self, folder: Path, job: str, reports: Sequence[Report]) -> list[Record]:
        """Read the records by a job on each node, because srun mixes tasks' lines. Nodes that share
        a folder, or had two starts, print the same record twice."""
        found: dict[tuple[object, object], Record] = {}
        for node in dict.fromkeys(node for one in reports for node in one.nodes):
            argv = ["srun", "-Q", "-N1", "-n1", f"--nodelist={node}", *self.options]
            with suppress(MissingError):  # the node is down, or no longer allowed
                text = self.run([*argv, "sh", "-c", CAT, str(folder), job])
                for record in job_system.split_documents(text):
                    found[record.get("node"), record.get("start_unix_s")] = record
        return list(found.values())


def parse_report(row: AccountingRow) -> Report:
    """Return the report of one start."""
    is_over = row.end_unix_s is not None and row.state not in NOT_OVER
    totals = {None: admin_comment.read_own_comment(row.admin_comment or "")}
    return Report(is_over, row.elapsed_s, row.nodes, totals)
