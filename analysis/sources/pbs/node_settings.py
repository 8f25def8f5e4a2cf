"""Steelyard's settings on a host of Torque or OpenPBS: where its nodes leave records.

The node program reads pbs.conf (plugins/node/job/config.c) and the hook of OpenPBS gives it what
openpbs.json says; the readers look into the same files, so that a site names its folder once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NODE_FILE = "/etc/steelyard/pbs.conf"
HOOK_FILE = "/etc/steelyard/openpbs.json"


def read_record_dir() -> Path | None:
    """The configured folder of records; None where this host has no setting of it.

    What the hook's configuration says wins over the node's own file.
    """
    hook = read_hook_file(Path(HOOK_FILE))
    node_file = hook.get("config")
    said = hook.get("record_dir") or read_node_file(
        Path(node_file if isinstance(node_file, str) else NODE_FILE)
    ).get("record_dir")
    return Path(said) if isinstance(said, str) and said.startswith("/") else None


def read_node_file(path: Path) -> dict[str, str]:
    """KEY=VALUE lines, blanks around both; the last line of a key counts."""
    try:
        lines = path.read_text("utf-8", "replace").split("\n")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def read_hook_file(path: Path) -> dict[str, Any]:
    """The hook's configuration, or what the server has made of it for a mom; empty where it cannot
    be read."""
    try:
        said = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
