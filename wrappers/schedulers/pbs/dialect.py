"""The differences between Torque and OpenPBS; everything else of PBS is the same for both."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.schedulers.available_nodes import Node
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.node_request import NodeRequest
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
