"""Whether this kernel can count what jobs use, and whether ours are to be counted so (`bpf=yes`):
for `steelyard doctor`."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from steelyard.wrappers.base import node, programs
from steelyard.wrappers.base.check import Check

NAME = "kernel counts"
LOST = "I/O of processes that no sample sees and nobody waits for is lost"
ASK = "an admin switches it on, bpf=yes in plugstack.conf: docs/sampler.md"
TIMEOUT_S = 10
SWITCH = re.compile(r"^[^#\n]*spank_steelyard\.so\b[^#\n]*\sbpf=(\w+)", re.MULTILINE)


def check(config: str) -> Check:
    """Here, and by this user; `config` is what scontrol shows."""
    program = node.find_program("steelyard-bpf")
    return judge(None if program is None else status(program), switch(config))


def status(program: Path) -> dict[str, Any]:
    """`steelyard-bpf status --json`: it tries."""
    try:
        done = programs.answer([str(program), "status", "--json"], TIMEOUT_S)
        said: dict[str, Any] = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"able": False, "root": True, "says": f"{program} does not answer: {error}"}
    return said


def switch(config: str) -> str:
    """yes, no, or that it is not known."""
    path = re.search(r"(?m)^PlugStackConfig\s*=\s*(\S+)", config)
    try:
        found = SWITCH.search(Path(path[1]).read_text(encoding="utf-8")) if path else None
    except (OSError, UnicodeDecodeError):
        return "not known"
    return "yes" if found and found[1].lower().startswith("y") else "no"


def judge(said: dict[str, Any] | None, asked: str) -> Check:
    """`said` by steelyard-bpf; None: there is none."""
    if said is None:
        can = "steelyard-bpf was not found"
        advice = "build it with libbpf-dev and clang: make all"
    elif not said["able"] and not said["root"]:
        can, advice = "not known: only root can try", "look again as root"
    else:
        can = str(said["says"])
        if said["able"] and not said["walk"]:
            can += ", slowly: before Linux 5.17 all tasks of the node are gone through"
        advice = "Linux 5.8 or later, with BTF: docs/sampler.md"
    if said is not None and said["able"]:
        if asked == "yes":
            return Check(NAME, "ok", f"{can}; bpf=yes: of jobs, too")
        return Check(NAME, "ok", f"{can}; bpf={asked}: {LOST}", ASK)
    return Check(NAME, "warning" if asked == "yes" else "ok", f"{can}; bpf={asked}: {LOST}", advice)
