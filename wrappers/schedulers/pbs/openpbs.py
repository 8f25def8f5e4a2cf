"""OpenPBS and PBS Professional: `-J`, `-l select=`, `-l steelyard=`, and answers as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from steelyard.wrappers.base.check import Check
from steelyard.wrappers.schedulers.available_nodes import Node
from steelyard.wrappers.schedulers.pbs import command
from steelyard.wrappers.schedulers.pbs.dialect import DOWN, Attributes, Dialect, parse_blocks
from steelyard.wrappers.schedulers.pbs.node_request import NodeRequest, nodes_spec, select_spec
from steelyard.wrappers.study.job import Job

RESOURCE = "steelyard"
AVAILABLE = "resources_available."


class OpenPbs(Dialect):
    """OpenPBS 20 and later."""

    title = "OpenPBS"
    node_part = "hook"
    qsub = ("qsub", "-f")  # nothing that stays behind, with an environment of its own

    def array(self, number: int, at_once: int | None) -> str:
        """See Dialect."""
        return f"-J 0-{number - 1}" + ("" if at_once is None else f"%{at_once}")

    def output(self, path: str, number: int) -> str:
        """Without the index tasks would write over each other's."""
        return f"{path}-^array_index^" if number > 1 else path

    def place(
        self, spec: str | None, wanted: NodeRequest, job: Job, others: Sequence[str]
    ) -> list[str]:
        """A chunk a node, alone on it, unless the study says where itself."""
        if spec is not None and spec.startswith("nodes="):
            alone = "#excl" if job.exclusive and "#" not in spec else ""
            return [f"-l {nodes_spec(spec, wanted)}{alone}"]
        own_place = any(option.startswith("-l place=") for option in others)
        whole = select_spec(spec or f"select={wanted.nodes}", wanted, not own_place)
        place = "place=scatter:exclhost" if job.exclusive else "place=scatter"
        return [f"-l {whole}"] + ([] if own_place else [f"-l {place}"])

    def node_option(self, node: str) -> str:
        """A chunk on that host."""
        return f"-l select=1:host={node}"

    def request(self, text: str) -> str:
        """Our resource, which the hook reads."""
        return f"-l {RESOURCE}={text}"

    def after(self, job_id: str) -> str:
        """Of arrays, too."""
        return f"-W depend=afterany:{job_id}"

    def named(self, name: str, user: str) -> list[str]:
        """-x: in the server's history, too."""
        return command.run_once(["qselect", "-x", "-u", user, "-N", name]).split()

    def nodes(self) -> list[Node]:
        """Its hosts, with the resources that are true; a host is up where one of its vnodes is."""
        found: dict[str, Node] = {}
        for vnode, about in parse_blocks(command.run_once(["pbsnodes", "-a"])).items():
            name = about.get(f"{AVAILABLE}host", vnode)
            other = found.get(name, Node(name, up=False))
            found[name] = Node(
                name,
                features=other.features | features_of(about),
                up=other.up or not DOWN.search(about.get("state", "unknown")),
            )
        return list(found.values())

    def on_node(self, node: str, argv: Sequence[str]) -> list[str]:
        """By the mom, through TM."""
        return ["pbs_tmrsh", node, *argv]

    def most_runs(self, server: Attributes) -> int | None:
        """max_array_size; without it the server's default."""
        text = server.get("max_array_size", "")
        return int(text) if text.isdigit() else 10_000

    def has_node_part(self) -> bool:
        """The resource that our hook reads is known to the server."""
        done = command.answer(["qmgr", "-c", f"list resource {RESOURCE}"])
        return done.returncode == 0 and f"Resource {RESOURCE}" in done.stdout

    def checks(self) -> Iterator[Check]:
        """The resource by which jobs ask; the hook itself only a manager sees."""
        if self.has_node_part():
            yield Check("hook", "ok", f"the server knows the resource {RESOURCE}")
        else:
            yield Check(
                "hook", "warning", f"the server has no resource {RESOURCE}: jobs are not measured",
                "an admin installs the hook: docs/admin-pbs.md",
            )  # fmt: skip


def features_of(attributes: Mapping[str, str]) -> set[str]:
    """`virtual` of `resources_available.virtual = True`."""
    pairs = ((key.removeprefix(AVAILABLE), value) for key, value in attributes.items()
             if key.startswith(AVAILABLE))  # fmt: skip
    return {key for key, value in pairs if value.lower() == "true"}
