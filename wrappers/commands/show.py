"""One job on one screen: what it was, where it ran, what it used, and what is missing and why.

Needs no study. Reads the scheduler's accounting and the records that the nodes left; either alone will do.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from steelyard.facts.quantities import METRICS
from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.analysis.collect.one_job import JobView, NodeView
    from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower

NO_SHARES: Mapping[str, EnergyShare] = MappingProxyType({})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard show`."""
    parser.add_argument(
        "job_id", metavar="JOBID", help="4711, or an array task: 4711_3 (Slurm), 4711[3] (PBS)"
    )
    options.add_record_dir(parser)
    options.add_idle_power(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Look the job up and print it."""
    idle = options.idle_power(args.idle_power)
    view = find(args.job_id, args.record_dir)
    shares = energy_shares(view, idle)
    if args.json:
        console.print_json(as_json(view, shares))
    else:
        print_view(view, shares)
    return errors.DONE


def find(job_id: str, record_dirs: Sequence[Path] | None) -> JobView:
    """Of the schedulers that this machine has and that give such ids, the first that knows it."""
    from steelyard.analysis.collect.one_job import look_up
    from steelyard.analysis.collect.records_in import default_record_dirs
    from steelyard.analysis.sources import schedulers

    unknown: list[errors.MissingError] = []
    alone: JobView | None = None
    for reader in schedulers.meant(job_id):
        try:
            view = look_up(job_id, record_dirs or default_record_dirs(), reader.hurried())
        except errors.MissingError as error:
            unknown.append(error)
            continue
        if view.row is not None:
            return view
        alone = alone or view
    if alone is None:
        raise unknown[0] if len(unknown) == 1 else errors.MissingError("; ".join(map(str, unknown)))
    return alone


def as_json(view: JobView, shares: Mapping[str, EnergyShare] = NO_SHARES) -> dict[str, object]:
    """The job as a document; names and units as in docs/formats.md."""
    row = view.row
    return {
        "job_id": view.job_id,
        "job": None
        if row is None
        else {
            "raw_job_id": row.job_id,
            "array_job_id": row.array_job_id,
            "array_task_id": row.array_task_id,
            "name": row.name,
            "user": row.user,
            "cluster": row.cluster,
            "state": row.state,
            "reason": row.reason,
            "exit_code": row.exit_code,
            "submit_unix_s": row.submit_unix_s,
            "start_unix_s": row.start_unix_s,
            "end_unix_s": row.end_unix_s,
            "elapsed_s": row.elapsed_s,
            "nodes": list(row.nodes),
            "earlier_starts_unix_s": list(view.earlier_starts),
        },
        "nodes": [
            {
                "node": node.node,
                **node.values,
                "network_conditions": node.record.get("network_conditions"),
                "capture": node.record.get("capture"),
                "energy_share": share_json(shares.get(node.node)),
                "missing": node.missing,
                "tags": node.record.tags,
            }
            for node in view.nodes
        ],
        "totals": {name: view.total(name) for name in METRICS},
        "totals_missing": {
            name: why for name in METRICS if (why := view.total_or_why(name)[1]) is not None
        },
        "admin_comment": view.admin_comment,
        "missing": view.missing,
        "notes": view.notes,
    }


def print_view(view: JobView, shares: Mapping[str, EnergyShare] = NO_SHARES) -> None:
    """The screen, part by part."""
    print_job(view)
    print_places(view)
    print_network(view)
    print_use(view)
    print_shares(shares)
    print_comment(view)
    print_missing(view)


def print_job(view: JobView) -> None:
    """What it was."""
    row = view.row
    if row is None:
        console.print_line(f"job {view.job_id}, from its records alone")
        return
    name = row.job_id if row.task_id == row.job_id else view.job_id
    also = f" (array task {row.task_id})" if row.task_id and row.task_id != name else ""
    console.print_line(
        f"job {name}{also}: {row.name or '–'}, of {row.user or '–'} on {row.cluster or '–'}"
    )
    code = "" if row.exit_code is None else f", exit code {row.exit_code}"
    why = f" ({row.reason})" if row.reason else ""
    console.print_line(f"  {row.state}{why}{code}")
    console.print_line(
        f"  submitted {clock(row.submit_unix_s)}, started {clock(row.start_unix_s)}, "
        f"ended {clock(row.end_unix_s)}, took {console.format_seconds(row.elapsed_s)}"
    )
    if view.earlier_starts:
        console.print_line(
            f"  started {len(view.earlier_starts)} times before; this is the last start"
        )


def clock(unix_s: float | None) -> str:
    """Local time, as a person at this machine reads it."""
    if unix_s is None:
        return "–"
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def print_places(view: JobView) -> None:
    """Where it ran."""
    if not view.nodes:
        console.print_line(f"  nodes: {', '.join(view.all_nodes) or '–'}")
        return
    rows = [
        (n.node, n.values["node_type"], layers(n), n.values["kernel"], devices(n), tags(n))
        for n in view.nodes
    ]
    headings = ("node", "type", "virtualization", "kernel", "network", "tags")
    console.print_table(headings, rows, title="where it ran")


def layers(node: NodeView) -> str | None:
    """`docker in kvm`; `none` where both layers are known to be absent."""
    container, machine = node.values["container"], node.values["vm"]
    real = [str(name) for name in (container, machine) if name not in (None, "none")]
    if real:
        return " in ".join(real)
    return "none" if container == machine == "none" else None


def devices(node: NodeView) -> str | None:
    """Counted devices with their kinds."""
    found = node.record.get("network.devices")
    if not isinstance(found, list):
        return None
    return ", ".join(
        f"{d.get('name')} ({d.get('kind')})"
        for d in found
        if isinstance(d, dict) and d.get("counted")
    )


def tags(node: NodeView) -> str | None:
    """`k=v, …`."""
    return ", ".join(f"{key}={value}" for key, value in node.record.tags.items()) or None


def print_network(view: JobView) -> None:
    """Network conditions, a line or two per node; alike nodes are not put together."""
    from steelyard.analysis.collect.one_job import network_lines

    lines = [line for node in view.nodes for line in network_lines(node)]
    if lines:
        console.print_line("network conditions")
    for line in lines:
        console.print_line(f"  {line}")


def joules(value: float | None) -> str:
    """`1.5 kJ`; `–` for None."""
    if value is None:
        return "–"
    for unit in ("J", "kJ", "MJ"):
        if abs(value) < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} GJ"


# Neighbours of one heading share a cell: `read / written`.
USE_HEADINGS = tuple(dict.fromkeys(total.heading for total in METRICS.values() if total.heading))
WORDS = {"J": joules, "s": console.format_seconds, "bytes": console.format_bytes}


def count(value: float | None) -> str:
    """`12`; `–` for None."""
    return "–" if value is None else f"{value:.0f}"


def use_cells(values: dict[str, Any]) -> tuple[str, ...]:
    """What was used, as people read it; one cell for each of USE_HEADINGS."""
    cells: dict[str, list[str]] = {heading: [] for heading in USE_HEADINGS}
    for name, total in METRICS.items():
        if total.heading:
            cells[total.heading].append(WORDS.get(total.unit, count)(values[name]))
    return tuple(" / ".join(parts) for parts in cells.values())


def print_use(view: JobView) -> None:
    """What it used, per node and in total, and what the weighing itself cost."""
    from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME

    if not view.nodes:
        return
    headings = ("node", "time", "alone on node", *USE_HEADINGS)
    rows = [
        (
            n.node if n.values["complete"] else f"{n.node} (cut short)",
            console.format_seconds(n.values["elapsed_s"]),
            {True: "yes", False: "no"}.get(n.values["exclusive"]),
            *use_cells(n.values),
        )
        for n in view.nodes
    ]
    if len(view.all_nodes) > 1:
        rows.append(("all", "", "", *use_cells({name: view.total(name) for name in METRICS})))
    console.print_table(headings, rows, title="what it used")
    for node in view.nodes:
        print_sampler(node)
        if node.values["vm"] in COUNTS_STOLEN_TIME:
            console.print_line(
                f"  CPU time on {node.node}: its kernel also counts what the host gave to others"
            )


def energy_shares(view: JobView, idle: IdlePower) -> dict[str, EnergyShare]:
    """By node, where it has joules that need not all be the job's."""
    from steelyard.analysis.collect.job_samples import shares_of
    from steelyard.analysis.collect.job_totals import is_alone

    shared = {
        node.node: node.record
        for node in view.nodes
        if node.values["energy_j"] is not None and not is_alone(node.record)
    }
    return shares_of(shared, idle) if shared else {}


def share_json(share: EnergyShare | None) -> dict[str, object] | None:
    """None: the node's joules are not known, or all the job's."""
    if share is None:
        return None
    names = ("low_j", "high_j", "idle_low_j", "idle_high_j", "reason")
    return {name: getattr(share, name) for name in names}


def print_shares(shares: Mapping[str, EnergyShare]) -> None:
    """What of shared nodes' joules is the job's."""
    for node, share in shares.items():
        if share.reason is not None:
            console.print_line(f"  energy of the job on {node}: not known: {share.reason}")
            continue
        console.print_line(
            f"  energy of the job on {node}, above idle: {joules(share.low_j)} … "
            f"{joules(share.high_j)}; the node idle: {idle_words(share)}"
        )


def idle_words(share: EnergyShare) -> str:
    """`620 J`; where its power is not known what it is at most, and how to tell it."""
    if share.idle_low_j == share.idle_high_j:
        return joules(share.idle_high_j)
    return f"{joules(share.idle_low_j)} … {joules(share.idle_high_j)} (--idle-power WATTS: closer)"


def print_sampler(node: NodeView) -> None:
    """What the sampler cost and how well it kept time."""
    values = node.values
    trouble = [
        f"{values[name]} {words}"
        for name, words in (("samples_lost", "lost"), ("missed_deadlines", "late"))
        if values[name]
    ]
    console.print_line(
        f"  sampler on {node.node}: {values['samples']} samples"
        f"{''.join(f', {words}' for words in trouble)}, "
        f"{console.format_seconds(values['sampler_cpu_s'])} of CPU"
    )


def print_comment(view: JobView) -> None:
    """What the scheduler's own accounting holds, where no record can be seen from here."""
    comment = view.admin_comment
    if comment is None or view.nodes:
        return
    where = [comment.get("node_type"), comment.get("vm"), comment.get("container")]
    console.print_line(
        f"  from the accounting: {' '.join(str(w) for w in where if w)}, kernel "
        f"{comment.get('kernel') or '–'}; sums over {comment.get('nodes_weighed')} of "
        f"{comment.get('nodes')} nodes:"
    )
    # Earlier versions did not say whether the job was alone.
    alone = comment.get("exclusive") is True
    of_nodes = {
        name: comment.get(name) if alone else None for name in METRICS if METRICS[name].is_of_node
    }
    console.print_line(
        f"  {joules(of_nodes['energy_j'])} (of the whole nodes), "
        f"{console.format_seconds(comment.get('cpu_s'))} of CPU, "
        f"{console.format_bytes(comment.get('max_memory_bytes'))} of memory, "
        f"network of the whole nodes {console.format_bytes(of_nodes['rx_bytes'])} in, "
        f"{console.format_bytes(of_nodes['tx_bytes'])} out"
    )
    missing = comment.get("missing")
    for why, names in by_reason(missing if isinstance(missing, dict) else {}).items():
        console.print_line(f"  {', '.join(names)}: {why}")


def by_reason(missing: dict[str, str]) -> dict[str, list[str]]:
    """What each reason is given for."""
    found: dict[str, list[str]] = {}
    for name, why in missing.items():
        found.setdefault(str(why), []).append(name)
    return found


def print_missing(view: JobView) -> None:
    """What could not be told, and why; each reason once."""
    lines = list(view.missing)
    for node in view.nodes:
        found = {column: why for column, why in node.missing.items() if column in METRICS}
        lines += [f"{node.node}: {', '.join(names)}: {w}" for w, names in by_reason(found).items()]
    if len(view.all_nodes) > 1:
        found = {name: why for name in METRICS if (why := view.total_or_why(name)[1])}
        lines += [f"all: {', '.join(names)}: {why}" for why, names in by_reason(found).items()]
    if lines:
        console.print_line("missing:")
    for line in lines:
        console.print_line(f"  {line}")
    for note in view.notes:
        console.print_line(f"note: {note}")
