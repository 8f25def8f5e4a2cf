"""A fleet's month from end to end: made, collected, shown, swept into packs, shown, summed.

make bench BENCH=record_life_cycle
python bench/record_life_cycle.py [--jobs 3000] [--samples 0.5] [--every 30s]

A month of N jobs is made (bench/month_generator.py). A share of them has samples at 1 Hz, Slurm's
default here (month_records.py and month_jobs.py describe which jobs). Then follow `collect
--cluster` of all loose records; `show` of some jobs; `sweep` of all of them, and of a copy with
thinned samples (--every); `show` of these jobs from packs; `collect --cluster` from packs; `show`
from the database, without records and accounting; `top` and `metrics`. Both databases must contain
exactly what the month's maker generated. Bytes are those on the disk, names are inodes. Bytes per
job are from days on which all jobs have samples, and from days on which none has.

Budget: a month of a million jobs in 5 GB and 10,000 inodes, `show` of any of them in 1 s. Compiled
modules of Python are used, as in an installation.

Last line: JSON with all figures: NAME_s (wall), NAME_cpu_s, NAME_mb (largest resident set) of each
step; of loose records, packs, and packs of thinned samples: NAME_bytes, NAME_names; bytes_a_job by
kind; month_gb by kind, month_names; agrees, load.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import duckdb
import month_generator
import month_jobs
from collect import Cost, measured
from million_job_readers import MONTH, STEELYARD, collect_cluster, environment, top_agrees

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.wrappers.base.signals import ending_on_sigterm

FIRST_ID = 1000  # first id of month_jobs.jobs()
JOBS = 1_000_000  # in the month that is extrapolated
Figures = dict[str, object]


class Fleet:
    """The folders, and their measurements."""

    def __init__(self, base: Path, asked: argparse.Namespace) -> None:
        self.asked, self.month = asked, base / "month"
        self.loose, self.packs, self.thin = (base / n for n in ("loose", "packs", "thin"))
        self.nothing, self.away = base / "nothing", base / "away"
        self.databases = base / "of-loose", base / "of-packs"
        self.figures: Figures = {}

    def note(self, name: str, cost: Cost) -> None:
        """Print a line of the table."""
        seconds, cpu, mb = cost
        self.figures |= {
            f"{name}_s": round(seconds, 2), f"{name}_cpu_s": round(cpu, 2), f"{name}_mb": round(mb)
        }  # fmt: skip
        print(f"{name.replace('_', ' '):<26} {seconds:>8.2f} s {cpu:>8.2f} CPU s {mb:>7.0f} MB")

    def size(self, name: str, folder: Path) -> None:
        """Measure the content of a folder."""
        used, names = usage(folder)
        self.figures |= {f"{name}_bytes": used, f"{name}_names": names}
        print(f"{name:<26} {used / 1e6:>8.1f} MB {names:>8} names")


def usage(folder: Path) -> tuple[int, int]:
    """Return bytes on the disk and names, as du and find count them."""
    used = names = 0
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            used += os.lstat(f"{top}/{name}").st_blocks * 512
            names += 1
    return used, names


def make(fleet: Fleet) -> month_jobs.Sums:
    """Make the month, and three copies of its records: hard links in separate folders."""
    begin, asked = time.monotonic(), fleet.asked
    document = month_generator.make(fleet.month, asked.jobs, asked.seed, samples=asked.samples)
    (fleet.month / "records").rename(fleet.loose)
    for copy in (fleet.packs, fleet.thin):
        subprocess.run(["/bin/cp", "-al", str(fleet.loose), str(copy)], check=True)
    fleet.nothing.mkdir()
    (fleet.away / "bin").mkdir(parents=True)
    (fleet.away / "bin" / "sacct").write_text("#!/bin/sh\necho 'sacct: away' >&2\nexit 1\n")
    (fleet.away / "bin" / "sacct").chmod(0o755)
    fleet.figures["make_s"] = round(time.monotonic() - begin, 1)
    fleet.size("loose", fleet.loose)
    sums: month_jobs.Sums = document["sums"]
    return sums


def chosen(fleet: Fleet) -> list[str]:
    """Return ids of jobs with samples that ran to their end, from the complete month."""
    asked = fleet.asked
    jobs = month_jobs.jobs(asked.jobs, asked.seed)
    first = [job for job, _ in zip(jobs, range(int(asked.jobs * asked.samples)), strict=False)]
    complete = [
        job.name for job in first or month_jobs.jobs(asked.jobs, asked.seed)
        if all(one.there and one.is_complete for start in job.starts for one in start.nodes)
        and job.starts[-1].begin_unix_s is not None
    ]  # fmt: skip
    return random.Random(asked.seed).sample(complete, min(asked.shows, len(complete)))


def shown(fleet: Fleet, name: str, jobs: Iterable[str], records: Path, there: bool = True) -> None:
    """Run `show` for these jobs and note the medians; `there`: the accounting has them."""
    database = fleet.nothing if there else fleet.databases[1]
    where = ["--record-dir", str(records), "--database", str(database)]
    around = environment(fleet.month if there else fleet.away)
    costs = [measured([STEELYARD, "show", job, *where], around) for job in jobs]
    seconds, cpu, mb = (statistics.median(column) for column in zip(*costs, strict=True))
    fleet.note(name, (seconds, cpu, mb))


def swept(fleet: Fleet, name: str, folder: Path, *words: str) -> None:
    """Sweep all records into packs, whatever their age."""
    asked = ["sweep", "--record-dir", str(folder), "--pack-after", "0h", *words]
    fleet.note(f"sweep_{name}", measured([STEELYARD, *asked]))
    fleet.size(name, folder)


def a_job(fleet: Fleet, folder: Path, with_samples: bool) -> tuple[float, float, float] | None:
    """Return the disk bytes, record bytes and sample lines per packed job, of days of one kind."""
    last = FIRST_ID + int(fleet.asked.jobs * fleet.asked.samples)
    jobs = used = content = lines = 0
    for day in record_folders.list_days(folder):
        packs = record_packs.list_packs(day)
        ids = {int(job_id) for pack in packs for job_id in record_packs.list_job_ids(pack)}
        if ids and all((job_id < last) == with_samples for job_id in ids):
            jobs += len(ids)
            used += usage(record_packs.pack_folder(day))[0]
            for pack in packs:
                found = duckdb.sql(
                    "SELECT sum(strlen(record)), coalesce(sum(samples_lines), 0) "
                    f"FROM read_parquet('{pack}')"
                ).fetchall()
                content += found[0][0]
                lines += found[0][1]
    return (used / jobs, content / jobs, lines / jobs) if jobs else None


def reckoned(fleet: Fleet) -> None:
    """Extrapolate to a month of a million jobs: all with samples, with thinned ones, with none."""
    from steelyard.wrappers.sweep.packing import MOST_FILES, MOST_LINES, PACK_BYTES

    kinds = {"samples": (fleet.packs, True), "thinned": (fleet.thin, True),
             "no_samples": (fleet.packs, False)}  # fmt: skip
    a_job_of, month_gb, month_names = {}, {}, {}
    for kind, (folder, with_samples) in kinds.items():
        found = a_job(fleet, folder, with_samples)
        if found is None:
            continue
        used, content, lines = found
        a_job_of[kind] = round(used)
        month_gb[kind] = round(used * JOBS / 1e9, 2)
        # Three names per pack, two without samples; one folder per day and month; 1.4 nodes per
        # job.
        names, files = (3, 2.8) if with_samples else (2, 1.4)
        full = max(content / PACK_BYTES, files / MOST_FILES, lines / MOST_LINES) * JOBS
        month_names[kind] = round(names * (full + 30) + 31)
        print(
            f"{'a month, ' + kind.replace('_', ' '):<26} {month_gb[kind]:>8.2f} GB "
            f"{month_names[kind]:>7} names, {a_job_of[kind]} bytes a job"
        )
    fleet.figures |= {"bytes_a_job": a_job_of, "month_gb": month_gb, "month_names": month_names}


def work(fleet: Fleet) -> bool:
    """Run everything; return whether all sums are the maker's."""
    sums = make(fleet)
    jobs, (of_loose, of_packs) = chosen(fleet), fleet.databases
    fleet.note("collect_loose", collect_cluster(fleet.month, of_loose, fleet.loose))
    shown(fleet, "show_loose", jobs, fleet.loose)
    swept(fleet, "packs", fleet.packs)
    swept(fleet, "thin", fleet.thin, "--samples", fleet.asked.every)
    shown(fleet, "show_packed", jobs, fleet.packs)
    shown(fleet, "show_thinned", jobs, fleet.thin)
    fleet.note("collect_packed", collect_cluster(fleet.month, of_packs, fleet.packs))
    shown(fleet, "show_database", jobs, fleet.nothing, there=False)
    where = ["--database", str(of_packs)]
    fleet.note("top", measured([STEELYARD, "top", *where, *MONTH]))
    fleet.note("metrics", measured([STEELYARD, "metrics", *where]))
    reckoned(fleet)
    return all(top_agrees(one, sums) for one in fleet.databases)


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--samples", type=float, default=0.5, help="share of the jobs")
    parser.add_argument("--every", default="30s", help="of thinned samples one in so long")
    parser.add_argument("--shows", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", help="work in a folder of this one")
    parser.add_argument("--keep", action="store_true", help="and leave that there")
    asked = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    base = Path(tempfile.mkdtemp(prefix="sy-fleet-", dir=asked.dir))
    base.chmod(0o755)
    try:
        fleet = Fleet(base, asked)
        agrees = work(fleet)
    finally:
        if not asked.keep:
            shutil.rmtree(base)
    given = {"jobs": asked.jobs, "samples": asked.samples, "every": asked.every}
    load = round(os.getloadavg()[0], 1)
    print(json.dumps(given | fleet.figures | {"agrees": agrees, "load": load}))
    return 0 if agrees else 1


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
