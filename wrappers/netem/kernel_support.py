"""Tests what this kernel has of sch_netem, sch_tbf and ifb, in a fresh network namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from steelyard.facts.def_rows import rows, text_of
from steelyard.facts.netem_keys import VALUES
from steelyard.wrappers.base import programs

TIMEOUT_S = 10
# The kernel's messages: 'Specified qdisc kind is unknown.', and for a device 'Unknown device type.'
UNKNOWN = ("is unknown", "Unknown device type")
PACKAGES = {"tc": "iproute2", "ip": "iproute2", "unshare": "util-linux"}


@dataclass(frozen=True)
class Support:
    """Whether a kernel module is available; None if it could not be tested."""

    there: bool | None
    message: str


def list_required_modules(spec: Mapping[str, object]) -> Iterator[str]:
    """Yield the modules that a specification (docs/formats.md part 9) needs."""
    needs = {value.needs for value in VALUES if value.json in spec}
    if "TBF" in needs and "NETEM" not in needs:
        yield "sch_tbf"
    elif needs - {"NOTHING"}:
        yield "sch_netem"
    if spec.get("direction") in ("ingress", "both"):
        yield "ifb"


def try_module(module: str) -> Support:
    """Test a module in a namespace that ends with the test, so that the machine is not changed."""
    names = ("unshare", TRIALS[module][0])
    found = {name: find_program(name) for name in names}
    for name, path in found.items():
        if path is None:
            return Support(None, f"{name} is missing: apt install {PACKAGES[name]}")
    # An ordinary user is root only in a user namespace, if the system permits one.
    mine = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    argv = [str(found["unshare"]), *mine, "--net", "--", str(found[names[1]])]
    return run_trial(module, [*argv, *TRIALS[module][1:]])


def run_trial(module: str, argv: list[str]) -> Support:
    """Run a test and interpret its output."""
    try:
        done = programs.run_quietly(argv, TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Support(None, f"could not be tried: {error}")
    if done.returncode == 0:
        return Support(True, "tried in a network namespace of its own")
    message = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
    if any(word in message for word in UNKNOWN):
        advice = "modprobe it, or boot a kernel that has it (Debian's linux-image packages do)"
        return Support(False, f"this kernel has no {module}: {advice}")
    return Support(None, f"could not be tried as this user: {message}")


def find_program(name: str) -> str | None:
    """Return the program's path. tc is in sbin, which may be missing from an ordinary user's
    PATH."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")


# Kernel module: the command that needs it.
TRIALS: dict[str, tuple[str, ...]] = {
    module: tuple(command.split()) for _, (module, command) in rows(text_of("netem_trials.def"))
}
