"""The scheduler PBS: qsub, qstat, qdel, qselect and pbsnodes, as any user may call them."""

from __future__ import annotations

import functools
import getpass
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.analysis.sources.accounting_readers import READERS
from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import ConditionError, MissingError
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node, select_nodes
from steelyard.wrappers.schedulers.base import (
    Batch,
    Scheduler,
    Task,
    index_by_job,
    split_chunks,
)
from steelyard.wrappers.schedulers.pbs import command, doctor_checks
from steelyard.wrappers.schedulers.pbs import options as pbs_options
from steelyard.wrappers.schedulers.pbs import script as pbs_script
from steelyard.wrappers.schedulers.pbs import task_states as pbs_task_states
from steelyard.wrappers.schedulers.pbs.dialects import Attributes, Dialect, OpenPbs, Torque
from steelyard.wrappers.schedulers.pbs.node_request import parse_properties
from steelyard.wrappers.schedulers.retries import CommandError, retry, submit_once
from steelyard.wrappers.study.table_reader import Table

DIALECTS: Mapping[str, type[Dialect]] = {"torque": Torque, "openpbs": OpenPbs}
# That too many jobs are there, not that a job requests too much ("exceeds queue resource limits").
FULL = re.compile("^(?!.*resource limits).*(?:limit|exceed|too many|maximum number)", re.IGNORECASE)
JOB_ID = re.compile(r"\d+(\[\])?(\.\S+)?")
CHUNK = 200  # job ids on one command line; each may stand for an array of thousands


