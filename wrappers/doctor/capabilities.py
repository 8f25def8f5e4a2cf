"""What a user can do on this machine, derived from the checks of `steelyard doctor`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.launchers import launcher_checks
from steelyard.wrappers.launchers.launcher_grammar import Launcher

SCHEDULERS = {"Slurm": "sbatch job.sh, then steelyard show JOBID", "PBS": "qsub job.sh"}
BENCHMARK = "benchmark "


@dataclass(frozen=True)
class Capability:
    """Something that a user may want to do: how, or (`can` is False) what prevents it."""

    can: bool
    what: str
    text: str


def list_capabilities(checks: Sequence[Check], root: bool | None = None) -> list[Capability]:
    """Return the capabilities in the order in which a user learns Steelyard."""
    states = {check.name: check for check in checks}
    if states["node program"].state != "ok":
        return [Capability(False, "measure anything", states["node program"].advice)]
    as_root = os.geteuid() == 0 if root is None else root
    return [
        Capability(True, "measure a command", "steelyard run -- COMMAND"),
        describe_energy(states["energy"]),
        describe_containers(),
        describe_network(states, as_root),
        Capability(
            True, "a study on this machine", "steelyard submit STUDY.toml --scheduler local"
        ),
        *(describe_jobs(states[name]) for name in SCHEDULERS if name in states),
        *list_benchmarks(checks),
    ]


def describe_energy(check: Check) -> Capability:
    """Return whether the energy of commands can be measured here."""
    can = check.state == "ok"
    return Capability(can, "joules of it", "in every answer" if can else check.found)


ENGINES = ("docker", "podman")
NAMED = {**dict.fromkeys(ENGINES, ":IMAGE"), "apptainer": ":FILE", "lxc": ":NAME",
         "systemd-nspawn": ":FOLDER"}  # fmt: skip


def describe_containers() -> Capability:
    """Return the kinds of containers whose programs are installed, that this user may start, and
    whose engine answers."""
    what, kinds = "in a container", [kind for kind in launcher_checks.PROGRAMS if kind != "bare"]
    startable = [f"{kind}{NAMED.get(kind, '')}" for kind in kinds if can_start(kind)]
    if not startable:
        return Capability(
            False, what, f"none of {', '.join(kinds)} is here for you: docs/launchers.md"
        )
    first, *others = reversed(startable)
    more = f"; also {', '.join(others)}" if others else ""
    return Capability(True, what, f"steelyard run --in {first} -- COMMAND{more}")


def can_start(kind: str) -> bool:
    """Return whether the kind can start, as far as can be checked without an image."""
    launcher = Launcher(kind)
    if launcher_checks.refusal_reason(launcher, os.geteuid()) is not None:
        return False
    if not all(shutil.which(program) for program, _ in launcher_checks.PROGRAMS[kind]):
        return False
    if kind in ENGINES:
        return launcher_checks.error_line(kind, "version") is None
    return kind in NAMED or launcher_checks.find_missing(launcher) is None


def describe_network(states: dict[str, Check], root: bool) -> Capability:
    """Return whether a command can run under network conditions here; for jobs the administrator
    decides."""
    what = "under network conditions"
    for name in ("netem programs", "netem kernel"):
        check = states.get(name)
        if check is not None and check.state != "ok":
            return Capability(
                False, what, f"{check.found}; root may try: steelyard cluster up --virtual 2"
            )
    if not root:
        return Capability(False, what, "root may: steelyard run --netem=delay=50ms -- COMMAND")
    return Capability(True, what, "steelyard run --netem=delay=50ms -- COMMAND")


def describe_jobs(check: Check) -> Capability:
    """Return whether jobs can be submitted to a scheduler."""
    what = f"jobs of {check.name}"
    if check.state == "ok":
        return Capability(True, what, SCHEDULERS[check.name])
    trial = "; to try: steelyard cluster up" if check.name == "Slurm" else ""
    return Capability(False, what, f"{check.found}{trial}")


def list_benchmarks(checks: Sequence[Check]) -> list[Capability]:
    """Return the benchmarks with all their requirements, and the others with what is missing."""
    lacking: dict[str, list[str]] = {}
    for check in checks:
        if check.name.startswith(BENCHMARK):
            found = lacking.setdefault(check.name.removeprefix(BENCHMARK), [])
            found += [check.found] if check.state != "ok" else []
    ready = [name for name, found in lacking.items() if not found]
    parted = [f"{name} ({', '.join(found)})" for name, found in lacking.items() if found]
    capabilities = [Capability(True, "benchmarks", ", ".join(ready))] if ready else []
    return capabilities + ([Capability(False, "benchmarks", ", ".join(parted))] if parted else [])
