"""A cluster's accounting for tests: a program `sacct` that answers from a file, by time and ids."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.cluster import job_records
from steelyard.analysis.sources.cluster_sacct import WANTED
from steelyard.wrappers.sweep.sweep import SweepRequest, sweep

from ..collect import study as HELP

DAY_S = 86400
NOW = 1_795_500_000.0  # 2026-11-24 06:00 UTC

PROGRAM = """#!{python} -IS
import json, os, signal, sys
here = {folder!r}
options = dict(a.split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
if "--helpformat" in sys.argv:
    print(" ".join({known!r}))
    sys.exit()
with open(here + "/calls", "a") as file:
    file.write(" ".join(sys.argv[1:]).replace(options["--delimiter"], "|") + "\\n")
if os.path.exists(here + "/away"):
    sys.exit("sacct: error: slurm_persist_conn_open: Connection refused")
def stamp(text):
    import calendar, time
    return calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
def number(text):
    return int(text) if text.isdigit() else None
first = stamp(options["--starttime"]) if "--starttime" in options else 0
last = stamp(options["--endtime"]) if "--endtime" in options else 1 << 40
if "-j" in sys.argv:
    options["--jobs"] = sys.argv[sys.argv.index("-j") + 1]
ids = set(options["--jobs"].split(",")) if "--jobs" in options else None
with open(here + "/jobs.jsonl") as jobs:
    for line in jobs:
        job = json.loads(line)
        end = number(job["End"])
        began = number(job["Start"])  # what waits is in no answer
        there = end is not None and first <= end <= last
        there = there or (began is not None and began < last and (end is None or first < end))
        names = {{job["JobIDRaw"].split(".")[0], job["JobID"], job["JobID"].split("_")[0]}}
        if not options.get("--state", "R,").startswith("R,"):
            sys.exit("sacct: error: jobs without an eligible time would be missing")
        if (there if ids is None else ids & names):
            cells = (job.get(name, "") for name in options["--format"].split(","))
            sys.stdout.write(options["--delimiter"].join(cells) + "\\n")
"""


class Lab:
    """The accounting, the folder of records and the database's."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.records, self.dir = base / "records", base / "db"
        self.records.mkdir()
        self.jobs: dict[str, dict[str, str]] = {}
        self.write()
        program = base / "bin" / "sacct"
        program.parent.mkdir()
        text = PROGRAM.format(python=sys.executable, folder=str(base), known=list(WANTED))
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}

    def job(self, job_id: str, ago_s: float = 3600, elapsed_s: int = 20, **cells: str) -> float:
        """Add a job of 2 CPUs on n1 that ended `ago_s` before NOW; return its begin."""
        end = int(NOW - ago_s)
        job = {
            "JobID": job_id, "JobIDRaw": job_id, "JobName": "relax", "Cluster": "c", "User": "ada",
            "Account": "physics", "Partition": "batch", "State": "COMPLETED", "ExitCode": "0:0",
            "Reason": "None", "Submit": str(end - elapsed_s - 5), "Start": str(end - elapsed_s),
            "End": str(end), "ElapsedRaw": str(elapsed_s), "TotalCPU": "00:04.000",
            "NodeList": "n1", "ReqTRES": "cpu=2,mem=1G,node=1", "AllocTRES": "cpu=2,mem=1G,node=1",
            "TimelimitRaw": "60", "Restarts": "0",
        } | cells  # fmt: skip
        self.jobs[f"{job_id}@{job['Submit']}"] = job
        self.write()
        return float(end - elapsed_s)

    def write(self) -> None:
        """Write the data that sacct prints."""
        lines = (json.dumps(job) + "\n" for job in self.jobs.values())
        (self.base / "jobs.jsonl").write_text("".join(lines), encoding="utf-8")

    def record(self, job_id: str, start: float, node: str = "n1", **fields: object) -> Path:
        """Write the record of a job that had its node for itself: 123.5 J."""
        job = {"scheduler": "slurm", "job_id": job_id, "cluster": "c", "exclusive": True}
        own: dict[str, Any] = {"job": job, "energy": {"energy_j": 123.5}, "missing": {}} | fields
        return HELP.write_record(self.records / job_id, node, start, job_id, **own)

    def pack(self, every_s: int | None = None) -> int:
        """Pack everything, whatever its age, since the clock is artificial; return the number of
        packs.
        """
        self.records.chmod(0o755)
        return sweep(SweepRequest(self.records, pack_after_s=-1e9, every_s=every_s)).packs

    def calls(self) -> list[str]:
        """Return the options of sacct's calls, a line per call."""
        path = self.base / "calls"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """Make a lab whose sacct is the first on PATH."""
    made = Lab(tmp_path)
    monkeypatch.setenv("PATH", made.environment["PATH"])
    if os.getuid():  # records belong to the test, like those of a user who collects their own
        monkeypatch.setattr(job_records, "find_inode_marks", lambda *_: iter(()))
    return made
