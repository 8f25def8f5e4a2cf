"""`sacct --json`, put into the fields that `sacct -P` has: for `collect --accounting sacct-json`.

It is taken where each job of the answer has its SLUID and all else in NEEDED (26.05); of what lacks
something (22.05: every exit code is 0; 24.11: no SLUID, else whole) nothing is used, and `sacct -P` is asked.
"""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import SEPARATOR, AccountingRow, StepRow
from steelyard.analysis.sources.sacct import FIELDS, Sacct, answer_file, parse_row

# Paths that every job of an answer must have, else it is not the whole of what `sacct -P` tells.
NEEDED = (
    "sluid", "restart_cnt", "job_id", "name", "cluster", "user", "account",
    "partition", "state.current", "state.reason", "exit_code.return_code", "exit_code.signal.id",
    "derived_exit_code.return_code", "kill_request_user", "time.submission", "time.eligible",
    "time.start", "time.end", "time.elapsed", "time.limit", "time.total", "time.user", "time.system",
    "nodes", "tres.allocated", "tres.requested", "constraints", "working_directory",
    "comment.administrator", "array.job_id", "array.task_id", "array.task", "het.job_id",
    "het.job_offset", "steps",
)  # fmt: skip
UNKNOWN, NO_TIME = "Unknown", "None"
NO_VAL = 0xFFFFFFFE  # slurm.h


class SacctJson(Sacct):
    """Slurm's accounting by its JSON, by SLUID; by `sacct -P` where that lacks something."""

    chunk_size = 50  # some 5 KB a step: held in memory

    def rows(self, job_ids: Sequence[str]) -> Iterator[AccountingRow | StepRow]:
        """See Accounting.rows."""
        jobs = self.ask_json(job_ids) if job_ids else []
        if jobs is None:
            yield from super().rows(job_ids)
            return
        for job in jobs:
            yield from rows_of(job)

    def ask_json(self, job_ids: Sequence[str]) -> list[dict[str, Any]] | None:
        """The jobs; None where the answer is not complete, or this release has no JSON."""
        with answer_file() as output:
            try:
                self.run(["--json", "-D", "-j", ",".join(job_ids)], output.fileno(), times=None)
            except MissingError as error:
                if "--json" in str(error) or "unrecognized option" in str(error):
                    return None
                raise
            output.seek(0)
            try:
                jobs = json.load(output).get("jobs")
            except (ValueError, AttributeError):
                return None
        is_whole = isinstance(jobs, list) and all(lacking(job) is None for job in jobs)
        return jobs if is_whole else None


def lacking(job: Mapping[str, Any]) -> str | None:
    """The first of NEEDED that the job has not."""
    return next((path for path in NEEDED if not has(job, path)), None)


def has(document: Any, path: str) -> bool:
    """Whether there is something below this path."""
    for name in path.split("."):
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True


def number(value: Any) -> int | None:
    """A number as it is, or as `{"set": true, "infinite": false, "number": 5}`."""
    if isinstance(value, dict):
        return value["number"] if value.get("set") and not value.get("infinite") else None
    return value if isinstance(value, int) else None


def text(value: Any) -> str:
    """As sacct writes a number; nothing for what is not known."""
    found = number(value)
    return "" if found is None else str(found)


def rows_of(job: Mapping[str, Any]) -> Iterator[AccountingRow | StepRow]:
    """A start of a job, then its steps."""
    cells = job_cells(job)
    row = parse_row([cells.get(name, "") for name in FIELDS])
    if row is None:
        raise MissingError(f"sacct --json has a job without an id: {job.get('job_id')}")
    yield row
    for step in job["steps"]:
        found = step_cells(job, cells, step)
        name = found["JobIDRaw"].partition(".")[2]
        yield StepRow(row.job_id, name, SEPARATOR.join(found.get(name, "") for name in FIELDS))


