"""A folder of millions of record files: shown, checked, collected, swept, with a killed sweep.

make bench BENCH=million_record_files
python bench/million_record_files.py [--files 30000] [--once] [--dir FOLDER]

A month with as many jobs as N files need is made (bench/month_generator.py): real records, each
with two lines of samples. The first half of the jobs has one folder per job in a common folder
(flat), the other half is by day. With all files loose it runs `steelyard-node doctor`, `show` of a
job of either layout and of an unknown one, `sweep --dry-run`, `collect --cluster` (not with
--once). A sweep is killed (SIGKILL) when a third of the jobs are packed, and another one does the
rest, while a `collect --cluster` runs; a third sweep finds nothing to do. Then the same commands
run on packs.

Requirements: every file's bytes exist exactly once, in a pack or loose, after any kill (the SHA-256
of job, name and content is summed when files are made, and again from packs); both databases
contain exactly what the month's maker generated; a sweep reports in one line; no program needs more
memory than MOST_MB, and no collect, of which DuckDB may use 1 GB, more than MOST_COLLECT_MB.

1,000,000 files need 9.7 GB and 1.4 million inodes of ext4, and half an hour of CPU. Last line: JSON
with all figures: NAME_s (wall), NAME_cpu_s, NAME_mb (largest resident set, at least that of the
benchmark, which starts the program); files, names, names_packed, holds, load.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import compress
from pathlib import Path

import month_generator
import month_records
from collect import Cost, measured
from million_job_readers import STEELYARD, UNKNOWN, collect_cluster, environment, top_agrees
from month_jobs import Job

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.wrappers.base.programs import find_node_program
from steelyard.wrappers.base.signals import ending_on_sigterm

FILES_A_JOB = 2.78  # 1.39 records, each with samples
LINES = 3  # of samples: the header and two others
OF_OTHER_DEVICES = re.compile(rb"(docker|ifb)\d")  # of the recorded machine
MOST_MB, MOST_COLLECT_MB = 800, 1500
Figures = dict[str, object]


class Sum:
    """An order-independent checksum of files: lost, doubled or changed ones alter it."""

    def __init__(self) -> None:
        self.files = self.total = 0

    def add(self, job_id: str, name: str, content: bytes) -> None:
        """Add a file."""
        words = f"{job_id}/{name}/".encode()
        self.files += 1
        self.total += int.from_bytes(hashlib.sha256(words + content).digest()[:16])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sum) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Maker:
    """Writes a job's files, and adds them to a checksum."""

    def __init__(self) -> None:
        self.sum = Sum()
        self.flat: Job | None = None
        self.by_day: Job | None = None
        with month_records.RECORDED.open("rb") as recorded:
            cells = [recorded.readline().rstrip().split(b",") for _ in range(LINES)]
        there = [not OF_OTHER_DEVICES.search(name) for name in cells[0]]
        self.head, *self.rows = (b",".join(compress(line, there)) + b"\n" for line in cells)

    def __call__(self, job: Job, record_dir: Path, flat: bool, _: bool) -> None:
        """Write the files of a job, in place of month_records.write_records()."""
        for start in job.starts:
            begin = start.begin_unix_s
            there = [one for one in start.nodes if one.there]
            if begin is None or not there:
                continue
            folder = (
                record_dir / ("" if flat else record_folders.format_day(begin)) / str(job.job_id)
            )
            folder.mkdir(parents=True, exist_ok=True)
            for one in there:
                stem = f"{one.node}.{begin}"
                record = month_records.record(job, start, one, f"{stem}.csv").encode()
                for name, content in (
                    (f"{stem}.json", record),
                    (f"{stem}.csv", self.samples(begin)),
                ):
                    month_records.write(f"{folder}/{name}", content, start.end_unix_s)
                    self.sum.add(str(job.job_id), name, content)
        if job.starts[-1].begin_unix_s and all(one.there for one in job.starts[-1].nodes):
            if flat:
                self.flat = job
            else:
                self.by_day = self.by_day or job

    def samples(self, begin_unix_s: int) -> bytes:
        """Return samples: the header and two lines from that time on."""
        rows = (
            b"%d%s" % (begin_unix_s + n, row[row.index(b".") :]) for n, row in enumerate(self.rows)
        )
        return self.head + b"".join(rows)


class Bench:
    """The folders and the measurements."""

    def __init__(self, base: Path, jobs: int, seed: int) -> None:
        self.month, self.records = base / "month", base / "month" / "records"
        self.databases, self.said = (base / "beside", base / "of-loose"), base / "said"
        self.maker, self.figures, self.wrong = Maker(), Figures(), list[str]()
        begin = time.monotonic()
        document = month_generator.make(self.month, jobs, seed, flat=0.5, files=self.maker)
        self.told = document["sums"]
        self.figures["make_s"] = round(time.monotonic() - begin)

    def note(self, name: str, cost: Cost) -> None:
        """Print and store a line of the table."""
        seconds, cpu, mb = cost
        self.figures |= {
            f"{name}_s": round(seconds, 2), f"{name}_cpu_s": round(cpu, 2), f"{name}_mb": round(mb)
        }  # fmt: skip
        print(
            f"{name.replace('_', ' '):<20} {seconds:>8.2f} s {cpu:>8.2f} CPU s {mb:>6.0f} MB",
            flush=True,
        )
        most_mb = MOST_COLLECT_MB if name.startswith("collect") else MOST_MB
        self.check(mb <= most_mb, f"{name} took {mb:.0f} MB")

    def check(self, holds: bool, words: str) -> None:
        """Report a violated requirement at once, and at the end."""
        if not holds:
            self.wrong.append(words)
            print(f"WRONG: {words}", flush=True)

    def ours(self, name: str, words: Iterable[str], code: int = 0) -> list[str]:
        """Run one of our programs; return the lines of its output."""
        line = f'"$@" >"$0" 2>&1; test $? = {code}'
        cost = measured(["/bin/sh", "-c", line, str(self.said), *words], environment(self.month))
        self.note(name, cost)
        return self.said.read_text(encoding="utf-8").splitlines()


