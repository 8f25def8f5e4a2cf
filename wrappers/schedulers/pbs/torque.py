"""Torque: `-t`, `-l nodes=`, `-l other=`, and answers as XML."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.analysis.sources.pbs.field_values import split_job_id
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.schedulers.available_nodes import Node
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.dialect import DOWN, Attributes, Dialect
from steelyard.wrappers.schedulers.pbs.node_request import NodeRequest, format_nodes_spec
from steelyard.wrappers.study.job_settings import Job

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
