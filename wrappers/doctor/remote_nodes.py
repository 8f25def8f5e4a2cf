"""Runs `steelyard-node doctor` on many nodes at once, through their scheduler or ssh."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import slurm_command_environment
from steelyard.analysis.sources.sample_library import INSTALLED
from steelyard.wrappers.base import programs
from steelyard.wrappers.base import programs as node_program
from steelyard.wrappers.base.doctor_check import Check

AT_ONCE = 16  # short jobs or connections: no more load than a user's small array
TIMEOUT_S = 120
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--")
ABSENT = 127

Way = Callable[[str, Sequence[str]], list[str]]  # makes a command that runs the given one on a node


@dataclass(frozen=True)
class Answer:
    """A node's checks; without checks the reason why it gave none."""

    node: str
    checks: tuple[Check, ...] = ()
    why: str = ""


def ssh_command(node: str, argv: Sequence[str]) -> list[str]:
    """Return the ssh command, which never prompts for a password."""
    return [*SSH, node, shlex.join(argv)]


def doctor_command(program: Path | None) -> list[str]:
    """Return the command that runs steelyard-node where jobs find it, else where this machine has
    it; it is the same for all nodes."""
    places = [str(folder / node_program.PROGRAM) for folder in INSTALLED]
    with suppress(MissingError):
        places.append(str(node_program.find_node_program()))
    places = [str(program)] if program else list(dict.fromkeys(places))
    looked = " ".join(places)
    script = (
        'for p in "$@"; do if [ -x "$p" ]; then exec "$p" doctor --json; fi; done; '
        f"echo steelyard-node is at none of {shlex.quote(looked)} >&2; exit {ABSENT}"
    )
    return ["/bin/sh", "-c", script, "sh", *places]


def query_nodes(nodes: Sequence[str], command_of: Way, program: Path | None) -> list[Answer]:
    """Return the answers of all nodes, in their order; a node that hangs delays no other."""
    line = doctor_command(program)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda node: query_node(node, command_of(node, line)), nodes))


def query_node(node: str, argv: Sequence[str]) -> Answer:
    """Return one node's answer; failures on the way to it are answers without checks."""
    try:
        done = programs.run_quietly(argv, TIMEOUT_S, slurm_command_environment.build_environment())
    except subprocess.TimeoutExpired:
        return Answer(node, why=f"no answer in {TIMEOUT_S} s")
    except OSError as error:
        return Answer(node, why=f"{argv[0]}: {error.strerror}")
    found = [line for line in done.stdout.splitlines() if line.startswith("[")]
    try:
        checks = tuple(Check(**check) for check in json.loads(found[-1]))
    except (IndexError, ValueError, TypeError):
        checks = ()
    return Answer(node, checks, "" if checks else error_line(done))


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the first error line: schedulers print the reason first."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[0] if lines else f"exit code {done.returncode}, and no word why"
