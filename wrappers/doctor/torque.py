"""Prologues and epilogues of Torque on this node: for `steelyard doctor`.

pbs_mom runs what root alone can write to. Anything else it refuses, and then requeues every job for
ever; an epilogue.precancel, which it runs as the job's user and cannot, takes the node down.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.base.check import Check

AS_ROOT = ("prologue", "epilogue", "prologue.parallel", "epilogue.parallel")
AS_USER = "epilogue.precancel"
OURS = b"# Steelyard: around a job of Torque"
SWEEP = Path("/etc/cron.d/steelyard-torque")
TIMER = Path("/etc/systemd/system/steelyard-torque-sweep.timer")
CRON = ("cron", "crond")
OWNER = 0
INSTALL = "on the node: make install-torque PBS_HOME={home} (docs/admin-pbs.md)"


def run_checks(home: Path, sweep: Path = SWEEP, timer: Path = TIMER) -> Iterator[Check]:
    """Nothing where no pbs_mom runs, on a host of the server or of users, and we are not installed."""
    folder = home / "mom_priv"
    installed = any(is_our_script(folder / base) for base in [*AS_ROOT, AS_USER])
    if not installed and not pbs_commands.has_mom(home):
        return
    yield check_scripts(folder)
    yield from check_sweep(home, sweep, timer)


def check_sweep(home: Path, sweep: Path, timer: Path) -> Iterator[Check]:
    """torque-sweep undoes the conditions of jobs that another node refused: it must run."""
    if timer.exists():
        return
    if not sweep.exists():
        why, advice = f"no {sweep}", INSTALL.format(home=home)
    elif not any(shutil.which(name, path=f"{os.defpath}:/usr/sbin:/sbin") for name in CRON):
        why, advice = f"{sweep} is there, but no cron", "install cron"
    else:
        return
    yield Check(
        "Torque sweep", "warning",
        f"{why}: conditions of a job that another node refused stay on this one",
        f"{advice}, or the timer of docs/admin-pbs.md ({timer})",
    )  # fmt: skip


def check_scripts(folder: Path) -> Check:
    """Are all there, ours, and such that pbs_mom runs them?"""
    name = "Torque prologues"
    names = [*AS_ROOT, AS_USER]
    faults = [fault for base in names for fault in list_faults(folder, base)]
    if faults:
        return Check(
            name, "missing", f"{folder}: {'; '.join(faults)}",
            "pbs_mom will not run them, and requeues jobs for ever: chown root, chmod 0755",
        )  # fmt: skip
    lacking = [base for base in names if not is_our_script(folder / base)]
    if lacking:
        return Check(
            name, "warning", f"{folder}: not Steelyard's: {', '.join(lacking)}",
            INSTALL.format(home=folder.parent),
        )  # fmt: skip
    sites = [base for base in names if (folder / f"{base}.site").exists()]
    beside = f", and the site's own: {', '.join(sites)}" if sites else ""
    return Check(name, "ok", f"{folder}: all {len(names)}{beside}")


def read_settings(home: Path) -> list[str]:
    """Options of `steelyard-node doctor`: the program and the file that our prologue names."""
    try:
        text = (home / "mom_priv/prologue").read_text(errors="replace")
    except OSError:
        return []
    said = dict(re.findall(r"^(PROGRAM|CONFIG)=(\S+)$", text, re.MULTILINE))
    if len(said) != 2:
        return []
    return [f"--node-program={said['PROGRAM']}", f"--config={said['CONFIG']}"]


def list_faults(folder: Path, base: str) -> Iterator[str]:
    """What pbs_mom, or ours for a site's own, would stumble over."""
    for path in (folder / base, folder / f"{base}.site"):
        try:
            status = path.lstat()
        except OSError:
            continue
        wanted = 0o505 if base == AS_USER else 0o500
        if status.st_uid != OWNER:
            yield f"{path.name} belongs to user {status.st_uid}, expected root"
        elif status.st_mode & 0o170000 != 0o100000:
            yield f"{path.name} is no regular file"
        elif status.st_mode & 0o022 or status.st_mode & wanted != wanted:
            yield f"{path.name} has mode {status.st_mode & 0o7777:04o}, expected 0755"


def is_our_script(path: Path) -> bool:
    """By its first lines; what cannot be read is taken for ours where it is there."""
    try:
        with path.open("rb") as file:
            return OURS in file.read(4096)
    except PermissionError:
        return True
    except OSError:
        return False
