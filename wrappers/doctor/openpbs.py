"""Checks the hook of OpenPBS, in its server and on this node, for `steelyard doctor`.

Only a manager can read hooks, and only root mom_priv: other users get no check of them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from steelyard.analysis.sources.pbs.pbs_commands import has_mom
from steelyard.analysis.sources.pbs.record_dir import HOOK_FILE, NODE_FILE, read_hook_file
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.doctor_check import Check

TIMEOUT_S = 10
EVENTS = frozenset(
    [
        "queuejob",
        "modifyjob",
        "execjob_begin",
        "execjob_attach",
        "execjob_epilogue",
        "execjob_end",
        "execjob_abort",
        "exechost_startup",
        "exechost_periodic",
    ]
)
AGAIN = "as a manager of the server: make install-openpbs RUN=yes (docs/admin-pbs.md)"
# Mode bits that must not be set, as required by a mom and by the hook.
WRITABLE_BY_OTHERS = 0o022


def find_home() -> Path | None:
    """Return PBS_HOME of this host from pbs.conf, or None."""
    try:
        text = Path(os.environ.get("PBS_CONF_FILE", "/etc/pbs.conf")).read_text(errors="replace")
    except OSError:
        return None
    found = re.search(r"^PBS_(?:MOM_)?HOME=(\S+)", text, re.MULTILINE)
    return Path(found[1]) if found else None


def run_checks(home: Path | None) -> Iterator[Check]:
    """Yield the checks that this user can make."""
    listed = list_hook()
    if listed is not None:
        yield check_server(listed)
    if home is not None and os.access(home / "mom_priv", os.R_OK | os.X_OK) and has_mom(home):
        yield from check_node(home / "mom_priv")


def list_hook() -> str | None:
    """Return what qmgr prints on the hook; None if the user is no manager, or without a server."""
    try:
        done = programs.run_quietly(["qmgr", "-c", "list hook steelyard"], TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.stdout.startswith("Hook ") else None


def check_server(listed: str) -> Check:
    """Check whether the hook is enabled with all its events."""
    settings = dict(re.findall(r"^\s+(\w+) = (.*(?:\n\t.*)*)", listed, re.MULTILINE))
    events = set(re.findall(r"\w+", settings.get("event", "")))
    if settings.get("enabled", "").lower() != "true":
        return Check("hook in the server", "warning", "not enabled: no job is measured", AGAIN)
    if EVENTS - events:
        lacking = ", ".join(sorted(EVENTS - events))
        return Check("hook in the server", "warning", f"lacks the events {lacking}", AGAIN)
    return Check("hook in the server", "ok", "enabled, with all its events")


def check_node(private: Path) -> Iterator[Check]:
    """Check the hook on a node with a mom, as root."""
    name = "hook on this node"
    hook, config = private / "hooks/steelyard.PY", private / "hooks/steelyard.CF"
    if not hook.exists():
        yield Check(name, "warning", f"no {hook}: jobs are not measured here", AGAIN)
        return
    program = Path(str(read_hook_file(config).get("node_program", "")))
    if not is_owned_by_root(program):
        yield Check(
            name, "missing",
            f"node_program={program} of {config}: expected a program of root's that nobody else "
            "can write to",
            "make install-openpbs on this node, or mend /etc/steelyard/openpbs.json and import it",
        )  # fmt: skip
        return
    yield Check(name, "ok", f"{hook}, with {program}")
    yield from check_epilogue(
        private / "epilogue", read_hook_file(config).get("classic_epilogue", "run")
    )


def read_settings(home: Path | None, file: Path = Path(HOOK_FILE)) -> list[str]:
    """Return options of `steelyard-node doctor`: from the hook on a node, else from the node's own
    file.

    On a host without a mom, or for an ordinary user: the folder of records that `file` names."""
    if home is None:
        return []
    settings = read_hook_file(home / "mom_priv/hooks/steelyard.CF")
    if not is_owned_by_root(Path(str(settings.get("node_program", "")))):
        record_dir = read_hook_file(file).get("record_dir")
        return [f"--record-dir={record_dir}"] if record_dir else []
    options = [
        f"--node-program={settings['node_program']}",
        f"--config={settings.get('config', NODE_FILE)}",
    ]
    for key in ("record_dir", "run_dir"):
        if key in settings:
            options.append(f"--{key.replace('_', '-')}={settings[key]}")
    if "bpf" in settings:
        options += [f"--bpf={settings['bpf']}", f"--said-in={HOOK_FILE}, and import it"]
    return options


def is_owned_by_root(path: Path, bits: int = 0o111) -> bool:
    """Return whether a path is a regular file of root's with these mode bits, and not writable by
    others."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (
        path.is_file() and not found.st_uid and found.st_mode & (bits | WRITABLE_BY_OTHERS) == bits
    )


def check_epilogue(path: Path, setting: object) -> Iterator[Check]:
    """Check that the hook runs the classic epilogue, which a mom does not run if a hook has the
    event."""
    name = "classic epilogue"
    if not path.exists():
        return
    if setting != "run":
        yield Check(
            name, "warning", f"{path} is run by nobody: the mom leaves it, and the hook was told so",
            'classic_epilogue: "run" in /etc/steelyard/openpbs.json, and import it',
        )  # fmt: skip
    elif not is_owned_by_root(path, 0o100):
        yield Check(
            name, "warning", f"{path} is not run: a mom wants it root's, and written by nobody else",
            f"chown root {path} && chmod 0500 {path}",
        )  # fmt: skip
    else:
        yield Check(name, "ok", f"{path} is run by the hook, as the mom did")
