"""The scheduler Slurm: sbatch, squeue, sacct, scancel and scontrol, as any user may call them."""

from __future__ import annotations

import functools
import getpass
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from steelyard.analysis.sources import slurm_command_environment
from steelyard.analysis.sources.sacct import NoAccountingError, Sacct
from steelyard.analysis.sources.study_files import Submission
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import ConditionError, MissingError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
from steelyard.wrappers.schedulers.base import EXPORTED, Batch, Scheduler, Task, split_chunks
from steelyard.wrappers.schedulers.retries import CommandError, LostError, submit_once
from steelyard.wrappers.schedulers.slurm import command as slurm_command
from steelyard.wrappers.schedulers.slurm import doctor_checks
from steelyard.wrappers.schedulers.slurm import partitions as slurm_places
from steelyard.wrappers.schedulers.slurm import script as slurm_script
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states
from steelyard.wrappers.study.job_settings import OPTION
from steelyard.wrappers.study.table_reader import Table

# For sbatch these override the script's options, so they are passed on only if [job] has no such
# key.
DEFAULTS = {"SBATCH_ACCOUNT": "account", "SBATCH_PARTITION": "partition", "SBATCH_QOS": "qos"}
# That too many jobs are there, not that a job requests too much time.
FULL = re.compile(
    "^(?!.*time limit is invalid).*(?:limit|MaxSubmitJob|MaxJobCount|too many)", re.IGNORECASE
)
CONDITIONS = ("--netem", "--cache")
PLACING = ("--constraint", "-C", "--nodelist", "-w", "--partition", "-p")
# Options of a query to a node: it shares the node with other jobs, and does not queue if that is
# full.
ASKING = ("--nodes=1", "--ntasks=1", "--time=2", "--immediate=20", "--chdir=/",
          "--job-name=steelyard-doctor")  # fmt: skip
CHUNK = 500  # job ids on one command line


