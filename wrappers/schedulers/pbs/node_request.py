"""Node specifications of PBS: `nodes=2:virtual`, `nodes=host1+host2`, `select=2:virtual=True`.

The study's specification is completed from its [job] table: the number of nodes, the processors of
each, their properties. Nothing is guessed: a contradiction is a UsageError."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.jobscripts import plurals
from steelyard.wrappers.base.errors import UsageError

PROPERTIES = re.compile(r"[A-Za-z0-9_.-]+(?:&[A-Za-z0-9_.-]+)*")


@dataclass(frozen=True)
class NodeRequest:
    """What [job] requests of every node, and how many nodes a run has."""

    nodes: int
    each: int | None  # processors of a node
    properties: tuple[str, ...] = ()
    tasks: int | None = None  # of a node; None: as many as it has processors


def parse_properties(constraint: str | None) -> tuple[str, ...]:
    """Return the properties `a` and `b` of `a&b`. Raises UsageError if PBS cannot express the
    constraint."""
    if constraint is None:
        return ()
    if not PROPERTIES.fullmatch(constraint):
        raise UsageError(
            f"job.constraint = '{constraint}': on PBS it is a property of nodes, or several joined "
            "by '&'; anything else is said in [job] options, as -l nodes=… or -l select=…"
        )
    return tuple(constraint.split("&"))


def split_spec(spec: str) -> list[str]:
    """Return `a` and `b` of `nodes=a+b`; what follows `#` applies to all of them and is dropped."""
    return spec.partition("=")[2].partition("#")[0].split("+")


def count_nodes(chunk: str) -> int | None:
    """Return the number of nodes that a part requests; None for a named node."""
    head = chunk.partition(":")[0]
    return int(head) if head.isdigit() else None


def select_named_nodes(spec: str, nodes: int) -> list[str]:
    """Return the parts. Of named nodes, only as many as a run has: one list serves all levels."""
    parts = split_spec(spec)
    named = all(count_nodes(chunk) is None for chunk in parts)
    return parts[:nodes] if named else parts


def check_node_count(spec: str, parts: Sequence[str], nodes: int) -> None:
    """Raise UsageError unless the parts request as many nodes as a run has."""
    found = sum(1 if (count := count_nodes(chunk)) is None else count for chunk in parts)
    if found != nodes:
        raise UsageError(
            f"'{spec}' asks for {plurals.counted(found, 'node')}, and a run has {nodes}: "
            "write {nodes} for their number, name as many as the largest run has, or mend [job] nodes or [factors] nodes"
        )


def format_nodes_spec(spec: str, wanted: NodeRequest) -> str:
    """Return `nodes=…`; processors and properties are added to each part that does not set them."""
    parts = select_named_nodes(spec, wanted.nodes)
    check_node_count(spec, parts, wanted.nodes)
    chunks = []
    for chunk in parts:
        fields = chunk.split(":")
        fields += [one for one in wanted.properties if one not in fields]
        if wanted.each is not None and not any(word.startswith("ppn=") for word in fields):
            fields.append(f"ppn={wanted.each}")
        chunks.append(":".join(fields))
    _, mark, rest = spec.partition("#")
    return f"nodes={'+'.join(chunks)}{mark}{rest}"


def format_select_spec(spec: str, wanted: NodeRequest, one_a_node: bool) -> str:
    """Return `select=…` of OpenPBS, completed likewise; `one_a_node`: each chunk is a separate
    node."""
    parts = split_spec(spec)
    if one_a_node:
        hosts = all("host=" in chunk for chunk in parts)
        parts = parts[: wanted.nodes] if hosts else parts
        check_node_count(spec, parts, wanted.nodes)
    return f"select={'+'.join(format_chunk(chunk, wanted) for chunk in parts)}"


def format_chunk(chunk: str, wanted: NodeRequest) -> str:
    """Format one chunk."""
    fields = chunk.split(":")
    names = [word.partition("=")[0] for word in fields]
    fields += [f"{one}=True" for one in wanted.properties if one not in names]
    if wanted.each is not None:
        sizes = {"ncpus": wanted.each, "mpiprocs": wanted.tasks or wanted.each}
        fields += [f"{key}={size}" for key, size in sizes.items() if key not in names]
    return ":".join(fields)
