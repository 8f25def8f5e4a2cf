"""Steelyard's settings on a host of Torque or OpenPBS: the folder of records.

The node program reads pbs.conf (plugins/node/job/config.c), and the hook of OpenPBS passes it the
settings of openpbs.json. The readers use the same files, so that a site sets its folder once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NODE_FILE = "/etc/steelyard/pbs.conf"
HOOK_FILE = "/etc/steelyard/openpbs.json"


def read_record_dir() -> Path | None:
    """Return the configured folder of records; None: this host has no such setting.

    The hook's configuration has precedence over the node's file.
    """
    hook = read_hook_file(Path(HOOK_FILE))
    node_file = hook.get("config")
    setting = hook.get("record_dir") or read_node_file(
        Path(node_file if isinstance(node_file, str) else NODE_FILE)
    ).get("record_dir")
    return Path(setting) if isinstance(setting, str) and setting.startswith("/") else None


def read_node_file(path: Path) -> dict[str, str]:
    """Read KEY=VALUE lines with optional blanks; the last line of a key counts."""
    try:
        lines = path.read_text("utf-8", "replace").split("\n")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_hook_file(path: Path) -> dict[str, Any]:
    """Return the hook's configuration, also as the server copied it to a mom; {} if unreadable."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
