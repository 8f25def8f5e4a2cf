"""`steelyard-node doctor` on many nodes at once, through their scheduler or ssh; nodes with equal
results are printed as a group, the others by their difference."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import slurm_command_environment
from steelyard.analysis.sources.sample_library import INSTALLED
from steelyard.wrappers.base import programs
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
    places = [str(folder / programs.PROGRAM) for folder in INSTALLED]
    with suppress(MissingError):
        places.append(str(programs.find_node_program()))
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


NUMBERED = re.compile(r"(.*?)(\d+)$")
# Checks whose numbers change from minute to minute.
BUSY = ("netem states", "records", "sweep", "spool")
MARKS = {"ok": "ok", "warning": "warning", "missing": "MISSING"}


@dataclass(frozen=True)
class Group:
    """Nodes with equal results, and the checks of one of them."""

    nodes: tuple[str, ...]
    checks: tuple[Check, ...]


def group_nodes(answers: Iterable[Answer]) -> list[Group]:
    """Return the groups, the largest first; nodes without an answer are in none."""
    nodes: dict[tuple[object, ...], list[Answer]] = {}
    for answer in answers:
        if answer.checks:
            nodes.setdefault(tuple(map(check_key, answer.checks)), []).append(answer)
    found = [Group(tuple(one.node for one in same), same[0].checks) for same in nodes.values()]
    return sorted(found, key=lambda group: -len(group.nodes))


def check_key(check: Check) -> tuple[str, str, str]:
    """Return the part of a check that is compared between nodes."""
    quiet = check.name in BUSY and check.state == "ok"
    return check.name, check.state, "" if quiet else check.found


def fold_node_names(nodes: Sequence[str]) -> str:
    """Return node names in the notation of schedulers: `n1 n2 n3 n7 login` -> n[1-3,7],login."""
    numbers: dict[tuple[str, int], list[int]] = {}
    plain_names = []
    for name in nodes:
        found = NUMBERED.fullmatch(name)
        if found is None:
            plain_names.append(name)
        else:
            numbers.setdefault((found[1], len(found[2])), []).append(int(found[2]))
    return ",".join(
        [*(fold_numbers(stem, width, set(n)) for (stem, width), n in numbers.items()), *plain_names]
    )


def fold_numbers(stem: str, width: int, numbers: set[int]) -> str:
    """Fold the numbers of one stem that have the same number of digits."""
    ends = [sorted(n for n in numbers if n - step not in numbers) for step in (1, -1)]
    parts = [
        f"{low:0{width}}" if low == high else f"{low:0{width}}-{high:0{width}}"
        for low, high in zip(*ends, strict=True)
    ]
    return f"{stem}{parts[0]}" if len(numbers) == 1 else f"{stem}[{','.join(parts)}]"


def format_groups(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield lines for the terminal: the largest group, the others by their difference, nodes
    without an answer."""
    groups = group_nodes(answers)
    for number, group in enumerate(groups):
        yield f"{fold_node_names(group.nodes)} ({len(group.nodes)} of {len(answers)})"
        yield from format_group(group) if number == 0 else format_difference(groups[0], group)
    silent: dict[str, list[str]] = {}
    for answer in answers:
        if not answer.checks:
            silent.setdefault(answer.why.replace(answer.node, "NODE"), []).append(answer.node)
    for why, nodes in silent.items():
        yield f"{fold_node_names(nodes)} ({len(nodes)} of {len(answers)})"
        yield f"  UNREACHED {why}"


def format_group(group: Group) -> Iterator[str]:
    """Yield all checks of a group."""
    for check in group.checks:
        yield from format_check(check, "  ")


def format_difference(usual: Group, odd: Group) -> Iterator[str]:
    """Yield the checks in which a group differs from the usual one, and those that it does not
    have."""
    known = {check_key(check) for check in usual.checks}
    yield from (
        row
        for check in odd.checks
        if check_key(check) not in known
        for row in format_check(check, "  ")
    )
    names = {check.name for check in odd.checks}
    for check in usual.checks:
        if check.name not in names:
            yield f"  -        {check.name}: not reported here"


def format_check(check: Check, indent: str = "") -> Iterator[str]:
    """Yield the line of a check, and one of what to do."""
    yield f"{indent}{MARKS[check.state]:<8} {check.name}: {check.found}"
    if check.advice:
        yield f"{indent}{'':<8} -> {check.advice}"