def job_cells(job: Mapping[str, Any]) -> dict[str, str]:
    """The job's own line."""
    time, cpus = job["time"], count(job["tres"]["allocated"], "cpu") or 0
    elapsed = number(time["elapsed"]) or 0
    nodes = count(job["tres"]["allocated"], "node") or count(job["tres"]["requested"], "node")
    return {
        "JobID": job_id(job),
        "JobIDRaw": str(job["job_id"]),
        "JobName": job["name"],
        "Cluster": job["cluster"],
        "User": job["user"],
        "Account": job["account"],
        "Partition": job["partition"],
        "State": state(job["state"]["current"], job["kill_request_user"]),
        "ExitCode": exit_text(job["exit_code"]),
        "DerivedExitCode": exit_text(job["derived_exit_code"]),
        "Reason": job["state"]["reason"],
        "Submit": moment(time["submission"]),
        "Eligible": moment(time["eligible"]),
        "Start": moment(time["start"]),
        "End": moment(time["end"]),
        "ElapsedRaw": str(elapsed),
        "CPUTimeRAW": str(elapsed * cpus),
        **cpu_times(time),
        "ConsumedEnergyRaw": energy(job),
        "NNodes": "" if nodes is None else str(nodes),
        "NCPUS": str(cpus),
        "NodeList": job["nodes"],
        "ReqTRES": tres(job["tres"]["requested"]),
        "AllocTRES": tres(job["tres"]["allocated"]),
        "Constraints": job["constraints"],
        "WorkDir": job["working_directory"],
        "AdminComment": job["comment"]["administrator"],
        "TimelimitRaw": limit(time["limit"]),
        "Restarts": text(job["restart_cnt"]),
        "SLUID": job["sluid"],
        "OriginalSLUID": job.get("original_sluid", ""),  # 26.05
    }


def step_cells(
    job: Mapping[str, Any], of_job: Mapping[str, str], step: Mapping[str, Any]
) -> dict[str, str]:
    """A step's line."""
    name = str(step["step"]["id"]).partition(".")[2] or str(step["step"]["id"])
    time, allocated = step["time"], step["tres"]["allocated"]
    elapsed, cpus = number(time["elapsed"]) or 0, count(allocated, "cpu") or 0
    start = moment(time["start"])
    most, wrote = step["tres"]["requested"]["max"], step["tres"]["consumed"]["max"]
    return {
        "JobID": f"{of_job['JobID']}.{name}",
        "JobIDRaw": f"{job['job_id']}.{name}",
        "JobName": step["step"]["name"],
        "Cluster": job["cluster"],
        "Account": job["account"],
        "State": state(step["state"], step["kill_request_user"]),
        "ExitCode": exit_text(step["exit_code"]),
        "Submit": start,
        "Eligible": start,
        "Start": start,
        "End": moment(time["end"]),
        "ElapsedRaw": str(elapsed),
        "CPUTimeRAW": str(elapsed * cpus),
        **cpu_times(time),
        "MaxRSS": plain(most, "mem"),
        "MaxVMSize": plain(most, "vmem"),
        "MaxDiskRead": mib(most),
        "MaxDiskWrite": mib(wrote),
        "ConsumedEnergyRaw": text(step["statistics"]["energy"]["consumed"]) or "0",
        "NNodes": text(step["nodes"]["count"]),
        "NCPUS": str(cpus),
        "NTasks": text(step["tasks"]["count"]),
        "NodeList": step["nodes"]["range"],
        "AllocTRES": tres(allocated),
        "SLUID": job["sluid"],
        "OriginalSLUID": job.get("original_sluid", ""),  # 26.05
    }


def job_id(job: Mapping[str, Any]) -> str:
    """`100`, `100_3`, `100_[1-3]`, `100+1`."""
    array, het = job["array"], job["het"]
    if array["job_id"]:
        task = number(array["task_id"])
        tasks = waiting(array["task"])
        return f"{array['job_id']}_{f'[{tasks}]' if tasks or task is None else task}"
    if het["job_id"]:
        return f"{het['job_id']}+{number(het['job_offset']) or 0}"
    return str(job["job_id"])