class Pbs(Scheduler):
    """The server that PBS_DEFAULT, PBS_SERVER or pbs.conf names."""

    name = "pbs"
    # qsub takes `host:path`, lists with commas, and a placeholder for the array's index.
    not_in_paths = "\\:,^\"'"
    job_variables = ("PBS",)

    @classmethod
    def is_installed(cls) -> bool:
        """Return whether PBS is installed: Slurm's imitation of qsub does not count."""
        return doctor_checks.is_installed()

    @classmethod
    def run_checks(cls) -> Iterator[Check]:
        """Check its commands, its server and Steelyard's installation on it."""
        return doctor_checks.run_checks()

    def make_stand_in(self) -> tuple[Scheduler, str]:
        """Return a scheduler that queries no server, and its assumptions."""
        return AbsentPbs(self.study_dir), "OpenPBS and its defaults, with our hook"

    @functools.cached_property
    def dialect(self) -> Dialect:
        """Return Torque or OpenPBS. Raises MissingError if neither is installed."""
        found = pbs_commands.detect_dialect() if doctor_checks.is_installed() else None
        if found is None:
            raise MissingError(f"{doctor_checks.explain_absence()}: {command.NO_PBS}")
        return DIALECTS[found]()

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the command within a job that has the node; elsewhere none: moms start programs
        only for jobs."""
        return self.dialect.node_command(node, argv) if "PBS_JOBID" in os.environ else []

    @functools.cached_property
    def read_server(self) -> tuple[str, Attributes]:
        """Return the server's name and attributes. Raises MissingError, which says what to do, if
        it does not answer."""
        dialect = self.dialect
        try:
            return dialect.read_server(self.patient)
        except CommandError as error:
            raise MissingError(f"no PBS server answers ({error}): {command.NO_PBS}") from error

    @functools.cached_property
    def has_node_part(self) -> bool:
        """Return whether Steelyard's prologue or hook exists to read the request."""
        return self.dialect.has_node_part()

    def cluster_name(self) -> str | None:
        """Return the server's name."""
        return self.read_server[0] or None

    def max_runs(self) -> int | None:
        """Return the limit of the server's attributes."""
        return self.dialect.max_runs(self.read_server[1])

    @classmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        """Check options of qsub."""
        pbs_options.check_options(table, key, options)

    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        """Return the study's own options, or nodes with the property of the level's name."""
        options = (
            [f"-l nodes={nodes}:{level}"] if given is None else pbs_options.normalize_options(given)
        )
        return [option.replace("{nodes}", str(nodes)) for option in options]

    def node_options(self, node: str) -> list[str]:
        """Return the dialect's option for that node."""
        return [self.dialect.node_option(node)]

    def selects_nodes(self, batch: Batch) -> bool:
        """Return whether the study selects nodes by a specification, a queue or a property."""
        options = pbs_options.normalize_options(pbs_options.split_options(batch.job.options))
        placing, _ = pbs_options.split_node_options([*batch.options, *options])
        return bool(placing or batch.job.constraint or batch.job.partition)

    def node_features(self) -> dict[str, frozenset[str]]:
        """Return the features that pbsnodes reports."""
        return {node.name: node.features for node in self.read_nodes}

    @functools.cached_property
    def read_nodes(self) -> list[Node]:
        """Return the nodes that pbsnodes reports; empty if the server does not answer."""
        try:
            return self.dialect.read_nodes()
        except MissingError:
            return []

    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """Return the nodes with the properties of [job] constraint. Which of them a queue has is
        unknown."""
        wanted = parse_properties(batch.job.constraint)
        nodes, _ = select_nodes(self.read_nodes, wanted)
        return AvailableNodes("the server", nodes, is_all=False)

    def render_script(self, batch: Batch, after: str | None) -> str:
        """Return the batch script. Raises ConditionError for conditions that need Steelyard on the
        nodes."""
        return pbs_script.render_script(batch, after, self.dialect, self.encode_request(batch))

    def encode_request(self, batch: Batch) -> str | None:
        """Return the encoded request for the node, or None if Steelyard is not on the nodes and the
        batch requests no condition. Raises ConditionError if it does."""
        if self.has_node_part:
            return pbs_script.encode_request(pbs_script.request_arguments(batch))
        requested = [o for o in batch.options if o.startswith("--") and o != "--cache=warm"]
        if requested:
            raise ConditionError(
                f"{requested[0]}: Steelyard's {self.dialect.node_part} cannot be seen on this server, "
                "so the condition cannot be asked for: its admin installs it (docs/admin-pbs.md)"
            )
        return None

    def submit(self, batch: Batch, script: Path) -> str:
        """Submit with qsub."""
        environment = pbs_script.render_environment(batch)  # [job] export may name secrets
        path = script.with_suffix(".env")
        ledger.write_atomically(path, environment, durable=False, mode=0o600)
        since = script.stat().st_mtime
        return submit_once(
            lambda: self.qsub(batch, script), lambda: self.find_submission(batch, since)
        )

    def qsub(self, batch: Batch, script: Path) -> str:
        """Call qsub once and return the job id."""
        try:
            argv = [*self.dialect.qsub, str(script)]
            text = command.run_once(argv, make_environment(), batch.study_dir)
        except CommandError as error:
            if "ependency" in error.message and pbs_script.remove_dependency(script):
                return self.qsub(batch, script)  # that job has ended, and the server forgot it
            if re.match("steelyard: .*(netem|cache)", error.message):
                raise ConditionError(f"refused by the server: {error.message}") from error
            hint = "; submit again when some have ended" if FULL.search(error.message) else ""
            raise MissingError(f"{error}{hint}") from error
        job_id = text.strip().splitlines()[-1].strip() if text.strip() else ""
        if not JOB_ID.fullmatch(job_id):
            raise MissingError(f"qsub: expected a job id, found '{text.strip()}'")
        return job_id

    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        """Find the job by its name. A server that keeps no ended jobs finds only active ones."""
        found = self.dialect.find_job_ids(pbs_script.job_name(batch), getpass.getuser())
        return next(iter(found), None)

    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the active runs that qstat reports."""
        jobs = index_by_job(submissions)
        if jobs:
            self.check_server(submissions)
        tasks: dict[str, Task] = {}
        for chunk in split_chunks(list(jobs), CHUNK):
            tasks |= pbs_task_states.parse_active(self.query_jobs(chunk), jobs)
        return tasks

    def check_server(self, submissions: Sequence[Submission]) -> None:
        """Raise MissingError for jobs of another server: this server would report that none
        exist."""
        own_server = self.cluster_name() or ""
        names = {entry.cluster for entry in submissions if entry.cluster}
        foreign = sorted(
            name for name in names if name.partition(".")[0] != own_server.partition(".")[0]
        )
        if foreign:
            raise MissingError(
                f"jobs of this study are of the PBS server {', '.join(foreign)}, and {own_server or 'another'} "
                "answers: name theirs in PBS_DEFAULT (Torque), PBS_SERVER or PBS_CONF_FILE (OpenPBS)"
            )

    def query_jobs(self, job_ids: Sequence[str]) -> dict[str, Attributes]:
        """Return what qstat reports on jobs; a lost server is queried again if the scheduler is
        patient."""

        def query() -> dict[str, Attributes]:
            try:
                return dict(pbs_commands.query_jobs(job_ids, command.TIMEOUT_S))
            except MissingError as error:
                raise command.classify_error(error) from error

        return retry(query) if self.patient else query()

    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the ended runs of the accounting, or of qstat where the accounting cannot be
        read."""
        jobs = index_by_job(submissions)
        return pbs_task_states.query_ended(READERS[self.name]().rows, jobs) if jobs else {}

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Run qdel for every job with an active run."""
        for jobs in split_chunks(self.active_jobs(submissions), CHUNK):
            retry(functools.partial(command.run_for_jobs, ["qdel", *jobs]))


class AbsentPbs(Pbs):
    """A stand-in for a dry run where no server answers: OpenPBS with Steelyard's hook."""

    is_absent = True

    @functools.cached_property
    def dialect(self) -> Dialect:
        """Return the dialect of the installed commands; OpenPBS if none are installed."""
        return DIALECTS[pbs_commands.detect_dialect() or "openpbs"]()

    @functools.cached_property
    def read_server(self) -> tuple[str, Attributes]:
        """Return no name and no attributes: no server is known."""
        return "", {}

    @functools.cached_property
    def read_nodes(self) -> list[Node]:
        """Return no nodes: no server is known."""
        return []

    @functools.cached_property
    def has_node_part(self) -> bool:
        """Return True: the script is rendered as for nodes with Steelyard."""
        return True


def make_environment() -> dict[str, str]:
    """Return the variables that qsub needs to find the server or writes into the job, and no
    others."""
    names = (*pbs_script.EXPORTED, *pbs_commands.WAY)
    return {name: os.environ[name] for name in names if name in os.environ} | {"LC_ALL": "C.UTF-8"}
