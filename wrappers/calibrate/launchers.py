"""Which launchers can be tried on this machine: with the images and containers that are here."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import ConditionError, MissingError, UsageError
from steelyard.wrappers.calibrate.table import Trouble
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.launchers import needs as launcher_checks

TIMEOUT_S = 20
# What lists the names that may stand behind the colon.
LISTS = {
    "docker": ("docker", "images", "--format", "{{.Repository}}:{{.Tag}}"),
    "podman": ("podman", "images", "--format", "{{.Repository}}:{{.Tag}}"),
    "lxc": ("lxc-ls", "-1"),
}
NAME_ONE = "name one: --in="


@dataclass
class Found:
    """Launchers to try, and those that cannot be."""

    usable: list[str] = field(default_factory=list)
    lacking: list[Trouble] = field(default_factory=list)


def here(asked: Sequence[str] | None) -> Found:
    """Those that were asked for, else one of each kind."""
    found = Found()
    for kind in launchers.NAMED if asked is None else ():
        if kind != "bare":
            one_of(kind, found)
    for text in asked or ():
        why = refusal(text)
        if why is None:
            found.usable.append(text)
        else:
            found.lacking.append(Trouble(f"run --in {text}", why))
    return found


def one_of(kind: str, found: Found) -> None:
    """The first name of this kind that can be started."""
    what, why = launchers.NAMED[kind], None
    for text in names(kind) if what else [kind]:
        why = refusal(text)
        if why is None:
            found.usable.append(text)
            return
    found.lacking.append(
        Trouble(f"run --in {kind}", why or f"no {what} is known here: {NAME_ONE}{kind}:{what}")
    )


def names(kind: str) -> Iterator[str]:
    """Launchers with the names that are here."""
    argv = LISTS.get(kind)
    if argv is None:
        return
    try:
        done = programs.answer(argv, TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return
    for name in done.stdout.split():
        if "<none>" not in name:
            yield f"{kind}:{name}"


def refusal(text: str) -> str | None:
    """Why it cannot be started here."""
    try:
        launcher_checks.check_here(launchers.parse(text))
    except (ConditionError, MissingError, UsageError) as error:
        return str(error)
    return None
