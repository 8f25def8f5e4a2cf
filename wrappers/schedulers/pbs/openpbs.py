"""OpenPBS and PBS Professional: `-J`, `-l select=`, `-l steelyard=`, and answers as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.schedulers.available_nodes import Node
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.dialect import DOWN, Attributes, Dialect, parse_blocks
from steelyard.wrappers.schedulers.pbs.node_request import (
    NodeRequest,
    format_nodes_spec,
    format_select_spec,
)
from steelyard.wrappers.study.job_settings import Job

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