class Slurm(Scheduler):
    """The cluster that SLURM_CONF, or Slurm's default, names."""

    name = "slurm"
    not_in_paths = "\\"  # sbatch drops a backslash from --output
    job_variables = ("SLURM",)

    @classmethod
    def is_installed(cls) -> bool:
        """Return whether sbatch is in PATH."""
        return shutil.which("sbatch") is not None

    @classmethod
    def run_checks(cls) -> Iterator[Check]:
        """Check Slurm's commands, its controller and Steelyard's plugin."""
        return doctor_checks.run_checks()

    def make_stand_in(self) -> tuple[Scheduler, str]:
        """Return a scheduler that queries no cluster, and its assumptions."""
        return AbsentSlurm(self.study_dir), "Slurm's defaults, without our plugin"

    @functools.cached_property
    def read_config(self) -> dict[str, str]:
        """Return `scontrol show config` by key. Raises MissingError, which says what to do, if no
        Slurm answers."""
        try:
            text = slurm_command.run(["scontrol", "show", "config"])
        except CommandError as error:
            raise MissingError(
                f"no Slurm cluster answers ({error}): {slurm_command.NO_SLURM}"
            ) from error
        pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
        return {key.strip(): value.strip() for key, _, value in pairs}

    @functools.cached_property
    def has_plugin(self) -> bool:
        """Return whether sbatch knows the plugin's --tag."""
        return "--tag" in self.plugin_options

    @functools.cached_property
    def plugin_options(self) -> frozenset[str]:
        """Return the options of sbatch that come from Steelyard's plugin."""
        text = slurm_command.run_once(["sbatch", "--help"])
        ours = (line for line in join_help_lines(text) if "[steelyard]" in line)
        return frozenset(name for line in ours for name in re.findall(r"--[a-z][a-z-]*", line)[:1])

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the command for a small separate job: a node that is down must not delay the
        others."""
        return ["srun", "--quiet", f"--nodelist={node}", *ASKING, *argv]

    def cluster_name(self) -> str | None:
        """Return ClusterName of slurm.conf."""
        return self.read_config.get("ClusterName")

    def max_runs(self) -> int | None:
        """Return MaxArraySize, which is one more than the highest index. Raises MissingError if it
        is 0: the cluster takes no arrays."""
        size = int(self.read_config.get("MaxArraySize", "1001"))
        if size == 0:
            raise MissingError("this cluster takes no job arrays (MaxArraySize=0): ask its admin")
        return size

    @classmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        """Check options of sbatch."""
        check_options(table, key, options)

    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        """Return the study's own options, or the constraint of the level's name."""
        options = [f"--constraint={level}"] if given is None else given
        return [option.replace("{nodes}", str(nodes)) for option in options]

    def node_options(self, node: str) -> list[str]:
        """Return the option with one name, so that --nodes=1 selects that node."""
        return [f"--nodelist={node}"]

    def selects_nodes(self, batch: Batch) -> bool:
        """Return whether an option of sbatch or a key of [job] selects nodes."""
        options = (*batch.options, *batch.job.options)
        named = any(option.startswith(PLACING) for option in options)
        return named or batch.job.constraint is not None or batch.job.partition is not None

    def node_features(self) -> dict[str, frozenset[str]]:
        """Return the features that sinfo reports; empty if it does not answer."""
        try:
            text = slurm_command.run_once(["sinfo", "--noheader", "--Node", "--format=%N|%f"])
        except MissingError:
            return {}
        pairs = (line.strip().partition("|")[::2] for line in text.splitlines())
        return {name: frozenset(listed.split(",")) for name, listed in pairs}

    @functools.cached_property
    def read_nodes(self) -> list[Node]:
        """Return the nodes that scontrol reports."""
        return list(slurm_places.parse_nodes(slurm_places.read_rows("node")))

    @functools.cached_property
    def read_partitions(self) -> list[slurm_places.Row]:
        """Return the partitions that scontrol reports."""
        return slurm_places.read_rows("partition")

    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """Return the nodes of the batch's partition that have what the batch requests."""
        return slurm_places.find_available_nodes(batch, self.read_nodes, self.read_partitions)

    def rejection_reason(self, script: Path, batch: Batch) -> str | None:
        """Return the error message of `sbatch --test-only`; None if it accepts the script."""
        try:
            slurm_command.run_once(["sbatch", "--test-only", str(script)], make_environment(batch))
        except CommandError as error:
            return error.message.removeprefix("allocation failure: ")
        return None

    def render_script(self, batch: Batch, after: str | None) -> str:
        """Return the batch script. Raises ConditionError for conditions that this cluster's plugin
        cannot apply."""
        return slurm_script.render_script(self.remove_unsupported(batch), after, self.has_plugin)

    def remove_unsupported(self, batch: Batch) -> Batch:
        """Return the batch without --cache=warm if sbatch has no such option: warm requests
        nothing. Raises ConditionError for any other missing option."""
        options = []
        for option in batch.options:
            name = option.partition("=")[0]
            known = name not in CONDITIONS or name in self.plugin_options
            if not known and option != "--cache=warm":
                raise ConditionError(
                    f"{option}: sbatch of this cluster has no option {name} of ours, so the "
                    "condition cannot be asked for: its admin installs the plugin (docs/admin.md)"
                )
            options += [option] if known else []
        return replace(batch, options=tuple(options))

    def submit(self, batch: Batch, script: Path) -> str:
        """Submit with sbatch."""
        since = script.stat().st_mtime
        return submit_once(
            lambda: self.sbatch(batch, script), lambda: self.find_submission(batch, since)
        )

    def sbatch(self, batch: Batch, script: Path) -> str:
        """Call sbatch once and return the job id."""
        try:
            text = slurm_command.run_once(
                ["sbatch", "--parsable", str(script)], make_environment(batch)
            )
        except CommandError as error:
            if re.match("steelyard: .*(netem|cache)", error.message):
                raise ConditionError(f"refused by the cluster: {error.message}") from error
            hint = "; submit again when some have ended" if FULL.search(error.message) else ""
            raise MissingError(f"{error}{hint}") from error
        job_id = text.strip().splitlines()[-1].partition(";")[0] if text.strip() else ""
        if not job_id.isdigit():
            raise MissingError(f"sbatch: expected a job id, found '{text.strip()}'")
        return job_id

    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        """Find the job by its name, in the queue and then in the accounting."""
        mine = [f"--name={batch.job_name}", f"--user={getpass.getuser()}"]
        found = slurm_command.run_once(["squeue", "--noheader", "--format=%F", *mine]).split()
        if found:
            return found[0]
        since = slurm_task_states.start_option(since_unix_s)
        try:
            rows = Sacct(tries=1).read_starts((), since, *mine)
        except NoAccountingError:  # without accounting the queue is the only source
            return None
        except MissingError as error:  # the job may exist: query again, never submit it twice
            raise LostError(str(error)) from error
        return next((row.array_job_id or row.job_id for row in rows), None)

    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the active runs that squeue reports."""
        tasks: dict[str, Task] = {}
        for chunk in split_chunks(submissions, CHUNK):
            tasks |= slurm_task_states.query_squeue(chunk, self.patient)
        return tasks

    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the ended runs that sacct reports."""
        tasks: dict[str, Task] = {}
        for chunk in split_chunks(submissions, CHUNK):
            tasks |= slurm_task_states.query_sacct(chunk)
        return tasks

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Run scancel for every array with an active task."""
        for jobs in split_chunks(self.active_jobs(submissions), CHUNK):
            slurm_command.run(["scancel", *jobs])


class AbsentSlurm(Slurm):
    """A stand-in for a dry run where no cluster answers: Slurm's defaults, without Steelyard's
    plugin."""

    is_absent = True

    @functools.cached_property
    def read_config(self) -> dict[str, str]:
        """Return no configuration: no cluster is known."""
        return {}

    def node_features(self) -> dict[str, frozenset[str]]:
        """Return no features: no cluster is known."""
        return {}

    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """Return no nodes: no cluster is known."""
        return AvailableNodes("the cluster", ())

    def rejection_reason(self, script: Path, batch: Batch) -> None:
        """Return None: no cluster can reject the script."""

    def remove_unsupported(self, batch: Batch) -> Batch:
        """Return the batch unchanged: it is rendered as with the plugin."""
        return batch

    @functools.cached_property
    def has_plugin(self) -> bool:
        """Return False: without a known plugin, its options are not used."""
        return False


def join_help_lines(help_text: str) -> list[str]:
    """Join each option's continuation lines in `sbatch --help`."""
    options: list[str] = []
    for line in help_text.splitlines():
        if re.match(r"\s*-", line) or not options:
            options.append(line)
        else:
            options[-1] += " " + line.strip()
    return options


