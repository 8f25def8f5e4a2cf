"""What a job held and how much of it it used; what to ask for next time."""

from __future__ import annotations

from steelyard.analysis.job import gpus, pressure
from steelyard.analysis.job.use import ACCOUNTING, Use
from steelyard.analysis.sources.records import MEMORY_SOURCES
from steelyard.analysis.stats.readable import binary
from steelyard.wrappers.base import console
from steelyard.wrappers.show import narrow
from steelyard.wrappers.show.told import Told
from steelyard.wrappers.show.words import joules, percent

HEADINGS = ("", "held", "used", "of it")


def print_asked(told: Told) -> None:
    """CPU, memory, time, GPUs; nothing of a job that the accounting does not know."""
    held = told.view.held
    if held is None:
        return
    cpus = "–" if held.cpus is None else f"{held.cpus} CPU{'s' if held.cpus > 1 else ''}"
    if told.used.cpu.held:
        cpus += f" × {clock(told.used.time.used)} = {clock(told.used.cpu.held)}"
    rows = [
        ("CPU", cpus, least(told.used.cpu, clock(told.used.cpu.used)), of_it(told.used.cpu)),
        ("memory", binary(told.used.memory.held),
         least(told.used.memory, binary(told.used.memory.used)), of_it(told.used.memory)),
        ("time", clock(told.used.time.held), took(told.used.time.used), of_it(told.used.time)),
    ]  # fmt: skip
    if held.gpus:
        energy_j = gpus.total_j([node.record for node in told.view.nodes])
        rows.append(("GPUs", str(held.gpus), joules(energy_j), "–"))
    is_over = told.view.row is None or told.view.row.end_unix_s is not None
    console.print_table(HEADINGS, rows, title="asked and used" + ("" if is_over else ", so far"))
    for line in [*reasons(told), *waits(told)]:
        narrow.say(line)


def of_it(use: Use) -> str:
    """A share is at least as much as what was used."""
    return percent(use.share) if use.share is None else least(use, percent(use.share))


def least(use: Use, text: str) -> str:
    """What is not all."""
    return f"≥ {text}" if use.is_least else text


def clock(seconds: float | None) -> str:
    """Long times as clocks show them."""
    return console.format_seconds(seconds)


def took(elapsed_s: float | None) -> str:
    """The scheduler counts whole seconds."""
    return "less than 1 s" if elapsed_s == 0 else clock(elapsed_s)


def reasons(told: Told) -> list[str]:
    """Why a share is not told, or is told by others than the nodes."""
    lines = []
    named = (("CPU", told.used.cpu), ("memory", told.used.memory), ("time limit", told.used.time))
    for name, use in named:
        if use.reason is not None:
            lines.append(f"{name}: {use.reason}")
        elif use.source == ACCOUNTING and name != "time limit":
            lines.append(
                f"{name}: used as the scheduler counted it: the nodes' records do not tell"
            )
        elif name == "memory" and (ways := memory_ways(told)):
            lines.append(f"memory: {ways}")
        if use.reason is None and use.source != ACCOUNTING and use.is_least:
            lines.append(f"{name}: at least, of the nodes whose record tells it")
    return lines


def memory_ways(told: Told) -> str:
    """`sum of resident sets`: how the nodes' records have counted it, which makes a difference."""
    sources = (node.record.get("memory.source") for node in told.view.nodes)
    return " or ".join(sorted({MEMORY_SOURCES[s] for s in sources if s in MEMORY_SOURCES}))


def waits(told: Told) -> list[str]:
    """What its processes waited for in much of its time."""
    several = len(told.view.nodes) > 1
    return [
        f"{one.text}{f' ({one.node})' if several else ''}"
        for one in pressure.pressures(told.view)
        if one.share > pressure.MUCH
    ]


def print_advice(told: Told) -> None:
    """One line each."""
    if told.advice:
        console.print_line("next time")
    for advice in told.advice:
        narrow.say(f"{advice.about}: {advice.text}")
