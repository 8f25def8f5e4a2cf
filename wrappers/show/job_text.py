"""One job on one screen."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from steelyard.analysis.job.job_view import JobView, NodeView, describe_network
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.stats.number_format import format_binary
from steelyard.analysis.store.energy_shares import ADMINISTRATOR
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console, errors
from steelyard.wrappers.show import efficiency_text, node_usage, terminal_text, time_series
from steelyard.wrappers.show.job_data import JobDetails
from steelyard.wrappers.show.terminal_text import format_joules, group_by_reason

if TYPE_CHECKING:
    from steelyard.analysis.store.energy_shares import EnergyShare


def print_job(details: JobDetails) -> None:
    """Print the screen, section by section."""
    view = details.view
    print_head(details)
    efficiency_text.print_efficiency(details)
    time_series.print_time_series(details)
    efficiency_text.print_advice(details)
    print_places(view)
    print_network(view)
    node_usage.print_usage(view)
    print_shares(details.shares)
    print_idle_faults(view)
    node_usage.print_gpus(view)
    print_comment(view)
    print_database_usage(view)
    print_missing(view)


def print_head(details: JobDetails) -> None:
    """Print the job's data in the accounting, and why it was refused, if it was."""
    view, row = details.view, details.view.row
    if row is None:
        console.print_line(f"job {view.job_id}, from its records alone")
        print_refused(view)
        return
    name = row.job_id if row.task_id == row.job_id else view.job_id
    also = f" (array task {row.task_id})" if row.task_id and row.task_id != name else ""
    console.print_line(
        f"job {name}{also}: {row.name or '–'}, of {row.user or '–'} on {row.cluster or '–'}"
    )
    code = "" if row.exit_code is None else f", exit code {row.exit_code}"
    code = "" if row.reason and row.reason.endswith(code[2:]) else code
    why = f" ({row.reason})" if row.reason else ""
    console.print_line(f"  {row.state}{why}{code}")
    print_refused(view)
    if view.allocation is not None:
        console.print_line(
            f"  partition {view.allocation.partition or '–'}, account {view.allocation.account or '–'}"
        )
    suspended = f", suspended for {format_clock(row.suspended_s)}" if row.suspended_s else ""
    console.print_line(
        f"  submitted {format_clock(row.submit_unix_s)}, started {format_clock(row.start_unix_s)}, {format_times(details)}{suspended}"
    )
    if view.earlier_starts:
        console.print_line(
            f"  started {counted(len(view.earlier_starts), 'time')} before; this is the last start"
        )


def format_times(details: JobDetails) -> str:
    """Return, for example, `ended 2026-11-26 21:04:05, took 65 s`; for a running job its time so
    far."""
    row, took = details.view.row, efficiency_text.format_elapsed(details.used.time.used)
    if row is not None and row.state == "running":
        return f"running for {took}"
    return f"ended {format_clock(None if row is None else row.end_unix_s)}, took {took}"


def print_refused(view: JobView) -> None:
    """Print conditions that were requested and not applied."""
    for line in view.refused:
        console.print_line(f"  {line}")
    row, comment = view.row, view.admin_comment or {}
    if row is None or view.refused or view.nodes or row.exit_code != errors.CONDITION:
        return
    if comment.get("netem"):
        console.print_line(
            f"  --netem={comment['netem']} could not be applied: the job's own output says why "
            "(its record cannot be read here)"
        )


def format_clock(unix_s: float | None) -> str:
    """Format a Unix time in the local zone of this machine."""
    if unix_s is None:
        return "–"
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def print_places(view: JobView) -> None:
    """Print where the job ran."""
    if not view.nodes:
        console.print_line(f"  nodes: {', '.join(view.all_nodes) or '–'}")
        return
    rows = [
        (
            n.node,
            n.values["node_type"],
            format_layers(n),
            n.values["kernel"],
            format_devices(n),
            format_tags(n),
        )
        for n in view.nodes
    ]
    headings = ("node", "type", "virtualization", "kernel", "network", "tags")
    room = terminal_text.terminal_columns()
    console.print_table(
        *terminal_text.transpose_wide_table(headings, rows, room), title="where it ran"
    )


def format_layers(node: NodeView) -> str | None:
    """Return, for example, `docker in kvm`; `none` if both layers are known to be absent."""
    container, machine = node.values["container"], node.values["vm"]
    real = [str(name) for name in (container, machine) if name not in (None, "none")]
    if real:
        return " in ".join(real)
    return "none" if container == machine == "none" else None


def format_devices(node: NodeView) -> str | None:
    """Return the counted devices with their kinds, or None."""
    found = node.record.get("network.devices")
    if not isinstance(found, list):
        return None
    return ", ".join(
        f"{d.get('name')} ({d.get('kind')})"
        for d in found
        if isinstance(d, dict) and d.get("counted")
    )


def format_tags(node: NodeView) -> str | None:
    """Return, for example, `k=v, …`; None without tags."""
    return ", ".join(f"{key}={value}" for key, value in node.record.tags.items()) or None


def print_network(view: JobView) -> None:
    """Print network conditions, a line or two per node; equal nodes are not grouped."""
    lines = [line for node in view.nodes for line in describe_network(node)]
    if lines:
        console.print_line("network conditions")
    for line in lines:
        console.print_line(f"  {line}")


