"""Describe this node: physical, virtual or a container, with the evidence, and its hardware.

Prints kernel, CPU, memory, network devices, file systems and energy meters. What could not be read
is `–`, with the reason at the end. It changes nothing. Some meters are readable by root only.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import UsageError
from steelyard.wrappers.base import console, errors, options, programs
from steelyard.wrappers.base.programs import find_node_program

TIMEOUT_S = 30
WIDTH = 96
LAYERS = ("vm", "container", "cloud")

Document = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard probe`."""
    parser.add_argument(
        "--root",
        metavar="DIR",
        help="read the /proc and /sys of a recorded tree below DIR instead of this machine's",
    )
    options.add_json(parser, "print one JSON document, with every field (docs/formats.md, part 3)")


def main(args: argparse.Namespace) -> int:
    """Probe the node and print the result."""
    document = read_probe(args.root)
    if args.json:
        console.print_json(document)
    else:
        print("\n".join(render(document)))
    return errors.DONE


def read_probe(root: str | None = None) -> Document:
    """Return the document of docs/formats.md part 3. Raises UsageError if `root` cannot be read."""
    if root is not None and not Path(root).is_dir():
        raise UsageError(f"--root {root}: no such folder", part="--root")
    command = [str(find_node_program()), "probe"]
    if root is not None:
        command += ["--root", root]
    done = programs.run_quietly(command, TIMEOUT_S)
    if done.returncode == errors.USAGE:
        raise UsageError(done.stderr.strip())
    done.check_returncode()
    document: Document = json.loads(done.stdout)
    if document.get("format") != "steelyard-probe" or document.get("version") != 1:
        raise UsageError(
            f"{command[0]} printed format {document.get('format')!r} version "
            f"{document.get('version')!r}, expected 'steelyard-probe' version 1: "
            "install programs of one release"
        )
    return document


def render(document: Document) -> Iterator[str]:
    """Yield the document as lines for the terminal, about one screen."""
    yield f"{document['hostname'] or 'this node'}: {format_node_type(document)}"
    yield ""
    yield from render_layers(document)
    yield ""
    yield from render_system(document)
    yield ""
    yield from render_network(document)
    yield ""
    yield from render_filesystems(document)
    yield ""
    yield from render_energy(document)
    yield from render_missing(document)


def missing_reason(document: Document, path: str) -> str:
    """Return why a field is null."""
    return str(document["missing"].get(path, "not known"))


def format_node_type(document: Document) -> str:
    """Return, for example, `virtual node`, with the reason."""
    kind = document["node_type"]
    if kind is None:
        return f"node type not known ({missing_reason(document, 'node_type')})"
    layers = document["virtualization"]
    why = {
        "container": f"its processes run in a container ({layers['container']['name']})",
        "virtual": f"a virtual machine ({layers['vm']['name']}), and not in a container",
        "physical": "neither in a virtual machine nor in a container",
    }
    dom0 = ", Xen's dom0" if layers["detail"] == "dom0" else ""
    return f"{kind} node: {why[kind]}{dom0}"


def render_layers(document: Document) -> Iterator[str]:
    """Yield each layer with its evidence, each with the layer's name that it indicates."""
    layers = document["virtualization"]
    for name in LAYERS:
        found = layers[name]
        if found["name"] is None:
            yield f"{name:<10} not known: {missing_reason(document, f'virtualization.{name}.name')}"
            continue
        detail = f" ({layers['detail']})" if name == "vm" and layers["detail"] else ""
        yield f"{name:<10} {found['name']}{detail}, {found['confidence']}"
        for witness in found["evidence"]:
            yield shorten(
                f"  {witness['name']:<12} by {witness['source']}: {witness['value'].strip()}"
            )


def shorten(line: str) -> str:
    """Truncate a line to the screen's width."""
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def format_or_dash(value: object) -> str:
    """Return the value as text; `–` for null."""
    return "–" if value is None else str(value)


def render_system(document: Document) -> Iterator[str]:
    """Yield kernel, firmware, CPU, memory, clock and TCP."""
    memory, tcp, clock = document["memory"], document["tcp"], document["clock"]
    # An earlier release of steelyard-node does not write these fields.
    system, bios, libc = (document.get(section) or {} for section in ("os", "bios", "libc"))
    yield f"kernel     {format_or_dash(document['kernel']['release'])}"
    yield f"system     {format_or_dash(system.get('name'))}, {format_or_dash(libc.get('version'))}"
    yield f"firmware   BIOS {format_or_dash(bios.get('version'))} of {format_or_dash(bios.get('date'))}"
    for name, version in (document.get("modules") or {}).items():
        yield f"module     {name} {format_or_dash(version)}"
    yield from render_cpu(document["cpu"])
    yield (
        f"memory     {console.format_bytes(memory['memory_bytes'])}, swap "
        f"{console.format_bytes(memory['swap_bytes'])}, huge pages "
        f"{console.format_bytes(memory['huge_pages_bytes'])}, transparent "
        f"{format_or_dash(memory.get('transparent_huge_pages'))}"
    )
    yield (
        f"           NUMA nodes {format_or_dash(memory.get('numa_nodes'))}, balancing "
        f"{format_or_dash(memory.get('numa_balancing'))}"
    )
    yield f"clock      {format_or_dash(clock['source'])} (available: {format_list(clock['available'])})"
    yield (
        f"tcp        {format_or_dash(tcp['congestion_control'])} (available: "
        f"{format_list(tcp['available'])}), default qdisc {format_or_dash(tcp['default_qdisc'])}"
    )


