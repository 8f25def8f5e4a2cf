"""The usage of a job: a line per node and one for all of them, and a line per node with GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from steelyard.analysis.job import job_totals
from steelyard.analysis.job.job_view import JobView, NodeView
from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME
from steelyard.analysis.stats.number_format import format_binary
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console
from steelyard.wrappers.show import terminal_text
from steelyard.wrappers.show.terminal_text import format_joules

if TYPE_CHECKING:
    from steelyard.analysis.job.job_view import JobView


NOTHING: Mapping[str, float] = MappingProxyType({})
# Adjacent quantities with the same heading share a cell: `read / written`.
USE_HEADINGS = tuple(dict.fromkeys(total.heading for total in METRICS.values() if total.heading))
WORDS: dict[str, Callable[[float | None], str]] = {
    "J": format_joules,
    "s": console.format_seconds,
    "bytes": console.format_bytes,
}


def format_count(value: float | None) -> str:
    """Return, for example, `12`; `–` for None."""
    return "–" if value is None else f"{value:.0f}"


def choose_format(name: str, unit: str | None) -> Callable[[float | None], str]:
    """Return the format of a quantity; memory has the unit in which it is requested."""
    return format_binary if name.endswith("memory_bytes") else WORDS.get(unit or "", format_count)


def usage_cells(
    values: Mapping[str, Any], least: Mapping[str, float] = NOTHING, *, of_all: bool = False
) -> tuple[str, ...]:
    """Return one formatted cell for each of USE_HEADINGS. `least` has lower bounds of quantities
    without a value. With `of_all`, the values are of all nodes, and a quantity without a sum is the
    largest of a node."""
    cells: dict[str, list[str]] = {heading: [] for heading in USE_HEADINGS}
    for name, total in METRICS.items():
        if total.heading:
            format_value = choose_format(name, total.unit)
            known = values[name] is not None or name not in least
            text = format_value(values[name]) if known else f"≥ {format_value(least[name])}"
            if of_all and total.over_nodes == "LARGEST" and text != format_value(None):
                text += " on one node"
            cells[total.heading].append(text)
    return tuple(" / ".join(parts) for parts in cells.values())


def usage_minimum(view: JobView) -> dict[str, float]:
    """Return lower bounds of the processes' usage for figures without a total: an incomplete record
    never has more than was used."""
    found = {}
    for name, total in METRICS.items():
        values = [] if total.is_of_node else [node.values[name] for node in view.nodes]
        values = [value for value in values if value is not None]
        if values and view.total(name) is None:
            found[name] = max(values) if total.over_nodes == "LARGEST" else sum(values)
    return found


def record_lack(node: NodeView, runs: bool) -> str | None:
    """Return how a node's record is incomplete, in a few words, or None."""
    if node.values["complete"]:
        return None
    if runs:
        return "so far"
    return "not all counted" if node.record.get("incomplete_of") == "processes" else "cut short"


def print_usage(view: JobView) -> None:
    """Print the usage per node and in total, and the cost of the measurement."""
    if not view.nodes:
        return
    runs = view.row is not None and view.row.state == "running"
    headings = ("node", "time", "alone on node", *USE_HEADINGS)
    rows = [
        (
            n.node if (lack := record_lack(n, runs)) is None else f"{n.node} ({lack})",
            console.format_seconds(n.values["elapsed_s"]),
            {True: "yes", False: "no"}.get(n.values["exclusive"]),
            *usage_cells(n.values),
        )
        for n in view.nodes
    ]
    if len(view.all_nodes) > 1:
        totals = {name: view.total(name) for name in METRICS}
        rows.append(("all", "", "", *usage_cells(totals, usage_minimum(view), of_all=True)))
    console.print_table(
        *terminal_text.transpose_wide_table(headings, rows, terminal_text.terminal_columns()),
        title="what it used",
    )
    for node in view.nodes:
        print_sampler(node)
        if node.values["vm"] in COUNTS_STOLEN_TIME:
            console.print_line(
                f"  CPU time on {node.node}: its kernel also counts what the host gave to others"
            )


def print_sampler(node: NodeView) -> None:
    """Print what the sampler used, and its lost and late samples."""
    values = node.values
    trouble = [
        f"{values[name]} {label}"
        for name, label in (("samples_lost", "lost"), ("missed_deadlines", "late"))
        if values[name]
    ]
    console.print_line(
        f"  sampler on {node.node}: {counted(values['samples'], 'sample')}"
        f"{''.join(f', {label}' for label in trouble)}, "
        f"{console.format_seconds(values['sampler_cpu_s'])} of CPU"
    )


def print_gpus(view: JobView) -> None:
    """Print the energy of GPUs on nodes whose GPUs have counters."""
    for node in view.nodes:
        found = job_totals.read_job_gpus(node.record)
        if found is not None:
            terminal_text.print_wrapped(
                f"energy of the job's GPUs on {node.node}: {format_gpus(found)}"
            )


def format_gpus(found: job_totals.JobGpus) -> str:
    """Return, for example, `12.3 kJ (1 of 2: gpu-0)`."""
    if found.energy_j is None:
        return f"not known: {found.reason}"
    names = f": {', '.join(found.names)}" if found.names else ""
    return f"{format_joules(found.energy_j)} ({found.of_job} of {found.of_node}{names})"
