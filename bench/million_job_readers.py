"""What a month of jobs costs its readers: `show` of one job, and every row and record read once.

A month is made twice (bench/month_generator.py): with its records by day, and with one folder per
job in a common folder. Then for a few random jobs of the month these take turns: `steelyard show
JOB`, and the same program `sacct` for the same job with its records printed by cat, as a person
without Steelyard would do; `show` of an unknown job, where every job has a folder, and `ls -f` of
the common folder. At last all rows as our reader returns them, against sacct alone; all records
found, read and checked, against a script that only parses them. The sums of what is read must equal
those of the month's maker exactly, and so must those of `steelyard top` after a collect. Budget:
`show` within 1 s among a million jobs. `status` is in bench/cli.py.

Last line: JSON with show_s, show_flat_s, show_unknown_s (medians of wall time), show_cpu_s, rows_s,
records_s (CPU seconds), ratio_show, ratio_show_flat, ratio_unknown (wall), ratio_rows,
ratio_records (CPU), sums_agree, top_agrees (null: not every job has records), jobs, rows, records,
load.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import month_generator
import month_jobs
from collect import Cost, measured

from steelyard.analysis.sources import record_folders
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.records import read_record
from steelyard.analysis.sources.sacct import INDEX, Sacct
from steelyard.wrappers.base.signals import ending_on_sigterm

STEELYARD = str(Path(sys.executable).with_name("steelyard"))
PEER = 'sacct -P -j "$2" && find "$1" -path "*/$3/*.json" -exec cat {} +'
PARSE = """
import json, pathlib, sys
sum(json.loads(path.read_bytes())["complete"] for path in pathlib.Path(sys.argv[1]).rglob("*.json"))
"""
UNKNOWN = "999999999"


def environment(folder: Path) -> dict[str, str]:
    """Return an environment whose first sacct is the month's."""
    return dict(os.environ) | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}


def shown(folder: Path, job: month_jobs.Job) -> list[list[str]]:
    """Return our command line and the peer's; the peer knows the day."""
    records, begin = folder / "records", job.starts[-1].begin_unix_s
    is_by_day = (records / record_folders.MARK).exists() and begin is not None
    day = records / record_folders.format_day(begin or 0) if is_by_day else records
    place = day / str(job.job_id)
    peer = ["/bin/sh", "-c", PEER, "sh", str(place), job.name, str(job.job_id)]
    return [[STEELYARD, "show", job.name, "--record-dir", str(records)], peer]


def shows(folder: Path, jobs: list[month_jobs.Job]) -> tuple[Cost, Cost]:
    """Return medians of ours and the peer's, job by job in turns."""
    ours, theirs = [], []
    for job in jobs:
        mine, peer = shown(folder, job)
        ours.append(measured(mine, environment(folder)))
        theirs.append(measured(peer, environment(folder)))
    return median(ours), median(theirs)


def unknown(folder: Path) -> tuple[Cost, Cost]:
    """Measure an unknown job: exit code 3 is the right answer."""
    asked = f'"{STEELYARD}" show {UNKNOWN} --record-dir "$1" 2>/dev/null; test $? = 3'
    records = str(folder / "records")
    mine = measured(["/bin/sh", "-c", asked, "sh", records], environment(folder))
    return mine, measured(["/bin/ls", "-f", records])


