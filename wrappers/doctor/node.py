"""What this node can measure, and what it lacks: asked of `steelyard-node doctor`, which says the same
on compute nodes without Python."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.base import node, programs
from steelyard.wrappers.base.check import Check

TIMEOUT_S = 60  # it asks tc, steelyard-bpf and slurmd, which hang at times: 10 s each
NAME = "node program"
# Where this user's readers look: the command's option, and the variable.
SAID = (("--record-dir", "STEELYARD_RECORD_DIR"), ("--run-dir", "STEELYARD_RUN_DIR"))


def checks(*settings: str) -> Iterator[Check]:
    """All that it looks at; `settings`: its options, where somebody knows better than its files."""
    try:
        program = node.find_node_program()
    except MissingError as error:
        yield Check(NAME, "missing", "steelyard-node was not found", str(error))
        return
    named = [f"{option}={os.environ[name]}" for option, name in SAID if os.environ.get(name)]
    yield from ask(program, *settings, *named)


def ask(program: Path, *options: str) -> list[Check]:
    """Its answer; that it gives none is one, too."""
    try:
        done = programs.answer([str(program), "doctor", "--json", *options], TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return [silent(program, str(error))]
    try:
        return [Check(**check) for check in json.loads(done.stdout)]
    except (ValueError, TypeError):
        return [silent(program, done.stderr.partition("\n")[0] or f"exit code {done.returncode}")]


def silent(program: Path, why: str) -> Check:
    """It is there and does not answer: of another machine, or an older one."""
    return Check(
        NAME, "missing", f"{program} doctor gives no answer: {why}",
        f"{node.remedy(node.PROGRAM)}, on this machine",
    )  # fmt: skip


def one(name: str, *options: str) -> Check:
    """A single check of it; MissingError where there is no such program."""
    return ask(node.find_node_program(), "--only", name, *options)[0]