def waiting(tasks: str) -> str:
    """Tasks that wait, `1-3,7`, of a bitmap in hexadecimal digits with the lowest task last."""
    digits, percent, at_once = tasks.partition("%")
    if not digits.startswith("0x"):
        return tasks
    bits = int(digits, 16)
    numbers = [n for n in range(bits.bit_length()) if bits >> n & 1]
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    shown = ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return shown + percent + at_once


def state(words: Sequence[str], killer: str) -> str:
    """Flags stand behind the state, and sacct tells one of them in its place."""
    word = "REQUEUED" if "REQUEUED" in words else words[0] if words else ""
    return f"CANCELLED by {user_id(killer)}" if word == "CANCELLED" and killer else word


def user_id(name: str) -> str:
    """Of a user that this machine knows; else the name, which may be a number."""
    try:
        return str(pwd.getpwnam(name).pw_uid)
    except KeyError:
        return name


def exit_text(code: Mapping[str, Any]) -> str:
    """`3:0`; nothing of what has no end."""
    if code["status"] == ["PENDING"]:
        return ""
    return f"{number(code['return_code']) or 0}:{number(code['signal']['id']) or 0}"


def moment(value: Any) -> str:
    """Seconds since 1970 UTC."""
    found = number(value)
    return NO_TIME if found == NO_VAL else str(found or UNKNOWN)


def cpu_times(time: Mapping[str, Any]) -> dict[str, str]:
    """`00:01.250`, as sacct writes it: milliseconds only below an hour."""
    names = {"TotalCPU": "total", "UserCPU": "user", "SystemCPU": "system"}
    return {column: clock(time[name]) for column, name in names.items()}


def clock(value: Mapping[str, Any]) -> str:
    """_elapsed_time of Slurm's src/sacct/print.c."""
    micros = (number(value["seconds"]) or 0) * 1_000_000 + (number(value["microseconds"]) or 0)
    minutes, seconds = divmod(micros // 1_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    thousandths = micros % 1_000_000 // 1000
    if hours or not thousandths:
        return f"{hours:02}:{minutes:02}:{seconds:02}"
    return f"{minutes:02}:{seconds:02}.{thousandths:03}"


def limit(value: Any) -> str:
    """Minutes."""
    found = text(value) or "Partition_Limit"
    return "UNLIMITED" if isinstance(value, dict) and value.get("infinite") else found


def count(found: Sequence[Mapping[str, Any]], kind: str, name: str = "") -> int | None:
    """How much of a resource there is in a list of them."""
    for one in found:
        if one["type"] == kind and (one["name"] or "") == name:
            return number(one["count"])
    return None


def plain(found: Sequence[Mapping[str, Any]], kind: str) -> str:
    """Bytes."""
    value = count(found, kind)
    return "" if value is None else str(value)


def mib(found: Sequence[Mapping[str, Any]]) -> str:
    """Bytes of files, as sacct rounds them."""
    value = count(found, "fs", "disk")
    return "" if value is None else f"{value / 1048576:.2f}M"


def energy(job: Mapping[str, Any]) -> str:
    """Joules: those that were set for the job, else of its steps; below 0: none are known."""
    own = count(job["tres"]["allocated"], "energy")
    steps = (number(step["statistics"]["energy"]["consumed"]) or 0 for step in job["steps"])
    return str(sum(steps)) if own is None else str(own) if own >= 0 else ""


def tres(found: Sequence[Mapping[str, Any]]) -> str:
    """`billing=1,cpu=1,mem=1000M,node=1`."""
    parts = {}
    for one in found:
        name = one["type"] + (f"/{one['name']}" if one["name"] else "")
        value = number(one["count"])
        if value is not None and value >= 0:
            parts[name] = f"{name}={value}" + ("M" if one["type"] == "mem" and value else "")
    return ",".join(parts[name] for name in sorted(parts))
