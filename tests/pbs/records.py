"""Records of a job on all of its nodes."""

from __future__ import annotations

import glob
import json
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 20  # an epilogue ends after qstat reports the job's end


def of(folder: Path, job: str, nodes: int = 1) -> list[dict[str, Any]]:
    """Return the records of a job's nodes when that many are finished."""
    end = time.monotonic() + PATIENCE_S
    found: list[dict[str, Any]] = []
    while time.monotonic() < end:
        folders = [folder / job, *folder.glob(f"????-??/??/{glob.escape(job)}")]
        paths = sorted(path for one in folders if one.is_dir() for path in one.iterdir())
        found = [
            json.loads(path.read_bytes()) for path in paths
            if path.suffix == ".json" and not path.name.startswith(".") and path.stat().st_size
        ]  # fmt: skip
        if len(found) == nodes and all("elapsed_s" in record for record in found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"expected records of {nodes} nodes in {folder / job}, found {found}")
