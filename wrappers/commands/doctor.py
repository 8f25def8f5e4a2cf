"""Is everything in place on this machine, and if not, what to do.

Looks at what `steelyard` needs here: the node program, a scheduler with our part in it (Slurm's
plugin, Torque's prologues and submit filter, OpenPBS' hook), the record folder, meters of energy, what network
conditions need, and the programs of the benchmarks. Exit code 3 when something is missing without
which nothing can be weighed; what only narrows the result is a warning.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.pbs import programs
from steelyard.wrappers.base import console, errors, node, options
from steelyard.wrappers.base.check import Check
from steelyard.wrappers.doctor import netem as doctor_netem
from steelyard.wrappers.doctor import openpbs as doctor_openpbs
from steelyard.wrappers.doctor import torque as doctor_torque
from steelyard.wrappers.schedulers import known

TIMEOUT_S = 10
MARKS = {"ok": "ok", "warning": "warning", "missing": "MISSING"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `steelyard doctor`."""
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Run all checks and print them."""
    checks = list(all_checks())
    if args.json:
        console.print_json([asdict(check) for check in checks])
    else:
        for check in checks:
            print(f"{MARKS[check.state]:<8} {check.name}: {check.found}")
            if check.advice:
                print(f"{'':<8} -> {check.advice}")
    return errors.MISSING if any(check.state == "missing" for check in checks) else errors.DONE


def all_checks() -> Iterator[Check]:
    """Every check, in the order in which a person would mend things."""
    yield check_node_program()
    yield check_energy(Path("/"))
    for scheduler in known.here():
        yield from scheduler.checks()
    yield from doctor_torque.checks(programs.torque_home())
    yield from doctor_openpbs.checks(doctor_openpbs.home())
    yield check_record_dir(record_dir())
    yield from doctor_netem.checks()
    yield from benchmark_checks()


def output_of(*command: str) -> str | None:
    """stdout of a program, or None when it is missing, fails or hangs."""
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout


def check_node_program() -> Check:
    """Is steelyard-node there, and does it start?"""
    name = "node program"
    try:
        program = node.find_node_program()
    except MissingError as error:
        return Check(name, "missing", "steelyard-node was not found", str(error))
    version = output_of(str(program), "--version")
    if version is None:
        return Check(
            name, "missing", f"{program} does not start", "build it on this machine: make all"
        )
    return Check(name, "ok", f"{version.strip()} at {program}")


def check_energy(root: Path) -> Check:
    """Can joules be read, here and by this user: by which meters, and why by others not?"""
    name = "energy"
    try:
        probe = output_of(str(node.find_node_program()), "probe", "--root", str(root))
    except MissingError:
        probe = None
    if probe is None:
        return Check(name, "warning", "not known: steelyard-node probe fails", "make all")
    document = json.loads(probe)
    meters, missing = document["meters"], document["missing"]
    if not meters:
        return Check(
            name, "warning", f"{missing['meters']}: joules will be null",
            "guests and some clouds have none; on a physical node try: modprobe intel_rapl_common",
        )  # fmt: skip
    told = ", ".join(f"{m['name']} ({m['meter']}, {m['covers']})" for m in meters)
    refused = {
        f"{m['meter']}: {missing[f'meters.{i}.readable']}; read by {m['read_by']}"
        for i, m in enumerate(meters)
        if not m["readable"]
    }
    if not any(m["counted"] for m in meters):
        return Check(
            name,
            "warning",
            f"{told}: none of them is the node's, its joules will be null",
            "accelerators are told apart; on a physical node try: modprobe intel_rapl_common",
        )
    if any(m["counted"] and not m["readable"] for m in meters):
        return Check(
            name, "warning", f"{told}: joules will be null here: {'; '.join(sorted(refused))}",
            "the Slurm plugin reads as root; `steelyard run` needs root for joules",
        )  # fmt: skip
    counted = ", ".join(m["name"] for m in meters if m["counted"])
    others = f"; cannot be read: {'; '.join(sorted(refused))}" if refused else ""
    return Check(name, "ok", f"{told}; the node's is the sum of {counted}{others}")


def record_dir() -> Path:
    """Where the readers look for records."""
    return Path(os.environ.get("STEELYARD_RECORD_DIR", "/var/lib/steelyard/records"))


def check_record_dir(folder: Path) -> Check:
    """Can this user see the records?"""
    if folder.is_mount():
        return Check(
            "record folder", "warning", f"{folder} is a mount point",
            "where it is not mounted one day, records go to the node's own disk, unseen: let "
            "record_dir= in plugstack.conf name a folder below it",
        )  # fmt: skip
    if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK):
        return Check("record folder", "ok", str(folder))
    return Check(
        "record folder", "warning", f"{folder} is not there or not readable",
        "set STEELYARD_RECORD_DIR to where the plugin leaves records (record_dir= in plugstack.conf)",
    )  # fmt: skip


def benchmark_checks() -> Iterator[Check]:
    """The programs and Python modules that the benchmarks need on this machine."""
    from steelyard.jobscripts import registry
    from steelyard.wrappers.submit.programs import remedy

    for name in registry.names():
        benchmark, title = registry.load(name), f"benchmark {name}"
        for program in benchmark.needs:
            found = node.find_program(program.name)
            advice = f"{program.why}: {remedy(program)}"
            yield presence(title, program.name, None if found is None else str(found), advice)
        for module in benchmark.modules:
            spec = importlib.util.find_spec(module.name)
            what = f"the Python module {module.name}"
            found_at = f"{what}: {spec.origin}" if spec else None
            yield presence(title, what, found_at, module.why)


def presence(name: str, what: str, found: str | None, advice: str) -> Check:
    """A thing that is there, or what to do."""
    if found is None:
        return Check(name, "warning", f"{what} was not found", advice)
    return Check(name, "ok", found)
