"""Checks what this node can measure, what is missing, and which leftovers killed runs have on it.

`steelyard-node doctor` checks and judges; this module runs it and adds the leftovers."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.base import leftovers, programs
from steelyard.wrappers.base.doctor_check import Check

TIMEOUT_S = 60  # it runs tc, steelyard-bpf and slurmd, which may hang: 10 s each
NAME = "node program"
# Settings of this user's readers: the command's option, and the variable.
SAID = (("--record-dir", "STEELYARD_RECORD_DIR"), ("--run-dir", "STEELYARD_RUN_DIR"))


def check_node(*settings: str) -> Iterator[Check]:
    """Yield the checks of the node program; `settings` are its options if the caller knows better
    than its files."""
    try:
        program = programs.find_node_program()
    except MissingError as error:
        yield Check(NAME, "missing", "steelyard-node was not found", str(error))
        return
    named = [f"{option}={os.environ[name]}" for option, name in SAID if os.environ.get(name)]
    yield from query_program(program, *settings, *named)


def query_program(program: Path, *options: str) -> list[Check]:
    """Return the program's checks, or one check that says why it does not answer."""
    try:
        done = programs.run_quietly([str(program), "doctor", "--json", *options], TIMEOUT_S)
    except (OSError, subprocess.SubprocessError) as error:
        return [unanswered_check(program, str(error))]
    try:
        return [Check(**check) for check in json.loads(done.stdout)]
    except (ValueError, TypeError):
        return [
            unanswered_check(
                program, done.stderr.partition("\n")[0] or f"exit code {done.returncode}"
            )
        ]


def unanswered_check(program: Path, why: str) -> Check:
    """Return the check for a program that exists but does not answer: of another machine, or an
    older one."""
    return Check(
        NAME, "missing", f"{program} doctor gives no answer: {why}",
        f"{programs.remedy(programs.PROGRAM)}, on this machine",
    )  # fmt: skip


LEFTOVERS = "killed runs"


def check_leftovers() -> Iterator[Check]:
    """Yield a check with the leftovers, which the next run removes."""
    try:
        leftover_lines = leftovers.run_script("list")
    except (OSError, subprocess.SubprocessError) as error:
        yield Check(LEFTOVERS, "warning", f"what they left is not known: {error}")
        return
    what = "network devices, cgroups and folders" if os.geteuid() == 0 else "folders of yours"
    if not leftover_lines:
        yield Check(LEFTOVERS, "ok", f"none left {what} here")
        return
    yield Check(
        LEFTOVERS,
        "warning",
        f"{len(leftover_lines)} left behind: {'; '.join(leftover_lines)}",
        "the next run removes them: steelyard run -- true",
    )
