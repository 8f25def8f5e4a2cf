"""Records of a job on all of its nodes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 20  # an epilogue ends after qstat says that the job is over


def of(folder: Path, job: str, nodes: int = 1) -> list[dict[str, Any]]:
    """The records of a job's nodes, once that many are finished."""
    end = time.monotonic() + PATIENCE_S
    found: list[dict[str, Any]] = []
    while time.monotonic() < end:
        paths = sorted(folder.joinpath(job).iterdir()) if (folder / job).is_dir() else []
        found = [json.loads(p.read_bytes()) for p in paths if p.name.endswith(".json") and not p.name.startswith(".")]  # fmt: skip
        if len(found) == nodes and all("elapsed_s" in record for record in found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"expected records of {nodes} nodes in {folder / job}, found {found}")