def median(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    seconds, cpu, memory = (statistics.median(column) for column in zip(*costs, strict=True))
    return seconds, cpu, memory


def cpu_s_of(work: Callable[[], None]) -> float:
    """Return CPU seconds, including those of started programs."""
    before = used_s()
    work()
    return used_s() - before


def used_s() -> float:
    """Return the CPU seconds used until now."""
    found = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def sum_rows(folder: Path, sums: dict[str, dict[str, float]]) -> None:
    """Sum every row of the month, by user."""
    reader = Sacct(str(folder / "bin" / "sacct"))
    for row in reader.read_starts(("User", "ElapsedRaw", "NNodes", "CPUTimeRAW", "Start", "End")):
        assert isinstance(row, AccountingRow)
        into = sums[row.user or ""]
        into["starts"] += 1
        into["cpu_held_s"] += int(row.fields[INDEX["CPUTimeRAW"]])
        into["node_s"] += int(row.fields[INDEX["ElapsedRaw"]]) * int(row.fields[INDEX["NNodes"]])


def sum_records(folder: Path, sums: dict[str, float]) -> None:
    """Sum every record of the month."""
    for found in record_folders.iterate_records(folder / "records"):
        record = read_record(found.path)
        sums["records"] += 1
        sums["records_cut"] += not record.complete
        if record.complete:
            sums["cpu_s"] += record.get("cpu.cpu_s")
            sums["energy_j"] += record.get("energy.energy_j")
            sums["read_bytes"] += record.get("io.read_bytes")


def agree(
    by_user: dict[str, dict[str, float]],
    records: dict[str, float],
    sums: month_jobs.Sums,
    whole: bool,
) -> bool:
    """Whether the sums read equal those made; of records only if all were written."""
    rows_agree = all(
        by_user[user][name] == own[name]
        for user, own in sums["user"].items()
        for name in ("starts", "cpu_held_s", "node_s")
    )
    names = ("records", "records_cut", "cpu_s", "energy_j", "read_bytes")
    totals = {name: sum(own[name] for own in sums["user"].values()) for name in names}
    return rows_agree and (not whole or totals == {name: records[name] for name in names})


def chosen(number: int, seed: int, with_records: int, most: int) -> list[month_jobs.Job]:
    """Return random jobs of the month that have records."""
    places = random.Random(seed).sample(range(with_records), min(most, with_records))
    wanted = set(places)
    return [job for place, job in enumerate(month_jobs.jobs(number, seed)) if place in wanted]


# By metric of `steelyard top`: the maker's number of known jobs, and its sum.
TOP = {"cpu_allocated_s": ("begun", "last_cpu_held_s"), "read_bytes": ("whole", "last_read_bytes"),
       "energy_j": ("alone", "last_energy_j")}  # fmt: skip


def collect_cluster(folder: Path, database: Path, records: Path) -> Cost:
    """Collect a complete month into the database of a cluster."""
    words = ["--cluster", str(database), "--since", "2026-09-30", "--record-dir", str(records)]
    return measured([STEELYARD, "collect", *words], environment(folder))


MONTH = ("--since", "2026-09-01", "--until", "2026-11-20")


def top_agrees(database: Path, sums: month_jobs.Sums) -> bool:
    """Whether `steelyard top`, by user, prints what was made."""
    words = ["--database", str(database), "--json", *MONTH]
    done = subprocess.run([STEELYARD, "top", *words], capture_output=True, check=True)
    lines = {line["name"]: line for line in json.loads(done.stdout)["lines"]}
    return lines.keys() == {user for user, own in sums["user"].items() if own["begun"]} and all(
        (line[ours]["jobs_known"], line[ours]["sum"] or 0)
        == tuple(sums["user"][user][n] for n in names)
        for user, line in lines.items()
        for ours, names in TOP.items()
    )


def top_of_collected(folder: Path, sums: month_jobs.Sums) -> bool:
    """Collect the month, and compare `steelyard top` with it."""
    collect_cluster(folder, folder / "database", folder / "records")
    return top_agrees(folder / "database", sums)


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--records", type=float, default=1.0, help="share of the jobs: above 0")
    parser.add_argument("--shows", type=int, default=9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", help="work in a folder of this one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sy-scale-", dir=asked.dir) as name:
        days, flat = Path(name) / "days", Path(name) / "flat"
        told = month_generator.make(days, asked.jobs, asked.seed, asked.records)
        month_generator.make(flat, asked.jobs, asked.seed, asked.records, flat=True)
        some = chosen(asked.jobs, asked.seed, told["records_of_jobs"], asked.shows)
        figures = document(days, flat, some, told)
    figures |= {"jobs": asked.jobs, "rows": told["rows"], "load": round(os.getloadavg()[0], 1)}
    print(json.dumps(figures))
    return 0 if figures["sums_agree"] and figures["top_agrees"] is not False else 1


def document(
    days: Path, flat: Path, some: list[month_jobs.Job], told: dict[str, object]
) -> dict[str, object]:
    """Measure everything, print the table, and return the last line's content."""
    show, flat_show, no_job = shows(days, some), shows(flat, some), unknown(flat)
    by_user: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    records: dict[str, float] = defaultdict(float)
    rows_s = cpu_s_of(lambda: sum_rows(days, by_user))
    records_s = cpu_s_of(lambda: sum_records(days, records))
    null = measured([str(days / "bin" / "sacct"), "-X", "--format=JobID"])
    parse = measured([sys.executable, "-c", PARSE, str(days / "records")])
    table = (
        ("steelyard show, by day", show, 0), ("  a folder a job", flat_show, 0),
        ("  of a job nobody knows", no_job, 0),
        ("all rows", ((0, rows_s, 0), null), 1), ("all records", ((0, records_s, 0), parse), 1),
    )  # fmt: skip
    print(f"{'':<26} {'ours':>9} {'peer':>9} {'ratio':>7}")
    for words, (mine, peer), kind in table:
        unit = ("s", "CPU s")[kind]
        print(
            f"{words:<26} {mine[kind]:>9.2f} {peer[kind]:>9.2f} {mine[kind] / peer[kind]:>7.2f} {unit}"
        )
    sums: month_jobs.Sums = told["sums"]  # type: ignore[assignment]
    whole = told["records_of_jobs"] == told["jobs"]
    return {
        "show_s": round(show[0][0], 3), "show_flat_s": round(flat_show[0][0], 3),
        "show_unknown_s": round(no_job[0][0], 3), "show_cpu_s": round(show[0][1], 3),
        "rows_s": round(rows_s, 3), "records_s": round(records_s, 3),
        "ratio_show": round(show[0][0] / show[1][0], 2),
        "ratio_show_flat": round(flat_show[0][0] / flat_show[1][0], 2),
        "ratio_unknown": round(no_job[0][0] / no_job[1][0], 2),
        "ratio_rows": round(rows_s / null[1], 2), "ratio_records": round(records_s / parse[1], 2),
        "sums_agree": agree(by_user, records, sums, whole),
        "records": int(records["records"]),
        "top_agrees": top_of_collected(days, sums) if whole else None,
    }  # fmt: skip


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
