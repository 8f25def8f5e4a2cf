"""Checks prologues and epilogues of Torque on this node, for `steelyard doctor`.

pbs_mom runs only files that root alone can write to. It refuses any other, and then requeues every
job for ever. An epilogue.precancel is run as the job's user; if that is not possible, the node goes
down."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.sources.pbs import pbs_commands
from steelyard.wrappers.base.doctor_check import Check

AS_ROOT = ("prologue", "epilogue", "prologue.parallel", "epilogue.parallel")
AS_USER = "epilogue.precancel"
OURS = b"# Steelyard: around a job of Torque"
SWEEP = Path("/etc/cron.d/steelyard-torque")
TIMER = Path("/etc/systemd/system/steelyard-torque-sweep.timer")
CRON = ("cron", "crond")
OWNER = 0
INSTALL = "on the node: make install-torque PBS_HOME={home} (docs/admin-pbs.md)"


def run_checks(home: Path, sweep: Path = SWEEP, timer: Path = TIMER) -> Iterator[Check]:
    """Yield the checks; none if no pbs_mom runs on this host and our scripts are not installed."""
    folder = home / "mom_priv"
    installed = any(is_our_script(folder / base) for base in [*AS_ROOT, AS_USER])
    if not installed and not pbs_commands.has_mom(home):
        return
    yield check_scripts(folder)
    yield from check_sweep(home, sweep, timer)


def check_sweep(home: Path, sweep: Path, timer: Path) -> Iterator[Check]:
    """Check that torque-sweep runs: it undoes the conditions of jobs that another node refused."""
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
    """Check that all scripts exist, are ours, and may be run by pbs_mom."""
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
    """Return options of `steelyard-node doctor`: the program and the file that our prologue
    names."""
    try:
        text = (home / "mom_priv/prologue").read_text(errors="replace")
    except OSError:
        return []
    settings = dict(re.findall(r"^(PROGRAM|CONFIG)=(\S+)$", text, re.MULTILINE))
    if len(settings) != 2:
        return []
    return [f"--node-program={settings['PROGRAM']}", f"--config={settings['CONFIG']}"]


def list_faults(folder: Path, base: str) -> Iterator[str]:
    """Yield the faults for which pbs_mom refuses a script, or ours refuses a site's own script."""
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
    """Return whether a script is ours, by its first lines; an unreadable existing one counts as
    ours."""
    try:
        with path.open("rb") as file:
            return OURS in file.read(4096)
    except PermissionError:
        return True
    except OSError:
        return False
