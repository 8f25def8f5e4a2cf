"""Is everything in place on this machine, and if not, what to do.

The first lines state what you can do now. Then come the checks: the node program and all that
`steelyard-node doctor` checks on this node (cgroups, energy meters, the kernel's count, the record
folder, network conditions), Steelyard's part of the scheduler (Slurm's plugin, Torque's prologues and
submit filter, OpenPBS' hook), and the programs of the benchmarks. The exit code is 3 if nothing can be
measured without something that is missing. A warning means that some figures will be missing.

With --nodes it runs `steelyard-node doctor` on these nodes instead and prints a summary: nodes with the
same result together, nodes with another result and what differs, nodes without an answer and why. On
Slurm it submits a short job to each node; a fully allocated node gives no answer. On PBS it works inside
your job. With --by ssh it uses your account on the nodes; root can check most.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.analysis.sources.slurm_field_values import expand_nodes
from steelyard.wrappers.base import console, errors, options
from steelyard.wrappers.base import programs as base_programs
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.doctor import capabilities as doctor_now
from steelyard.wrappers.doctor import local_node as doctor_node
from steelyard.wrappers.doctor import openpbs as doctor_openpbs
from steelyard.wrappers.doctor import remote_nodes
from steelyard.wrappers.doctor import torque as doctor_torque
from steelyard.wrappers.schedulers import registry as schedulers_registry
from steelyard.wrappers.schedulers.base import Scheduler

BENCHMARK = "benchmark "  # before its name, in a check's name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard doctor`."""
    options.add_json(parser)
    parser.add_argument(
        "--nodes", metavar="NODESET", help="check these nodes instead, as in n[1-64,70]; or all"
    )
    parser.add_argument(
        "--by",
        choices=("scheduler", "ssh"),
        default="scheduler",
        help="how to reach the nodes (default: scheduler)",
    )
    parser.add_argument(
        "--node-program",
        metavar="PATH",
        type=Path,
        help="path of steelyard-node on the nodes, where it is not found",
    )


def main(args: argparse.Namespace) -> int:
    """Run all checks and print them."""
    if args.nodes:
        return check_nodes(args)
    checks = list(run_checks())
    if args.json:
        console.print_json([asdict(check) for check in checks])
    else:
        print("\n".join(format_checks(checks)))
    return errors.MISSING if any(check.state == "missing" for check in checks) else errors.DONE


def format_checks(checks: Sequence[Check]) -> Iterator[str]:
    """Yield what a user can do now, including the benchmarks that are ready; then a line for each
    other check."""
    yield "what you can do now:"
    for one in doctor_now.list_capabilities(checks):
        yield f"  {'yes' if one.can else 'no':<4}{one.what:<26}{one.text}"
    yield ""
    for check in checks:
        if check.state == "ok" and check.name.startswith(BENCHMARK):
            continue
        yield from remote_nodes.format_check(check)


def check_nodes(args: argparse.Namespace) -> int:
    """Run the nodes' own doctors and print a summary. Exit code 3 if something is missing on a
    node."""
    scheduler = schedulers_registry.list_installed()[0](Path())
    names = node_names(args.nodes, scheduler)
    command_of = remote_nodes.ssh_command if args.by == "ssh" else scheduler.node_command
    if not command_of(names[0], ["true"]):
        raise UsageError(
            f"--nodes through {scheduler.name}: only within a job that has them; else say --by ssh"
        )
    answers = remote_nodes.query_nodes(names, command_of, args.node_program)
    if args.json:
        console.print_json([asdict(answer) for answer in answers])
    else:
        print("\n".join(remote_nodes.format_groups(answers)))
    well = all(
        one.checks and all(check.state != "missing" for check in one.checks) for one in answers
    )
    return errors.DONE if well else errors.MISSING


def node_names(nodeset: str, scheduler: Scheduler) -> list[str]:
    """Return the named nodes; for `all`, those that the scheduler knows. Raises UsageError if it
    knows none."""
    names = sorted(scheduler.node_features()) if nodeset == "all" else expand_nodes(nodeset)
    if not names:
        raise UsageError(f"--nodes {nodeset}: {scheduler.name} knows no nodes; name them: n[1-64]")
    return list(dict.fromkeys(names))


def run_checks() -> Iterator[Check]:
    """Yield every check, in the order in which a person would solve problems."""
    home, openpbs_home = pbs_commands.find_torque_home(), doctor_openpbs.find_home()
    yield from doctor_node.check_node(
        *doctor_torque.read_settings(home), *doctor_openpbs.read_settings(openpbs_home)
    )
    for scheduler in schedulers_registry.list_installed():
        yield from scheduler.run_checks()
    yield from doctor_torque.run_checks(home)
    yield from doctor_openpbs.run_checks(openpbs_home)
    yield from doctor_node.check_leftovers()
    yield from benchmark_checks()


def benchmark_checks() -> Iterator[Check]:
    """Yield checks of the programs and Python modules that the benchmarks need on this machine."""
    from steelyard.jobscripts import registry
    from steelyard.wrappers.submit.program_checks import suggest_package

    for name in registry.names():
        benchmark, title = registry.load(name), f"{BENCHMARK}{name}"
        for program in benchmark.needs:
            found = base_programs.find_program(program.name)
            advice = f"{program.why}: {suggest_package(program)}"
            yield presence_check(title, program.name, None if found is None else str(found), advice)
        for module in benchmark.modules:
            spec = importlib.util.find_spec(module.name)
            what = f"the Python module {module.name}"
            found_at = f"{what}: {spec.origin}" if spec else None
            yield presence_check(title, what, found_at, module.why)


def presence_check(name: str, what: str, found: str | None, advice: str) -> Check:
    """Return a check: ok if it was found, else a warning with advice."""
    if found is None:
        return Check(name, "warning", f"{what} was not found", advice)
    return Check(name, "ok", found)
