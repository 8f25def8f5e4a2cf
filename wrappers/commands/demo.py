"""`make demo`: what does it cost to run on a virtual node, and when the data is 20 ms away?

Two studies through a throwaway Slurm cluster with a virtual node and a file server, by the commands
a user types; last the answer. Where no virtual node can be started it says why, and asks instead
what a second client costs. Everything goes to demo/: a folder named by the time with the studies,
and a report of each. The cluster is ended whatever happens, on Ctrl-C and SIGTERM too.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from steelyard.wrappers.base import errors, programs
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig
from steelyard.wrappers.commands import cli

if TYPE_CHECKING:
    from steelyard.analysis.summary.summary import Summary

ROOT = Path(__file__).resolve().parents[2]
STUDIES = ROOT / "jobscripts" / "demo"
# study: its question and its work
VIRTUAL = {
    "virtual": (
        "What does it cost to run on a virtual node?",
        "The kernel cg of npb computes (class A), filesystem writes 2048 small files.",
    ),
    "distance": (
        "What does it cost when the data is 20 ms away?",
        "A file of 4 MiB is copied on the file server; a round trip takes 20 ms more.",
    ),
}
CLIENTS = {
    "clients": (
        "What does it cost to run beside a second client?",
        "A system of equations is solved (hpl), filesystem copies and writes files.",
    )
}
# Notes by the virtual machine in the record of v1.
GUESTS = {
    "uml": "v1 is a guest of User Mode Linux, not of KVM: its figures are about this guest only.",
    "kvm": "v1 is a guest of QEMU with KVM, with one CPU: this is what KVM costs on this machine.",
}
COLUMNS = 80
ENDS = (signal.SIGINT, signal.SIGTERM)
END_LIMIT_S = 30.0
GOES_ON = (errors.DONE, errors.RUNS_FAILED)  # failed runs are part of a study; other codes end it


@dataclass(frozen=True)
class Demo:
    """Paths of a demo: reports in demo/ below the root, the cluster in build/."""

    root: Path
    begun: datetime

    @property
    def folder(self) -> Path:
        """The folder of the reports, with a folder for each demo."""
        return self.root / "demo"

    @property
    def work(self) -> Path:
        """The folder of this demo's studies."""
        return self.folder / f"{self.begun:%Y-%m-%dT%H-%M-%S}"


def main(root: Path = ROOT) -> int:
    """Run the demo; return the exit code of the first command that failed, else 0."""
    for number in ENDS:
        signal.signal(number, _interrupt)
    begin = time.monotonic()
    try:
        code = _demo(Demo(root, datetime.now().astimezone()))
    except KeyboardInterrupt:
        code = errors.INTERRUPTED
    except errors.EXPECTED as error:
        print(f"demo: {error}", file=sys.stderr)
        return errors.exit_code(error)
    if code == errors.INTERRUPTED:
        print("\ndemo: interrupted; what it started has been ended", file=sys.stderr)
    else:
        print(f"demo: {time.monotonic() - begin:.0f} s; what it started has been ended")
    return code


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt once: a second Ctrl-C, while the cluster stops, must not leave
    daemons."""
    for number in ENDS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _demo(demo: Demo) -> int:
    try:
        demo.work.mkdir(parents=True)
    except PermissionError as error:  # owned by root, from an earlier demo
        raise errors.UsageError(f"you may not write to {demo.folder}: remove it") from error
    with ExitStack() as stack:
        stack.enter_context(_lock_demo(demo.folder))
        try:
            stack.enter_context(_cluster_running(_run_virtual(demo)))
            questions = VIRTUAL
        except errors.EXPECTED as error:
            print(_explain_replacement(error), flush=True)
            stack.enter_context(_cluster_running(_run_simulated(demo)))
            questions = CLIENTS
        code = _run_studies(demo, list(questions))
        if code in GOES_ON:
            _print_answers(demo, questions)
    return code


@contextmanager
def _lock_demo(folder: Path) -> Iterator[None]:
    """Allow one demo at a time in a checkout: each ends leftovers of an earlier one."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.UsageError(f"another demo is at work in {folder}: wait for it") from None
        yield


def _explain_replacement(error: Exception) -> str:
    """Return a line that says why no virtual node can start, and which question replaces the
    demo's."""
    reason = str(error).partition("\n")[0].rstrip(" :(")
    return f"demo: no virtual node here: {reason}. So it asks what a second client costs.\n"


def _run_simulated(demo: Demo) -> ClusterConfig:
    """Return a cluster of four nodes, all of them this machine."""
    plugin, node_program = cluster.find_plugin()
    return ClusterConfig(
        dir=demo.root / "build" / "demo-cluster",
        plugin=plugin,
        node_program=node_program,
        sample_rate_hz=10,  # runs take a second: enough points for a curve
    )


