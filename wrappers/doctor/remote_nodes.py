"""`steelyard-node doctor` on many nodes at once, each asked through its scheduler, or by ssh."""

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
from steelyard.analysis.sources import slurm_environment
from steelyard.analysis.sources.sample_library import INSTALLED
from steelyard.wrappers.base import programs
from steelyard.wrappers.base import programs as node_program
from steelyard.wrappers.base.check import Check

AT_ONCE = 16  # short jobs, or connections: no more load than a user's small array
TIMEOUT_S = 120
SSH = ("ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--")
ABSENT = 127

Way = Callable[
    [str, Sequence[str]], list[str]
]  # from a node and a command to one that runs it there


@dataclass(frozen=True)
class Answer:
    """What a node says of itself; without checks why it says nothing."""

    node: str
    checks: tuple[Check, ...] = ()
    why: str = ""


def ssh_command(node: str, argv: Sequence[str]) -> list[str]:
    """Without a password to be asked for."""
    return [*SSH, node, shlex.join(argv)]


def doctor_command(program: Path | None) -> list[str]:
    """Where jobs find it, else where this machine has it: one and the same line for all nodes."""
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


def query_nodes(nodes: Sequence[str], way: Way, program: Path | None) -> list[Answer]:
    """All of them, in their order; one that hangs holds up no other."""
    line = doctor_command(program)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda node: query_node(node, way(node, line)), nodes))


def query_node(node: str, argv: Sequence[str]) -> Answer:
    """One node; nothing that goes wrong on the way is an answer of it."""
    try:
        done = programs.run_quietly(argv, TIMEOUT_S, slurm_environment.build_environment())
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
    """The line that says most: the first error, as schedulers say why before they say that."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[0] if lines else f"exit code {done.returncode}, and no word why"