def print_shares(shares: Mapping[str, EnergyShare]) -> None:
    """Print which part of shared nodes' joules is the job's."""
    for node, share in shares.items():
        if share.reason is not None:
            console.print_line(f"  energy of the job on {node}: not known: {share.reason}")
            continue
        console.print_line(
            f"  energy of the job on {node}, above idle: {format_joules(share.low_j)} … "
            f"{format_joules(share.high_j)}; the node idle: {format_idle_share(share)}"
        )


def print_idle_faults(view: JobView) -> None:
    """Print faults in the administrators' files of idle power."""
    for node in view.nodes:
        why = node.record.missing_reason("energy.idle_w") or ""
        if ", line " in why:
            terminal_text.print_wrapped(f"idle power of {node.node}: {why}")


def format_idle_share(share: EnergyShare) -> str:
    """Return, for example, `620 J`; if the idle power is unknown, its bounds and how to give it."""
    if share.idle_low_j == share.idle_high_j:
        whose = " (as its administrator says)" if share.idle_source == ADMINISTRATOR else ""
        return format_joules(share.idle_high_j) + whose
    return f"{format_joules(share.idle_low_j)} … {format_joules(share.idle_high_j)} (--idle-power WATTS: closer)"


def print_comment(view: JobView) -> None:
    """Print the scheduler's own accounting, if no record is readable here."""
    comment = view.admin_comment
    if comment is None or view.nodes:
        return
    types = (comment.get(name) for name in ("node_type", "vm", "container"))
    where = " ".join(str(one) for one in types if one) or "type of node not told"
    console.print_line(
        f"  from the accounting: {where}, kernel {comment.get('kernel') or 'not told'}; sums "
        f"over {comment.get('nodes_measured')} of {comment.get('nodes')} "
        f"{'node' if comment.get('nodes') == 1 else 'nodes'}"
        f"{' (partial)' if admin_comment.is_partial(comment) else ''}"
        f"{' when a step ended, others may follow' if comment.get('so_far') else ''}:"
    )
    alone = comment.get("exclusive") is True
    of_nodes = {
        name: comment.get(name) if alone else None for name in METRICS if METRICS[name].is_of_node
    }
    source = f" ({name})" if (name := comment.get("memory_source")) else ""
    console.print_line(
        f"  {format_joules(of_nodes['energy_j'])} (of the whole nodes), "
        f"{console.format_seconds(comment.get('cpu_s'))} of CPU, "
        f"{format_binary(comment.get('max_memory_bytes'))} of memory{source}, "
        f"network of the whole nodes {console.format_bytes(of_nodes['rx_bytes'])} in, "
        f"{console.format_bytes(of_nodes['tx_bytes'])} out"
    )
    missing = comment.get("missing")
    for why, names in group_by_reason(missing if isinstance(missing, dict) else {}).items():
        console.print_line(f"  {', '.join(names)}: {why}")


def print_missing(view: JobView) -> None:
    """Print what is missing, with each reason once."""
    lines = list(view.missing)
    for node in view.nodes:
        found = {column: why for column, why in node.missing.items() if column in METRICS}
        lines += [
            f"{node.node}: {', '.join(names)}: {w}" for w, names in group_by_reason(found).items()
        ]
    if len(view.all_nodes) > 1:
        found = {name: why for name in METRICS if (why := view.total_or_reason(name)[1])}
        lines += [
            f"all: {', '.join(names)}: {why}" for why, names in group_by_reason(found).items()
        ]
    if lines:
        console.print_line("missing:")
    for line in lines:
        console.print_line(f"  {line}")
    for note in view.notes:
        console.print_line(f"note: {note}")


WORDS = {
    "energy_j": ("energy", format_joules),
    "cpu_s": ("CPU", console.format_seconds),
    "memory_used_bytes": ("memory", format_binary),
    "read_bytes": ("read", console.format_bytes),
    "write_bytes": ("written", console.format_bytes),
}
SOURCES = {"records": "records", "admin_comment": "AdminComment", "accounting": "the accounting"}


def print_database_usage(view: JobView) -> None:
    """Print the figures that `steelyard top` counts, each with its source or the reason why it is
    missing."""
    stored = view.stored_nodes
    if stored is None:
        return
    console.print_line(f"as counted in {stored['database']}")
    if stored["tags"]:
        terminal_text.print_wrapped(
            "tags: " + ", ".join(f"{key}={value}" for key, value in stored["tags"].items())
        )
    for source, cells in group_by_source(stored).items():
        terminal_text.print_wrapped(f"by {source}: {', '.join(cells)}")
    missing = {name: why for name, why in stored["missing"].items() if name in WORDS}
    for why, names in group_by_reason(missing).items():
        terminal_text.print_wrapped(
            f"{', '.join(WORDS[name][0] for name in names)} not known: {why}"
        )
    for mark in stored["marks"]:
        terminal_text.print_wrapped(f"marked: {mark}")


def group_by_source(stored: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the formatted figures by their source."""
    found: dict[str, list[str]] = {}
    for name, (word, show) in WORDS.items():
        if stored[name] is not None:
            source = SOURCES[stored["sources"][name]]
            found.setdefault(source, []).append(f"{word} {show(stored[name])}")
    return found
