"""Jobs of Torque and OpenPBS: their launch methods, and the reports of qstat.

pbs_mom starts a login shell, which runs the script and waits: the load also reads what that shell
has used until then (`parent`). Tasks of TM (pbsdsh) are children of pbs_mom itself."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from steelyard.analysis.sources.pbs import field_values, hook_totals, pbs_commands
from steelyard.analysis.sources.pbs.accounting_rows import HOOK
from steelyard.analysis.sources.pbs.field_values import parse_duration_s, parse_nodes
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import known_loads, limits
from steelyard.wrappers.calibrate.job_system import JobSystem, LaunchMethod, Report
from steelyard.wrappers.calibrate.known_loads import KnownLoad
from steelyard.wrappers.schedulers.pbs import command, dialects, script
from steelyard.wrappers.schedulers.pbs.node_request import NodeRequest
from steelyard.wrappers.schedulers.pbs.scheduler import Pbs, make_environment
from steelyard.wrappers.study.job_settings import Job

# The load has no job variables in its environment, so the shell, which has them, names the job.
SHELLS_RESULT = '"$PBS_JOBID,$PBS_NODENUM,%p.result"'
# A job's name must reach neither a shell nor a file's name.
ODD_NAME = "$(touch.odd);`x`&../y"


class PbsJobs(JobSystem):
    """The server that PBS_DEFAULT, PBS_SERVER or pbs.conf names."""

    title = "PBS"
    submit_program = "qsub"
    cancel_program = "qdel"
    commands: ClassVar[Any] = command
    where = "qstat"
    beside = (limits.LOGIN_SHELL,)
    first_actions = ("parent",)
    no_report = Report(True, None)
    restart_delay_s = 2.0
    elapsed_limit = staticmethod(limits.pbs_elapsed_limit)
    dialect: dialects.Dialect

    def __init__(self, program: Path, options: Sequence[str] = ()) -> None:
        super().__init__(program, options)
        self.known: dict[str, list[Report]] = {}  # a server may forget a job that has ended

    def check(self) -> Mapping[str, object]:
        """See JobSystem."""
        pbs = Pbs(Path(), patient=False)
        self.dialect, server = pbs.dialect, pbs.cluster_name()
        title = self.dialect.title
        if not pbs.has_node_part:
            raise MissingError(
                f"{title} answers, but Steelyard's {self.dialect.node_part} cannot be seen on its "
                "server: its admin installs it (docs/admin-pbs.md); without it: "
                "`steelyard calibrate --scheduler local`"
            )
        return {"pbs": f"{title} {pbs_commands.read_version()}", "server": server}

    def list_own_methods(self) -> Iterator[LaunchMethod]:
        """Yield methods with one node and one job, then with several nodes, jobs or starts."""
        load = known_loads.standard_load()
        first, pbsdsh = self.script_line(load), self.wrap_line(self.run_on_each_node(load))
        twice = shlex.join(["/bin/sh", "-c", f"{first}; {self.load_line(load)}; :"])
        unmarked = f"setsid {self.without_job_variables(load)}"
        yield self.script_method("qsub", load)
        yield self.script_method("qsub, two commands", load, twice, results=2)
        yield self.script_method("qsub, pbsdsh", load, pbsdsh, results=2, beside=(limits.PBSDSH,))
        yield self.script_method("qsub, own session", load, f"setsid {first}")
        yield self.script_method("qsub, own session without PBS_JOBID", load, unmarked)
        yield self.script_method("array", load, tasks=2, results=2)
        yield self.script_method("odd job name", load, job_name=ODD_NAME)
        yield self.script_method("two nodes, work on one", load, nodes=2, beside=(limits.DEMUX,))
        yield self.script_method(
            "two nodes, pbsdsh", load, pbsdsh,
            nodes=2, results=3, beside=(limits.DEMUX, limits.PBSDSH),
        )  # fmt: skip
        yield self.shared_node_methods()
        yield self.restarted_method("qrerun", "qrerun", options=("-r", "y"))
        ended = self.script_line(KnownLoad(load.name, (*load.actions, "note", "sleep=60")))
        yield self.script_method("qdel", load, ended, interrupt=("qdel",))
        orphans = next(one for one in known_loads.LOADS if one.name == "10 orphans")
        yield self.script_method(
            "qsub: 10 orphans without PBS_JOBID", orphans, self.without_job_variables(orphans)
        )

    def run_on_each_node(self, load: KnownLoad) -> str:
        """Return pbsdsh with a task on every node, which starts in the user's home. `--` is
        necessary: pbsdsh of OpenPBS takes a program's -c as its own."""
        inner = f'cd -- "$0" && exec {self.load_line(load)}'
        return f'{shlex.join(["pbsdsh", "--", "/bin/sh", "-c", inner])} "$PWD"'

    def without_job_variables(self, load: KnownLoad) -> str:
        """Return the load with an empty environment."""
        head = f"env -i {shlex.quote(str(self.program))} {SHELLS_RESULT}"
        return f"{head} {shlex.join([*self.first_actions, *load.actions])}"

    def command(
        self, method: LaunchMethod, line: str, folder: Path, node: str
    ) -> tuple[list[str], str]:
        """Return command and script; PBS starts a script in the user's home. The job's name is in
        the script, because Torque's qsub with a filter passes its arguments to a shell."""
        request = self.dialect.request_option(
            script.encode_request([f"--sample-rate={method.rate_hz}"])
        )
        wanted = NodeRequest(method.nodes, None)
        spec = f"nodes={node}" if node else None
        options = [request, *self.dialect.node_options(spec, wanted, Job(exclusive=False), ())]
        options += [self.dialect.array_option(method.tasks, None)] if method.tasks else []
        words = [word for option in options for word in option.split(" ", 1)]
        head = ["-j", "oe", "-o", f"{folder}/out", "-l", "walltime=00:05:00"]
        start = (
            f"#!/bin/sh\n#PBS -N {method.job_name}\ncd -- {shlex.quote(str(folder))} || exit 1\n"
        )
        argv = [self.submit_program, *head, *words, *self.options, *method.options]
        return argv, f"{start}exec {line}\n"

    def environment(self) -> Mapping[str, str]:
        """See JobSystem."""
        return make_environment()

    def find_node_for_two(self) -> str:
        """See JobSystem."""
        for name, about in dialects.parse_blocks(command.run(["pbsnodes", "-a"])).items():
            processors = about.get("np") or about.get("resources_available.ncpus") or "1"
            if "down" not in about.get("state", "") and processors != "1":
                return name
        return "none"

    def query_reports(self, jobs: Collection[str]) -> Mapping[str, list[Report]]:
        """Return the reports of qstat, which knows only the last start. A job that the server has
        forgotten has ended. If the server does not answer, the earlier reports count."""
        try:
            answers = pbs_commands.query_jobs(sorted(jobs))
        except MissingError:
            return self.known
        self.known |= {job: [parse_report(about)] for job, about in answers.items()}
        for job in {*jobs, *self.known} - answers.keys():
            if pbs_commands.is_requested(job, set(jobs)):
                (last,) = self.known.get(job, [self.no_report])
                self.known[job] = [replace(last, is_over=True)]
        return self.known


def parse_report(about: pbs_commands.Job) -> Report:
    """Return the report of the job's last start; PBS_NODENUM numbers its nodes in this order."""
    return Report(
        about.get("job_state") in field_values.OVER,
        parse_duration_s(about.get("resources_used.walltime")),
        parse_nodes(about.get("exec_host")),
        dict(hook_totals.parse(about.get(HOOK)) or {}),
    )