def format_list(values: list[str]) -> str:
    """Return values separated by blanks; `–` for none."""
    return " ".join(values) or "–"


def render_cpu(cpu: Document) -> Iterator[str]:
    """Yield model, topology and frequency."""
    yield f"cpu        {format_or_dash(cpu['model'])}"
    yield (
        f"           {format_or_dash(cpu['cpus_online'])} online; sockets {format_or_dash(cpu['sockets'])}, "
        f"cores {format_or_dash(cpu['cores'])}, threads per core {format_or_dash(cpu['threads_per_core'])}"
    )
    max_hz = "–" if cpu["max_hz"] is None else f"{cpu['max_hz'] / 1e9:.2f} GHz"
    yield (
        f"           SMT {format_or_dash(cpu['smt'])}, governor {format_or_dash(cpu['governor'])}, "
        f"highest frequency {max_hz}, turbo {format_or_dash(cpu.get('boost'))}"
    )
    yield f"           microcode {format_or_dash(cpu.get('microcode'))}"
    for name, text in (cpu.get("vulnerabilities") or {}).items():
        if text != "Not affected":
            yield shorten(f"           {name}: {format_or_dash(text)}")


def align_table(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield an indented table with columns as wide as their content."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    for row in [headings, *rows]:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield shorten(("  " + "  ".join(cells)).rstrip())


def format_speed(value: int | None) -> str:
    """Return, for example, `25 Gbit/s`."""
    if value is None:
        return "–"
    return f"{value / 1e9:g} Gbit/s" if value >= 10**9 else f"{value / 1e6:g} Mbit/s"


def render_network(document: Document) -> Iterator[str]:
    """Yield a line per device; the uplinks are those whose bytes count for the node."""
    devices = document["network"]
    if not devices:
        yield f"network    {missing_reason(document, 'network')}"
        return
    yield "network"
    yield from align_table(
        ("device", "kind", "driver", "speed", "mtu", "state", ""),
        [
            (
                device["name"],
                device["kind"],
                format_or_dash(device["driver"]),
                format_speed(device["speed_bits_per_s"]),
                format_or_dash(device["mtu"]),
                format_or_dash(device["state"]),
                "uplink" if device["counted"] else "",
            )
            for device in devices
        ],
    )


def render_filesystems(document: Document) -> Iterator[str]:
    """Yield a line per mount."""
    mounts = document["filesystems"]
    if not mounts:
        yield f"file systems  {missing_reason(document, 'filesystems')}"
        return
    yield "file systems"
    yield from align_table(
        ("mount point", "type", "source", "options"),
        [
            (mount["mount_point"], mount["type"], mount["source"], mount["options"])
            for mount in mounts
        ],
    )


def render_energy(document: Document) -> Iterator[str]:
    """Yield the energy meters; the counted ones add up to the node's energy."""
    meters = document["meters"]
    if not meters:
        yield f"energy     {missing_reason(document, 'meters')}"
        return
    yield "energy"
    for index, meter in enumerate(meters):
        state = (
            "readable"
            if meter["readable"]
            else missing_reason(document, f"meters.{index}.readable")
        )
        counted = "counted" if meter["counted"] else "not counted (it would count twice)"
        folder = meter["path"].rsplit("/", 1)[-1]
        covers = "" if meter["unit"] is None else f" {meter['unit']}"
        yield (
            f"  {format_or_dash(meter['name']):<10} {folder:<20} {meter['meter']}, {meter['measures']} of "
            f"{meter['covers']}{covers}; {counted}; {state}"
        )


def render_missing(document: Document) -> Iterator[str]:
    """Yield the reasons of dashes above, in the lines of kernel, CPU, memory, clock and TCP."""
    parts = ("hostname", "machine_id", "boot_id", "kernel.", "cpu.", "memory.", "clock.", "tcp.")
    reasons = {path: why for path, why in document["missing"].items() if path.startswith(parts)}
    if not reasons:
        return
    yield ""
    yield "could not be read"
    for path, why in reasons.items():
        yield shorten(f"  {path}: {why}")
