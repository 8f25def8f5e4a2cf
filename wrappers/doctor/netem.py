"""What network conditions need on this machine: for `steelyard doctor`. All of it may be missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from steelyard.wrappers.base.check import Check
from steelyard.wrappers.base.errors import SteelyardError
from steelyard.wrappers.netem import kernel as netem_kernel
from steelyard.wrappers.netem import program as netem

PAGE = "docs/netem.md"


def checks() -> Iterator[Check]:
    """Programs, kernel, policy, and what was left behind."""
    yield check_programs()
    yield check_kernel()
    yield check_policy(netem.POLICY)
    yield check_states(netem.run_dir())


def check_programs() -> Check:
    """tc does the work."""
    found = netem_kernel.program("tc")
    if found is None:
        return Check(
            "netem programs", "warning", "tc not found: no network conditions",
            "apt install iproute2",
        )  # fmt: skip
    return Check("netem programs", "ok", found)


def check_kernel() -> Check:
    """What this kernel can do, tried."""
    found = {module: netem_kernel.can(module) for module in netem_kernel.TRIALS}
    said = ", ".join(f"{module} {WORDS[answer.there]}" for module, answer in found.items())
    bad = next((answer for answer in found.values() if not answer.there), None)
    if bad is None:
        return Check("netem kernel", "ok", said)
    return Check("netem kernel", "warning", said, f"{bad.says}; without it: {PAGE}")


WORDS = {True: "is there", False: "is missing", None: "could not be tried"}


def check_policy(path: Path) -> Check:
    """Is there a policy, does it hold together, and does it let this user have anything?"""
    if not path.exists():
        return Check(
            "netem policy", "warning", f"{path} is not there: no job gets network conditions",
            f"an admin allows them: {PAGE}",
        )  # fmt: skip
    try:
        netem.ask("netem", "check", f"--policy={path}", "--", "delay=0ms")
    except SteelyardError as error:
        return Check(
            "netem policy", "warning", f"{path}: {error}", f"its lines are explained in {PAGE}"
        )
    return Check("netem policy", "ok", f"{path} lets you have a delay of 0 ms, at least")


def check_states(folder: Path) -> Check:
    """Conditions whose owner has ended: a crash left them."""
    if not folder.exists():
        return Check("netem states", "ok", f"none: {folder} is not there")
    try:
        states = netem.show(folder)
    except SteelyardError as error:
        return Check(
            "netem states", "warning", f"not known: {error}", "look again as root: only root may",
        )  # fmt: skip
    stale = [str(state.get("job_id")) for state in states if state.get("stale")]
    if stale:
        return Check(
            "netem states", "warning", f"{len(stale)} left behind, of job {', '.join(stale)}",
            "the next job on this node undoes them; now, as root: steelyard netem clear --all",
        )  # fmt: skip
    return Check("netem states", "ok", f"{len(states)} hold, none was left behind")