def _run_virtual(demo: Demo) -> ClusterConfig:
    """Return a cluster of this machine, a guest and a file server."""
    plugin, node_program = cluster.find_plugin()
    return ClusterConfig(
        dir=demo.root / "build" / "demo-cluster",
        physical_nodes=1,
        virtual_nodes=0,
        guests=1,
        nfs=True,
        shares=(demo.work,),
        plugin=plugin,
        node_program=node_program,
        sample_rate_hz=10,
    )


def _up_line(config: ClusterConfig) -> str:
    """Return the command that would start the cluster."""
    arguments = ["$ steelyard cluster up --dir", _shorten_path(str(config.dir))]
    if config.guests:
        arguments += [
            f"--virtual {config.guests} --nfs",
            *(f"--share {_shorten_path(str(s))}" for s in config.shares),
        ]
    return " ".join(arguments)


@contextmanager
def _cluster_running(config: ClusterConfig) -> Iterator[None]:
    """Run the cluster, select it in this process' environment, and stop it at the end."""
    begin, is_up = time.monotonic(), False
    print(_up_line(config), flush=True)
    cluster.stop_cluster(config.dir)  # leftovers of a killed demo
    try:
        with _show_activity("Slurm starts: some seconds"):
            slurm = cluster.start_cluster(config)
        is_up = True
        names = ", ".join(config.node_names() + ["nfs"] * config.nfs)
        print(f"{names}: up after {time.monotonic() - begin:.1f} s\n", flush=True)
        os.environ.update(slurm.variables())
        yield
    finally:
        with _block_signals():
            if is_up:
                print("$ steelyard cluster down", flush=True)
            cluster.stop_cluster(config.dir)


@contextmanager
def _block_signals() -> Iterator[None]:
    """Ignore Ctrl-C and SIGTERM during the body."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _show_activity(message: str) -> Iterator[None]:
    """Show a message while the body runs, on a terminal."""
    from rich.console import Console

    with Console().status(message):
        yield


def _run_studies(demo: Demo, names: Sequence[str]) -> int:
    """Run the studies in sequence; return the worst exit code, or that of the command that ended
    it."""
    worst = errors.DONE
    for name in names:
        study = demo.work / f"{name}.toml"
        shutil.copyfile(STUDIES / study.name, study)
        for command in (
            ["submit", str(study)],
            ["status", str(study), "--watch"],
            ["collect", str(study)],
            ["report", str(study), "-o", str(_report_path(demo, name))],
        ):
            code = _run_command(command)
            if code not in GOES_ON:
                return code
            worst = max(worst, code)
    return worst


def _report_path(demo: Demo, name: str) -> Path:
    return demo.folder / f"{name}.html"


def _run_command(command: list[str]) -> int:
    """Print a command and run it; return its exit code."""
    print("$ steelyard " + " ".join(_shorten_path(word) for word in command), flush=True)
    if command[0] == "collect":
        _wait_for_jobs()
    code = cli.main(command)
    print(flush=True)
    return code


def _wait_for_jobs() -> None:
    """Wait until no job is active: `status` reports the last result a moment before its job's end
    and record exist."""
    end = time.monotonic() + END_LIMIT_S
    while time.monotonic() < end and programs.run_quietly(["squeue", "-h"], END_LIMIT_S).stdout:
        time.sleep(0.2)


def _print_answers(demo: Demo, questions: Mapping[str, tuple[str, str]]) -> None:
    """Print each question with its report's own sentences and the report's path."""
    from steelyard.analysis.report.answer import describe_costs, describe_counts
    from steelyard.analysis.summary.summary import summarize

    for name, (question, work) in questions.items():
        summary = summarize(demo.work / f"{name}.study")
        print(question)
        for sentence in [
            work,
            *describe_costs(summary),
            *_describe_nodes(summary),
            describe_counts(summary),
        ]:
            print(textwrap.indent(textwrap.fill(sentence, COLUMNS - 2), "  "))
        print(f"  {_shorten_path(str(_report_path(demo, name)))} has the rest.\n", flush=True)


def _describe_nodes(summary: Summary) -> Iterator[str]:
    """Yield what a reader must know for a comparison of node types."""
    from steelyard.analysis.findings.finding import collect_facts_by_group
    from steelyard.analysis.report.answer import describe_elapsed_times

    if "node_type" not in summary.data.meta.factors:
        return
    for sentence in describe_elapsed_times(summary):
        yield f"Whole runs, with their start and end: {sentence}"
    facts = collect_facts_by_group(summary)

    def of_nodes(node_type: str, fact: str) -> set[str]:
        groups = [g for g in summary.groups if g.condition.get("node_type") == node_type]
        return set().union(*(facts.get((g.variant, g.label), {}).get(fact, ()) for g in groups))

    kinds = of_nodes("virtual", "vm")
    yield from (sentence for kind, sentence in GUESTS.items() if kind in kinds)
    if "virtual" in of_nodes("physical", "node_type"):
        yield "n1 is this machine, which is a virtual machine itself (SY30)."


def _shorten_path(word: str) -> str:
    """Return a path relative to the working folder."""
    return os.path.relpath(word) if word.startswith("/") else word


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
