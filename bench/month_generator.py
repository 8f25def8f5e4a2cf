"""A generated month of a cluster: N jobs, the output of sacct for them, the records of their nodes.

python bench/month_generator.py FOLDER [--jobs 1000000] [--seed 1] [--records SHARE]
    [--samples SHARE] [--flat]

FOLDER then contains `bin/sacct`, which answers -j, -X, -u, -S, -E and --format for these jobs;
`records`, by day (`--flat`: one folder per job), of the first SHARE of the jobs, and samples of the
first of these (usually none: those of a million jobs are 300 GB); and `truth.json`: sums by user,
account, partition and node type that were not read from these files. month_jobs.py describes the
jobs. The same seed and N make the same month.

A million jobs need 1.2 GB of accounting, and 9 GB and 2.6 million files of records, so that usually
only a share has records. The jobs include users, accounts, arrays, requeued jobs, lost nodes, jobs
that were cancelled while pending, and nodes without a record.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from month_jobs import Job, Start, hosts, jobs, truth, used_s
from month_records import write_records

from steelyard.analysis.sources import record_folders
from steelyard.analysis.sources.sacct import DELIMITER, FIELDS
from steelyard.wrappers.base.signals import ending_on_sigterm

CHUNK = 1000  # job ids per file of the accounting
Files = Callable[[Job, Path, bool, bool], None]  # like write_records()


# --- the accounting --------------------------------------------------------------------------


def rows(job: Job) -> Iterator[str]:
    """Yield the line of each start and those of its steps, as `sacct -P -D` prints FIELDS."""
    for restart, start in enumerate(job.starts):
        shared = row_of(job, start, restart)
        yield line(job, "", shared)
        if start.begin_unix_s is not None:
            step = {"User": "", "Partition": "", "TimelimitRaw": "", "JobName": "batch"}
            yield line(job, ".batch", shared | step | {"MaxRSS": "1609728", "NTasks": "1"})
            yield line(
                job, ".extern", shared | step | {"JobName": "extern", "TotalCPU": "00:00:00"}
            )


def row_of(job: Job, start: Start, restart: int) -> dict[str, str]:
    """Return the fields of a start."""
    took = start.end_unix_s - (start.begin_unix_s or start.end_unix_s)
    cpus = job.cpus_per_node * max(len(start.nodes), 1)
    names = [one.node for one in start.nodes]
    return {
        "JobName": f"run{job.job_id % 7}", "Cluster": "month", "User": job.user,
        "Account": job.account, "Partition": job.partition, "State": start.state,
        "ExitCode": start.exit_code, "Submit": str(job.submit_unix_s),
        "Eligible": str(job.submit_unix_s), "Start": str(start.begin_unix_s or "Unknown"),
        "End": str(start.end_unix_s), "ElapsedRaw": str(took), "CPUTimeRAW": str(took * cpus),
        "TotalCPU": clock(used_s(start)), "NNodes": str(max(len(names), 1)),
        "NCPUS": str(cpus), "NodeList": hosts(names), "TimelimitRaw": "60", "Restarts": str(restart),
        "AllocTRES": f"billing={cpus},cpu={cpus},mem=4G,node={len(names)}" if names else "",
        "ReqTRES": f"billing={cpus},cpu={cpus},mem=4G,node={max(len(names), 1)}",
    }  # fmt: skip


def clock(seconds: float) -> str:
    """Return a time as sacct prints it: `1-02:03:04`, below an hour `02:03.125`."""
    whole, part = divmod(seconds, 1)
    minutes, s = divmod(int(whole), 60)
    if minutes < 60:
        return f"{minutes:02}:{s:02}.{round(part * 1000):03}"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (f"{days}-" if days else "") + f"{hours:02}:{minutes:02}:{s:02}"


def line(job: Job, step: str, values: dict[str, str]) -> str:
    """Return one line of sacct."""
    ids = {"JobID": job.name + step, "JobIDRaw": f"{job.job_id}{step}"}
    return DELIMITER.join((values | ids).get(name, "") for name in FIELDS) + "\n"


# --- the complete month ----------------------------------------------------------------------


def make(
    folder: Path, number: int, seed: int = 1, share: float = 1.0, flat: float = 0.0,
    samples: float = 0.0, files: Files = write_records,
) -> dict[str, Any]:  # fmt: skip
    """Write a month below `folder`; return the content of truth.json.

    `share`, `flat` and `samples` are shares of all jobs, from the first one on. `files` writes a
    job's files.
    """
    accounting, record_dir, bin_dir = (folder / n for n in ("accounting", "records", "bin"))
    for path in (accounting, record_dir, bin_dir):
        path.mkdir(parents=True)
    if flat < 1:
        (record_dir / record_folders.MARK).touch()
    spans: dict[int, list[int]] = {}
    shares = int(share * number), int(samples * number), int(flat * number)
    month = spanned(written(folder, number, seed, shares, files), spans)
    document = {"jobs": number, "seed": seed, "records_of_jobs": int(share * number), "rows": 0,
            "sums": truth(month)}  # fmt: skip
    document["rows"] = sum(path.read_bytes().count(b"\n") for path in accounting.iterdir())
    (folder / "truth.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
    program = Path(__file__).with_name("month_sacct.py").read_text(encoding="utf-8")
    (bin_dir / "sacct").write_text(f"#!{sys.executable} -IS\n{program}", encoding="utf-8")
    (bin_dir / "sacct").chmod(0o755)
    head = {"fields": FIELDS, "delimiter": DELIMITER, "chunk": CHUNK, "spans": spans}
    (folder / "head.json").write_text(json.dumps(head), encoding="utf-8")
    return document


def spanned(month: Iterable[Job], spans: dict[int, list[int]]) -> Iterator[Job]:
    """Yield the jobs; add the first begin and the last end in each file of the accounting."""
    for job in month:
        for start in job.starts:
            begin, end = start.begin_unix_s or start.end_unix_s, start.end_unix_s
            first, last = spans.get(job.job_id // CHUNK, (begin, end))
            spans[job.job_id // CHUNK] = [min(first, begin), max(last, end)]
        yield job


def written(
    folder: Path, number: int, seed: int, shares: tuple[int, int, int], files: Files
) -> Iterator[Job]:
    """Yield each job when its files are written."""
    file: TextIO | None = None
    for place, job in enumerate(jobs(number, seed)):
        if file is None or job.job_id % CHUNK == 0:
            if file is not None:
                file.close()
            name = f"{job.job_id // CHUNK}.txt"
            file = (folder / "accounting" / name).open("w", encoding="utf-8", newline="\n")
        file.writelines(rows(job))
        if place < shares[0]:
            files(job, folder / "records", place < shares[2], place < shares[1])
        yield job
    if file is not None:
        file.close()


def main() -> int:
    """Make a month and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="made anew")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=float, default=1.0, metavar="SHARE", help="of the jobs")
    parser.add_argument("--samples", type=float, default=0.0, metavar="SHARE", help="of the jobs")
    parser.add_argument("--flat", action="store_true", help="RECORD_DIR/JOB, not by day")
    asked = parser.parse_args()
    document = make(asked.folder, asked.jobs, asked.seed, asked.records, asked.flat, asked.samples)
    print(
        json.dumps({name: document[name] for name in ("jobs", "rows", "seed", "records_of_jobs")})
    )
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
