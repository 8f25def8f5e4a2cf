"""A throwaway Slurm cluster on this machine: four nodes, accounting, the plugin; no root needed.

up       start the cluster; one that runs is not changed
status   list its nodes and daemons, and the variables that a shell needs
shell    open a shell whose sbatch, srun, sacct and steelyard use it
down     cancel its jobs and stop it; records stay until the next up
exec     run a command in a virtual node: exec v1 -- uname -r
console  print the kernel log of a virtual node: console v1

With --virtual N (root only) the cluster has N virtual machines, v1 to vN, and the node n1, which is
this machine. Virtual machines have their own kernel, so every network condition is possible.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.wrappers.base import console, errors, programs
from steelyard.wrappers.cluster import cluster, cluster_config, daemons, guest_start
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout

EXEC_USAGE = "steelyard cluster exec NODE -- COMMAND… (--dir before 'exec')"
EXEC_LIMIT_S = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of all verbs; those about the cluster's shape apply to `up` only."""
    parser.allow_abbrev = False  # --virtual must not be taken for --virtual-feature
    parser.usage = "steelyard cluster [OPTIONS] VERB [NODE [-- COMMAND…]]"
    parser.add_argument("verb", metavar="VERB", choices=tuple(VERBS), help=", ".join(VERBS))
    parser.add_argument(
        "words", metavar="NODE", nargs="*", help="the virtual node, for exec and console"
    )
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="the cluster's folder (default: $STEELYARD_CLUSTER_DIR, else ~/.cache/steelyard/cluster)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document (up, status, down)"
    )
    _add_shape(parser.add_argument_group("for up"))


def _add_shape(shape: argparse._ArgumentGroup) -> None:
    shape.add_argument(
        "--physical",
        type=_count,
        metavar="N",
        help="nodes labeled physical (default: 2; 1 with --virtual)",
    )
    shape.add_argument(
        "--virtual-feature",
        type=_count,
        metavar="N",
        help="nodes labeled virtual that are not virtual machines, for trials (default: 2; 0 with --virtual)",
    )
    shape.add_argument(
        "--virtual",
        type=_count,
        default=0,
        metavar="N",
        help="number of virtual machines; needs root (default: 0)",
    )
    shape.add_argument(
        "--nfs", action="store_true", help="add a virtual machine that serves /nfs to the others"
    )
    shape.add_argument(
        "--memory",
        type=_count,
        default=640,
        metavar="MB",
        help="memory of each virtual machine, in MB (default: 640)",
    )
    shape.add_argument(
        "--share",
        type=Path,
        action="append",
        metavar="DIR",
        help="folder shared with the virtual machines; repeatable (default: the current folder and your home)",
    )
    shape.add_argument(
        "--cpus",
        type=_count,
        default=0,
        metavar="N",
        help="CPUs of each node (default: all CPUs of this machine)",
    )
    shape.add_argument(
        "--proctrack",
        choices=("linuxproc", "pgid", "cgroup"),
        default="linuxproc",
        help="how Slurm tracks processes (default: linuxproc); cgroup needs root",
    )
    shape.add_argument(
        "--gather-interval",
        type=_count,
        default=30,
        metavar="SECONDS",
        help="Slurm's own sampling interval (default: 30; 0: only at the end of a job)",
    )
    shape.add_argument("--no-contain", action="store_true", help="do not set PrologFlags=Contain")
    shape.add_argument("--no-plugin", action="store_true", help="do not load the Steelyard plugin")


def main(args: argparse.Namespace) -> int:
    """Run one verb."""
    folder = args.dir.absolute() if args.dir else cluster_config.default_dir()
    if args.words and args.verb not in ("exec", "console"):
        raise UsageError(f"'{args.verb}' takes no '{args.words[0]}'", part=args.verb)
    return VERBS[args.verb](folder, args)


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _up(folder: Path, args: argparse.Namespace) -> int:
    already = cluster.find_cluster(folder)
    if already is not None:
        return _describe(already, args.json, "is already running")
    daemons.check_programs()
    plugin, node_program = (None, None) if args.no_plugin else cluster.find_plugin()
    shares = tuple(share.absolute() for share in args.share or guest_start.list_default_shares())
    labelled = 0 if args.virtual else 2
    config = ClusterConfig(
        dir=folder,
        physical_nodes=args.physical if args.physical is not None else labelled or 1,
        virtual_nodes=args.virtual_feature if args.virtual_feature is not None else labelled,
        guests=args.virtual,
        nfs=args.nfs,
        memory_mb=args.memory,
        shares=shares if args.virtual else (),
        cpus=args.cpus,
        proctrack=args.proctrack,
        gather_interval_s=args.gather_interval,
        contain=not args.no_contain,
        plugin=plugin,
        node_program=node_program,
    )
    begin = time.monotonic()
    started = cluster.start_cluster(config)
    if args.virtual and not args.json:
        print(f"virtual nodes are guests of {guest_start.choose_kind()}")
    return _describe(started, args.json, f"is up after {time.monotonic() - begin:.1f} s")


