"""The efficiency of a job: how much of its allocation it used, and what to request next time."""

from __future__ import annotations

from steelyard.analysis.job import job_totals, pressure
from steelyard.analysis.job.usage import ACCOUNTING, Usage
from steelyard.analysis.sources.records import MEMORY_SOURCES
from steelyard.analysis.stats.number_format import format_binary
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import console
from steelyard.wrappers.base.console import format_seconds
from steelyard.wrappers.show import terminal_text
from steelyard.wrappers.show.job_data import JobDetails
from steelyard.wrappers.show.terminal_text import format_joules, format_percent

HEADINGS = ("", "held", "used", "of it")


def print_efficiency(details: JobDetails) -> None:
    """Print CPU, memory, time and GPUs; nothing for a job that the accounting does not know."""
    allocation = details.view.allocation
    if allocation is None:
        return
    cpus = "–" if allocation.cpus is None else counted(allocation.cpus, "CPU")
    if details.used.cpu.allocated:
        cpus += f" × {format_seconds(details.used.time.used)} = {format_seconds(details.used.cpu.allocated)}"
    rows = [
        ("CPU", cpus, format_minimum(details.used.cpu, format_seconds(details.used.cpu.used)), format_share(details.used.cpu)),
        ("memory", format_binary(details.used.memory.allocated),
         format_minimum(details.used.memory, format_binary(details.used.memory.used)), format_share(details.used.memory)),
        ("time", format_seconds(details.used.time.allocated), format_elapsed(details.used.time.used), format_share(details.used.time)),
    ]  # fmt: skip
    if allocation.gpus:
        energy_j, _ = job_totals.sum_energy_or_reason([node.record for node in details.view.nodes])
        rows.append(("GPUs", str(allocation.gpus), format_joules(energy_j), "–"))
    is_over = details.view.row is None or details.view.row.end_unix_s is not None
    console.print_table(HEADINGS, rows, title="asked and used" + ("" if is_over else ", so far"))
    for line in [*explain_shares(details), *describe_pressure(details)]:
        terminal_text.print_wrapped(line)


def format_share(use: Usage) -> str:
    """Return a share as text, marked as a lower bound if the usage is one."""
    text = format_percent(use.share)
    return text if use.share is None else format_minimum(use, text)


def format_minimum(use: Usage, text: str) -> str:
    """Return the text, marked if it is a lower bound."""
    return f"≥ {text}" if use.is_least else text


def format_elapsed(elapsed_s: float | None) -> str:
    """Format an elapsed time; the scheduler counts whole seconds."""
    return "less than 1 s" if elapsed_s == 0 else format_seconds(elapsed_s)


def explain_shares(details: JobDetails) -> list[str]:
    """Return lines on why a share is missing, or comes from a source other than the nodes."""
    lines = []
    named = (
        ("CPU", details.used.cpu),
        ("memory", details.used.memory),
        ("time limit", details.used.time),
    )
    for name, use in named:
        if use.reason is not None:
            lines.append(f"{name}: {use.reason}")
        elif use.source == ACCOUNTING and name != "time limit":
            lines.append(
                f"{name}: used as the scheduler counted it: the nodes' records do not have it"
            )
        elif name == "memory" and (ways := name_memory_sources(details)):
            lines.append(f"memory: {ways}")
        if use.reason is None and use.source != ACCOUNTING and use.is_least:
            lines.append(f"{name}: at least, of the nodes whose record has it")
    return lines


def name_memory_sources(details: JobDetails) -> str:
    """Return how the nodes' records counted memory, such as `sum of resident sets`; the methods
    differ."""
    sources = (node.record.get("memory.source") for node in details.view.nodes)
    return " or ".join(sorted({MEMORY_SOURCES[s] for s in sources if s in MEMORY_SOURCES}))


def describe_pressure(details: JobDetails) -> list[str]:
    """Return lines on what its processes waited for in much of their time."""
    several = len(details.view.nodes) > 1
    return [
        f"{one.text}{f' ({one.node})' if several else ''}"
        for one in pressure.find_pressures(details.view)
        if one.share > pressure.MUCH
    ]


def print_advice(details: JobDetails) -> None:
    """Print one line for each advice."""
    if details.advice:
        console.print_line("next time")
    for advice in details.advice:
        terminal_text.print_wrapped(f"{advice.about}: {advice.text}")