def make_environment(batch: Batch) -> dict[str, str]:
    """Return the environment of sbatch and, by --export=ALL, of the job: only named variables."""
    names = [*EXPORTED, *slurm_command_environment.WAY, "SLURM_UMASK", *batch.job.export]
    names += [name for name, key in DEFAULTS.items() if getattr(batch.job, key) is None]
    return {name: os.environ[name] for name in names if name in os.environ}


# Options that Steelyard sets itself; a user's value would break the study.
OURS = {
    "array": "a", "begin": "b", "batch": "", "chdir": "D", "clusters": "M", "comment": "",
    "dependency": "d", "error": "e", "export": "", "export-file": "", "get-user-env": "",
    "help": "h", "hold": "H", "input": "i", "job-name": "J", "nodes": "N", "ntasks": "n",
    "open-mode": "", "output": "o", "parsable": "", "test-only": "", "uid": "", "usage": "",
    "version": "V", "wait": "W", "wrap": "",
}  # fmt: skip
KEY_OF = {
    "ntasks-per-node": "tasks_per_node", "cpus-per-task": "cpus_per_task", "c": "cpus_per_task", "time": "time_limit", "t": "time_limit",
    "exclusive": "exclusive", "partition": "partition", "p": "partition", "account": "account",
    "A": "account", "qos": "qos", "q": "qos", "tag": "tags", "nodes": "nodes", "N": "nodes",
}  # fmt: skip


def check_options(table: Table, key: str, options: Sequence[str]) -> None:
    """Raise UsageError for the first invalid or reserved option."""
    for option in options:
        if not re.fullmatch(OPTION, option):
            allowed = "options that begin with '-', values joined by '='"
            table.wrong(key, shlex.join(options), allowed)
        reject_reserved(table, key, option)


def reject_reserved(table: Table, key: str, option: str) -> None:
    """Raise UsageError for an option that Steelyard sets itself, or that has its own key."""
    long = option.startswith("--")
    name = option[2:].split("=", 1)[0] if long else option[1]
    # getopt_long accepts any prefix of a name as the name.
    same = str.startswith if long else str.__eq__
    for known, meant in KEY_OF.items():
        if (len(known) > 1) is long and same(known, name):
            table.fail(key, f"{shown(option)}: use [job] {meant} instead")
    if any(same(known, name) for known in (OURS if long else OURS.values())):
        table.fail(key, f"{shown(option)}: Steelyard sets this option itself: leave it out")