def shows(bench: Bench, how: str) -> None:
    """Show one job of each layout, and an unknown one."""
    where = ["--record-dir", str(bench.records), "--database", str(bench.month / "none")]
    for layout in ("flat", "by_day"):
        job: Job | None = getattr(bench.maker, layout)
        assert job is not None, "too few jobs"
        lines = bench.ours(f"show_{layout}_{how}", [STEELYARD, "show", job.name, *where])
        for one in job.starts[-1].nodes:
            bench.check(
                any(one.node in line for line in lines), f"show {job.name} without {one.node}"
            )
    bench.ours(f"show_unknown_{how}", [STEELYARD, "show", UNKNOWN, *where], code=3)


def doctor(bench: Bench, how: str) -> None:
    """Run the node's doctor on the folder."""
    where = ["--record-dir", str(bench.records)]
    for name in ("records", "sweep"):
        words = [str(find_node_program()), "doctor", "--only", name, *where]
        lines = bench.ours(f"doctor_{name}_{how}", words)
        print("  " + "\n  ".join(lines))
        bench.figures[f"doctor_{name}_{how}"] = lines


def swept(bench: Bench, name: str, *words: str) -> str:
    """Sweep; return its one line."""
    asked = ["sweep", "--record-dir", str(bench.records), "--pack-after", "0h", *words]
    lines = bench.ours(name, [STEELYARD, *asked])
    bench.check(len(lines) == 1, f"{name} said {len(lines)} lines")
    print("  " + "\n  ".join(lines[:5]), flush=True)
    return lines[0] if lines else ""


def killed(bench: Bench, jobs: int) -> None:
    """Kill a sweep when a third of the jobs are packed."""
    asked = ["sweep", "--record-dir", str(bench.records), "--pack-after", "0h"]
    begin = time.monotonic()
    with subprocess.Popen([STEELYARD, *asked], stdout=subprocess.DEVNULL) as sweep:
        while sweep.poll() is None and packed(bench.records) < jobs / 3:
            time.sleep(max(0.05, jobs / 1e5))  # counting takes a while, too
        sweep.send_signal(signal.SIGKILL)
    bench.figures["killed_after_s"] = round(time.monotonic() - begin, 1)
    bench.check(sweep.returncode == -signal.SIGKILL, "the sweep was through before it was killed")


def packed(records: Path) -> int:
    """Count packed jobs, by the packs' lists."""
    lists = records.glob(f"????-??/*.packs/*{record_packs.LIST_SUFFIX}")
    return sum(path.read_bytes().count(b"\n") for path in lists if not path.name.startswith("."))


def there(records: Path) -> Sum:
    """Return the checksum of all files, packed and loose, without those of a sweep and the mark."""
    found = Sum()
    for day in record_folders.list_days(records):
        for pack in record_packs.list_packs(day):
            for file in record_packs.read_files(pack):
                found.add(file.job_id, file.name, file.content)
    for top, _, files in os.walk(records):
        for name in files if Path(top) != records and not top.endswith(".packs") else ():
            path = Path(top, name)
            found.add(path.parent.name, name, path.read_bytes())
    return found


def names(folder: Path) -> int:
    """Count inodes."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def sweeps(bench: Bench, jobs: int) -> None:
    """Kill a sweep, complete it with another one, and collect meanwhile."""
    with ThreadPoolExecutor(1) as beside:
        cost = beside.submit(collect_cluster, bench.month, bench.databases[0], bench.records)
        killed(bench, jobs)
        swept(bench, "sweep")
        bench.note("collect_beside", cost.result())
    report = swept(bench, "sweep_again")
    bench.check(" 0 jobs (0 files) packed, 0 days removed, 0 temp" in report, f"again: {report}")


def work(bench: Bench, jobs: int, twice: bool) -> None:
    """Run everything."""
    bench.figures |= {"files": bench.maker.sum.files, "names": names(bench.records)}
    print(
        f"{bench.figures['files']} files, {bench.figures['names']} names, {jobs} jobs", flush=True
    )
    doctor(bench, "loose")
    shows(bench, "loose")
    swept(bench, "dry_run", "--dry-run")
    if twice:
        bench.note("collect_loose", collect_cluster(bench.month, bench.databases[1], bench.records))
    sweeps(bench, jobs)
    bench.figures["names_packed"] = names(bench.records)
    doctor(bench, "packed")
    shows(bench, "packed")
    databases = bench.databases if twice else bench.databases[:1]
    for database in databases:
        bench.check(top_agrees(database, bench.told), f"{database.name} tells other sums")
    begin = time.monotonic()
    found = there(bench.records)
    bench.figures["read_back_s"] = round(time.monotonic() - begin)
    bench.check(
        found == bench.maker.sum, f"{found.files} files of {bench.maker.sum.files}, or others"
    )


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=30_000)
    parser.add_argument("--once", action="store_true", help="collect beside the sweep alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", help="work in a folder of this one")
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    base = Path(tempfile.mkdtemp(prefix="sy-files-", dir=asked.dir))
    base.chmod(0o755)
    try:
        jobs = round(asked.files / FILES_A_JOB)
        bench = Bench(base, jobs, asked.seed)
        work(bench, jobs, not asked.once)
    finally:
        shutil.rmtree(base)
    holds, load = not bench.wrong, round(os.getloadavg()[0], 1)
    print(json.dumps({"jobs": jobs} | bench.figures | {"holds": holds, "load": load}))
    return 0 if holds else 1


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