def _status(folder: Path, args: argparse.Namespace) -> int:
    running = cluster.find_cluster(folder)
    if running is not None:
        return _describe(running, args.json, "runs")
    state = daemons.load_state(folder)
    alive = {daemon.name for daemon in state.list_running()} if state else set()
    if args.json:
        console.print_json({"dir": str(folder), "running": False, "daemons": sorted(alive)})
        return errors.MISSING
    if state is None or not state.daemons:
        raise MissingError(f"no cluster runs in {folder}; start one: steelyard cluster up")
    dead = [daemon.name for daemon in state.daemons if daemon.name not in alive]
    raise MissingError(
        f"the cluster in {folder} is broken: {', '.join(dead) or 'its start'} ended early "
        f"(logs: {folder}/log); restart it: steelyard cluster down, steelyard cluster up"
    )


def _shell(folder: Path, args: argparse.Namespace) -> int:
    del args
    running = _attach_or_fail(folder)
    shell = os.environ.get("SHELL", "/bin/sh")
    print(f"shell of the cluster in {folder}; 'exit' leaves it, the cluster stays up")
    return subprocess.run([shell], env=running.environment(), check=False).returncode


def _down(folder: Path, args: argparse.Namespace) -> int:
    ended = cluster.stop_cluster(folder)
    if args.json:
        console.print_json({"dir": str(folder), "ended": ended})
    else:
        print(f"the cluster in {folder} " + ("is down" if ended else "was not running"))
    return errors.DONE


def _exec(folder: Path, args: argparse.Namespace) -> int:
    if len(args.words) < 2:
        raise UsageError(f"expected: {EXEC_USAGE}", part="exec")
    guest = _attach_or_fail(folder).find_guest(args.words[0])
    done = guest.run(args.words[1:], timeout_s=EXEC_LIMIT_S)
    print(done.stdout, end="")
    print(done.stderr, end="", file=sys.stderr)
    return done.returncode


def _console(folder: Path, args: argparse.Namespace) -> int:
    if len(args.words) != 1:
        raise UsageError("expected: steelyard cluster console NODE", part="console")
    # Dead guests, too: the console log has the reason.
    path = Layout(folder).guest_dir / args.words[0] / "console.log"
    if not path.is_file():
        raise MissingError(f"no virtual node '{args.words[0]}' was started in {folder}")
    print(path.read_text(errors="replace"), end="")
    return errors.DONE


VERBS: dict[str, Callable[[Path, argparse.Namespace], int]] = {
    "up": _up,
    "status": _status,
    "shell": _shell,
    "down": _down,
    "exec": _exec,
    "console": _console,
}


def _attach_or_fail(folder: Path) -> cluster.Cluster:
    running = cluster.find_cluster(folder)
    if running is None:
        raise MissingError(f"no cluster runs in {folder}; start one: steelyard cluster up")
    return running


def _nodes(running: cluster.Cluster) -> list[tuple[str, str, str]]:
    """Return (node, features, state) from sinfo."""
    done = programs.run_quietly(
        [daemons.find_program("sinfo"), "-h", "-N", "-o", "%N|%f|%T"],
        20,
        running.environment(),
    )
    if done.returncode != 0:
        raise MissingError(f"slurmctld does not answer: {done.stderr.strip()}")
    rows = [line.split("|") for line in done.stdout.splitlines()]
    return [(name, feature, state) for name, feature, state in rows]


def _describe(running: cluster.Cluster, as_json: bool, how: str) -> int:
    nodes = _nodes(running)
    state = running.state
    if as_json:
        console.print_json(
            {
                "dir": str(running.dir),
                "running": True,
                "slurm_version": state.slurm_version,
                "plugin": state.plugin,
                "nodes": [dict(zip(("name", "feature", "state"), n, strict=True)) for n in nodes],
                "daemons": {daemon.name: daemon.pid for daemon in state.daemons},
                "environment": running.variables(),
            }
        )
        return errors.DONE
    plugin = "with the Steelyard plugin" if state.plugin else "without the Steelyard plugin"
    print(f"Slurm {state.slurm_version}, {plugin}, {how}: {running.dir}")
    console.print_table(("node", "feature", "state"), nodes)
    print(f"daemons: {', '.join(f'{d.name} {d.pid}' for d in state.daemons)}")
    print(f"logs: {Layout(running.dir).log_dir}\n")
    for key, value in running.variables().items():
        print(f"export {key}={shlex.quote(value)}")
    print(
        "\nPaste these lines, or use 'steelyard cluster shell'; stop it: 'steelyard cluster down'"
    )
    return errors.DONE
