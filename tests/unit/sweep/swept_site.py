"""A folder of records whose jobs ended long ago, and the files that readers find."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from steelyard.analysis.sources import record_folders
from steelyard.wrappers.sweep import sweep
from steelyard.wrappers.sweep.sweep import SweepReport, SweepRequest

DAY_S = 86400
NOW = int(time.time())
Files = dict[tuple[str, str], tuple[bytes, int]]


class Site:
    """A folder of records whose jobs ended long ago."""

    def __init__(self, record_dir: Path) -> None:
        self.dir = record_dir
        self.dir.mkdir()
        self.truth: Files = {}

    def leave(
        self, job_id: str, age_s: float, *, flat: bool = False, end: float | None = 1.0, mode: int = 0o440,
        samples: bytes | None = None,
    ) -> Path:  # fmt: skip
        start = NOW - int(age_s)
        if samples is None:
            samples = b"elapsed_s,rx_bytes\n0.000000,%d\n" % start
        folder = self.dir / ("" if flat else record_folders.format_day(start)) / job_id
        folder.mkdir(parents=True, exist_ok=True)
        record = {"node": "n1", "job": {"cluster": "old[1]"}, "end_unix_s": end}
        text = json.dumps(record, indent=1).encode()
        for name, content in ((f"n1.{start}.json", text), (f"n1.{start}.csv", samples)):
            path = folder / name
            path.write_bytes(content)
            path.chmod(mode)
            os.utime(path, ns=((NOW - int(age_s)) * 10**9 + 7,) * 2)
            self.truth[job_id, name] = (content, path.stat().st_mtime_ns)
        return folder

    def found(self) -> Files:
        """Return every job's files, as readers find them."""
        seen: Files = {}
        for job_id in record_folders.list_job_ids(self.dir):
            for folder in record_folders.find_job_folders(self.dir, job_id):
                for path in folder.iterdir():
                    assert (job_id, path.name) not in seen, f"doubled: {path}"
                    seen[job_id, path.name] = (path.read_bytes(), path.stat().st_mtime_ns)
        return seen

    def sweep(self, **asked: Any) -> SweepReport:
        return sweep.sweep(SweepRequest(self.dir, asked.pop("pack_after_s", 7 * DAY_S), **asked))

    def loose(self) -> set[str]:
        return {p.parent.name for p in self.dir.rglob("n1.*.json")}

    def du(self) -> int:
        """Return bytes on the disk, as du counts them."""
        done = subprocess.run(
            ["du", "-s", "--block-size=1", self.dir], capture_output=True, text=True, check=True
        )
        return int(done.stdout.split()[0])


# No text, no lines, a truncated line, and lines that no sampler writes.
ODD = (b"", b"elapsed_s\n", b"elapsed_s\n1.0000", b"elapsed_s,rx_bytes\r\n1,007\n")


def several(site: Site) -> None:
    for number in range(3):
        site.leave(f"{number}[1].srv", 20 * DAY_S, samples=ODD[number + 1])
        site.leave(f"flat-{number}", 20 * DAY_S + number, flat=True)
    site.leave("7", 30 * DAY_S)
    site.leave("7", 10 * DAY_S)
