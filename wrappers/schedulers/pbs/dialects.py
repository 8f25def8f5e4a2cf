"""The differences between Torque and OpenPBS: their interface, and each of them; everything else of
PBS is the same for both.

OpenPBS and PBS Professional: `-J`, `-l select=`, `-l steelyard=`, and answers as text. Torque: `-t`,
`-l nodes=`, `-l other=`, and answers as XML."""

from __future__ import annotations

import re
import string
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar
from xml.etree import ElementTree

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.analysis.sources.pbs.field_values import split_job_id
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.schedulers.available_nodes import Node
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.node_request import (
    NodeRequest,
    format_nodes_spec,
    format_select_spec,
)
from steelyard.wrappers.study.job_settings import Job

Attributes = Mapping[str, str]
# States in pbsnodes of a node that runs nothing, for either server.
DOWN = re.compile(r"down|offline|unknown|stale|maintenance|unresolvable", re.IGNORECASE)


class Dialect(ABC):
    """One of the two servers: its options of qsub, and how the output of its programs is parsed."""

    title: ClassVar[str]
    node_part: ClassVar[str]  # a description of what Steelyard runs on its nodes
    qsub: ClassVar[tuple[str, ...]]  # with the options that a script cannot have

    # --- words of qsub ------------------------------------------------------------------------

    @abstractmethod
    def array_option(self, number: int, at_once: int | None) -> str:
        """Return the option for `number` runs, at most `at_once` of them at the same time."""

    @abstractmethod
    def output_option(self, path: str, number: int) -> str:
        """Return the option for the output before a run has its folder; each task gets its own
        file."""

    @abstractmethod
    def node_options(
        self, spec: str | None, wanted: NodeRequest, job: Job, others: Sequence[str]
    ) -> list[str]:
        """Return the options for nodes; `spec` is the study's own node specification."""

    @abstractmethod
    def node_option(self, node: str) -> str:
        """Return the option for one node by its name."""

    @abstractmethod
    def request_option(self, text: str) -> str:
        """Return the option that passes the text to the node."""

    @abstractmethod
    def dependency_option(self, job_id: str) -> str:
        """Return the option that delays the start until this job has ended, whatever its exit
        code."""

    # --- what it reports ----------------------------------------------------------------------

    @abstractmethod
    def find_job_ids(self, name: str, user: str) -> list[str]:
        """Return the ids of a user's jobs and arrays with that name, including ended jobs."""

    @abstractmethod
    def read_nodes(self) -> list[Node]:
        """Return the server's nodes, each by the name that node_option takes."""

    @abstractmethod
    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` on a node of the current job."""

    @abstractmethod
    def max_runs(self, server: Attributes) -> int | None:
        """Return the largest number of tasks in an array, by the server's attributes."""

    @abstractmethod
    def has_node_part(self) -> bool:
        """Return whether Steelyard is installed on the nodes, as far as a user can see."""

    @abstractmethod
    def run_checks(self) -> Iterator[Check]:
        """Yield the checks of `steelyard doctor` for this kind of server."""

    def read_server(self, patient: bool) -> tuple[str, Attributes]:
        """Return the server's name and attributes. If `patient`, a lost server is queried again."""
        query = command.run if patient else command.run_once
        return parse_server(query(["qstat", "-B", "-f"]))


def parse_server(text: str) -> tuple[str, dict[str, str]]:
    """Parse `qstat -B -f`; continued lines begin with a tab."""
    lines = text.replace("\n\t", "").splitlines()
    name = next((line.partition(":")[2].strip() for line in lines if line[:7] == "Server:"), "")
    pairs = (line.partition(" = ") for line in lines if " = " in line)
    return name, {key.strip(): value.strip() for key, _, value in pairs}


def parse_blocks(text: str) -> dict[str, dict[str, str]]:
    """Parse `pbsnodes -a`: a name on its own line, its attributes below it."""
    blocks: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        key, equals, value = line.partition(" = ")
        if re.match(r"\S", line):
            blocks[line.strip()] = {}
        elif equals and blocks:
            blocks[next(reversed(blocks))][key.strip()] = value.strip()
    return blocks


RESOURCE = "steelyard"
AVAILABLE = "resources_available."


class OpenPbs(Dialect):
    """OpenPBS 20 and later."""

    title = "OpenPBS"
    node_part = "hook"
    qsub = ("qsub", "-f")  # no background qsub, whose environment would be that of an earlier call

    def array_option(self, number: int, at_once: int | None) -> str:
        """See Dialect."""
        return f"-J 0-{number - 1}" + ("" if at_once is None else f"%{at_once}")

    def output_option(self, path: str, number: int) -> str:
        """Return the option's path; the array index keeps tasks from overwriting each other's
        file."""
        return f"{path}-^array_index^" if number > 1 else path

    def node_options(
        self, spec: str | None, wanted: NodeRequest, job: Job, others: Sequence[str]
    ) -> list[str]:
        """Request one chunk for each node, exclusively, unless the study specifies the nodes."""
        if spec is not None and spec.startswith("nodes="):
            alone = "#excl" if job.exclusive and "#" not in spec else ""
            return [f"-l {format_nodes_spec(spec, wanted)}{alone}"]
        has_own_placement = any(option.startswith("-l place=") for option in others)
        select = format_select_spec(spec or f"select={wanted.nodes}", wanted, not has_own_placement)
        placement = "place=scatter:exclhost" if job.exclusive else "place=scatter"
        return [f"-l {select}"] + ([] if has_own_placement else [f"-l {placement}"])

    def node_option(self, node: str) -> str:
        """Request one chunk on that host."""
        return f"-l select=1:host={node}"

    def request_option(self, text: str) -> str:
        """Request Steelyard's resource, which the hook reads."""
        return f"-l {RESOURCE}={text}"

    def dependency_option(self, job_id: str) -> str:
        """Return the option; afterany works for arrays, too."""
        return f"-W depend=afterany:{job_id}"

    def find_job_ids(self, name: str, user: str) -> list[str]:
        """Run qselect with -x, which includes the server's history."""
        return command.run_once(["qselect", "-x", "-u", user, "-N", name]).split()

    def read_nodes(self) -> list[Node]:
        """Return the hosts, with the resources that are true; a host is up if one of its vnodes
        is."""
        found: dict[str, Node] = {}
        for vnode, about in parse_blocks(command.run_once(["pbsnodes", "-a"])).items():
            name = about.get(f"{AVAILABLE}host", vnode)
            other = found.get(name, Node(name, up=False))
            found[name] = Node(
                name,
                features=other.features | read_features(about),
                up=other.up or not DOWN.search(about.get("state", "unknown")),
            )
        return list(found.values())

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the pbs_tmrsh command: the mom starts the program through TM."""
        return ["pbs_tmrsh", node, *argv]

    def max_runs(self, server: Attributes) -> int | None:
        """Return max_array_size; without that attribute, the server's default."""
        text = server.get("max_array_size", "")
        return int(text) if text.isdigit() else 10_000

    def has_node_part(self) -> bool:
        """Return whether the server knows the resource that the hook reads."""
        done = command.run_program(["qmgr", "-c", f"list resource {RESOURCE}"])
        return done.returncode == 0 and f"Resource {RESOURCE}" in done.stdout

    def run_checks(self) -> Iterator[Check]:
        """Check the resource that jobs request; only a manager can see the hook itself."""
        if self.has_node_part():
            yield Check("hook", "ok", f"the server knows the resource {RESOURCE}")
        else:
            yield Check(
                "hook", "warning", f"the server has no resource {RESOURCE}: jobs are not measured",
                "an admin installs the hook: docs/admin-pbs.md",
            )  # fmt: skip


def read_features(attributes: Mapping[str, str]) -> set[str]:
    """Return the resources that are true: `virtual` for `resources_available.virtual = True`."""
    pairs = ((key.removeprefix(AVAILABLE), value) for key, value in attributes.items()
             if key.startswith(AVAILABLE))  # fmt: skip
    return {key for key, value in pairs if value.lower() == "true"}


QUOTING_VERSION = "6.1.3"
PLAIN = f"{string.ascii_letters}{string.digits}/._+@=~%#-"  # allowed in a path


class Torque(Dialect):
    """Torque 4 to 6; the submit filter needs 6.1.3."""

    title = "Torque"
    node_part = "prologue and epilogue"
    qsub = ("qsub",)

    def array_option(self, number: int, at_once: int | None) -> str:
        """See Dialect."""
        return f"-t 0-{number - 1}" + ("" if at_once is None else f"%{at_once}")

    def output_option(self, path: str, number: int) -> str:
        """Return the option's path, to which pbs_server adds -INDEX. Raises UsageError for a name
        that pbs_mom cannot copy to: the output of every run would stay on its node."""
        odd = sorted(set(path) - set(PLAIN))
        if odd:
            raise UsageError(
                f"the study's folder has {', '.join(map(repr, odd))} in its name, and Torque cannot "
                f"deliver output to {path}: choose another folder, with --dir"
            )
        return path

    def node_options(
        self, spec: str | None, wanted: NodeRequest, job: Job, others: Sequence[str]
    ) -> list[str]:
        """Return the options for nodes; `-n` keeps other jobs off the nodes."""
        if spec is not None and not spec.startswith("nodes="):
            raise UsageError(f"'-l {spec}' is for OpenPBS, and this server is Torque: -l nodes=…")
        spec_text = format_nodes_spec(spec or f"nodes={wanted.nodes}", wanted)
        return [f"-l {spec_text}"] + (["-n"] if job.exclusive else [])

    def node_option(self, node: str) -> str:
        """Request the node by its name."""
        return f"-l nodes={node}"

    def request_option(self, text: str) -> str:
        """Request a Resource_List entry, which the prologue receives."""
        return f"-l other=steelyard:{text}"

    def dependency_option(self, job_id: str) -> str:
        """Return the option; the id of an array has empty brackets."""
        kind = "afteranyarray" if "[]" in job_id else "afterany"
        return f"-W depend={kind}:{job_id}"

    def find_job_ids(self, name: str, user: str) -> list[str]:
        """Find arrays by their first task, NAME-0: qselect does not list arrays. Then find single
        jobs."""
        mine = ["qselect", "-u", user, "-N"]
        tasks = map(split_job_id, command.run_once([*mine, f"{name}-0"]).split())
        arrays = [array for task in tasks if task is not None and (array := task.format_array_id())]
        return arrays or command.run_once([*mine, name]).split()

    def read_nodes(self) -> list[Node]:
        """Return the nodes with their properties. Raises MissingError if the answer is not XML."""
        try:
            nodes = ElementTree.fromstring(command.run_once(["pbsnodes", "-x"]))
        except ElementTree.ParseError as error:
            raise MissingError(f"pbsnodes -x is not XML: {error}") from None
        return [
            Node(
                node.findtext("name", ""),
                features=frozenset(filter(None, node.findtext("properties", "").split(","))),
                up=not DOWN.search(node.findtext("state", "unknown")),
            )
            for node in nodes.iter("Node")
        ]

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the pbsdsh command: the mom starts the program through TM."""
        return ["pbsdsh", "-h", node, *argv]

    def max_runs(self, server: Attributes) -> int | None:
        """Return max_job_array_size; without that attribute the array has no limit."""
        text = server.get("max_job_array_size", "")
        return int(text) if text.isdigit() else None

    def has_node_part(self) -> bool:
        """Return whether the file that qsub reads names Steelyard's submit filter."""
        return "steelyard" in (read_submit_filter() or "")

    def run_checks(self) -> Iterator[Check]:
        """Check the submit filter, which a user can see; only root can see the prologues."""
        program = read_submit_filter()
        if self.has_node_part():
            yield check_filter(program or "", pbs_commands.read_version())
        elif program is None and pbs_commands.has_mom(pbs_commands.find_torque_home()):
            yield Check(
                "submit filter", "ok",
                "qsub asks none, as on a node where no user submits; where users do: "
                "docs/admin-pbs.md",
            )  # fmt: skip
        else:
            yield Check(
                "submit filter", "warning",
                f"qsub asks {program or 'none'}: jobs cannot ask for conditions by #STEELYARD lines,"
                " and studies do not see whether the prologues are there",
                "an admin installs it: docs/admin-pbs.md",
            )  # fmt: skip


def check_filter(program: str, version: str | None) -> Check:
    """Check qsub's version: only 6.1.3 quotes its arguments for the shell that starts a filter."""
    found = f"qsub asks {program}"
    if version is None or f"{version}.".startswith(f"{QUOTING_VERSION}."):
        return Check("submit filter", "ok", found)
    return Check(
        "submit filter", "warning",
        f"{found}, but qsub {version} hands its arguments to a shell unquoted: "
        "`;` or `$(…)` in an argument is executed, `\\,` loses its backslash",
        f"upgrade Torque to {QUOTING_VERSION}, or take SUBMITFILTER out of torque.cfg: "
        "docs/admin-pbs.md",
    )  # fmt: skip


def read_submit_filter() -> str | None:
    """Return the submit filter that torque.cfg configures; None without a filter."""
    try:
        text = (pbs_commands.find_torque_home() / "torque.cfg").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return None
    found = re.findall(r"^\s*SUBMITFILTER\s+(\S+)", text, re.MULTILINE | re.IGNORECASE)
    return found[-1] if found else None
