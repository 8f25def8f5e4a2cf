"""Reads the files of submit and of jobs in a study folder (docs/formats.md part 6)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from steelyard.analysis.base import locks
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.store.row_files import parse_json
from steelyard.jobscripts.regular_files import NOTE_BYTES, PLAN_BYTES, read_regular

# Names and versions of the formats; jobscripts/lib/result.sh writes the start of result.json.
PLAN_FORMAT, PLAN_VERSION = "steelyard-plan", 1
RUN_FORMAT, RUN_VERSION = "steelyard-run", 1
PLAN_FILE, SUBMISSIONS_FILE, RESULT_FILE = "plan.json", "submissions.jsonl", "result.json"
RESULT_STATES = ("completed", "failed", "timeout")  # of a run that ended
LOCK_FILE = ".lock"  # the lock of submit, next to plan.json
NUMBERS = (int, float)  # types of JSON numbers; true and false are none
INT32 = 1 << 31  # DuckDB's INTEGER
# Numbers of result.json, and their exclusive limits. A run has at most about one client per core.
MOST = {"start_unix_s": 1e12, "end_unix_s": 1e12, "elapsed_s": 1e12, "clients": 1_000_000}

Kinds = tuple[type, ...]
TEXT, WHOLE, MAYBE = (str,), (int,), (str, type(None))
RUN_FIELDS: Mapping[str, Kinds] = {
    "run_id": TEXT, "block": WHOLE, "position": WHOLE, "benchmark": TEXT, "parameters": (dict,),
    "variant": TEXT, "condition": (dict,), "condition_label": TEXT, "is_baseline": (bool,),
    "repeat": WHOLE,
}  # fmt: skip
SUBMISSION_FIELDS: Mapping[str, Kinds] = {
    "submission_id": TEXT, "scheduler": TEXT, "cluster": MAYBE, "job_id": MAYBE,
    "submitted_unix_s": (int, float), "block": WHOLE, "options": (list,), "run_ids": (list,),
}  # fmt: skip


@dataclass(frozen=True)
class PlannedRun:
    """One execution of one benchmark under one condition, as in plan.json."""

    run_id: str
    block: int  # from 1
    position: int  # in the block, from 1
    benchmark: str
    parameters: dict[str, Any]
    variant: str
    condition: dict[str, Any]
    condition_label: str
    is_baseline: bool
    repeat: int  # from 1


AnyRun = TypeVar("AnyRun", bound=PlannedRun)


SCALING_KINDS = ("strong", "weak")  # the problem stays constant, or grows with the scale


@dataclass(frozen=True)
class Scaling:
    """[study] scaling: a condition's scale is the product of its levels of the factors `over`."""

    kind: str
    over: tuple[str, ...]


def read_scaling(document: object) -> Scaling | None:
    """Return `{kind, over}` of a plan or database; None: no scaling, or an unknown kind."""
    if not isinstance(document, dict) or document.get("kind") not in SCALING_KINDS:
        return None
    over = document.get("over")
    return Scaling(document["kind"], tuple(map(str, over))) if isinstance(over, list) else None


@dataclass(frozen=True)
class Plan:
    """The content of plan.json."""

    study: Mapping[str, Any]
    runs: tuple[PlannedRun, ...]


@dataclass(frozen=True)
class Submission:
    """An accepted submission, one line of submissions.jsonl; array task i is run_ids[i]."""

    submission_id: str
    scheduler: str
    cluster: str | None
    job_id: str | None
    submitted_unix_s: float
    block: int
    options: tuple[str, ...]
    run_ids: tuple[str, ...]


# The folder of an attempt outside any job is NO_JOB.NUMBER, of others JOB.RESTARTS. Folders with
# other names are the user's.
NO_JOB = "local"
ATTEMPT = re.compile(rf"(?:{NO_JOB}|\d.*)\.\d+", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """An attempt according to its own folder; `result` None: result.json cannot be used."""

    run_id: str
    attempt: str
    where: str  # a str: status reads every run of a study, and needs no Path
    result: Mapping[str, Any] | None
    problem: str | None
    has_result: bool = True  # whether a result.json exists, usable or not

    @property
    def path(self) -> Path:
        """Return the folder's path."""
        return Path(self.where)

    @property
    def has_job(self) -> bool:
        """Whether a scheduler started the attempt."""
        return self.attempt.rpartition(".")[0] != NO_JOB

    @property
    def began_unix_s(self) -> float | None:
        """Return the start; without a usable result.json, the folder's modification time."""
        start_unix_s = self.number("start_unix_s")
        if start_unix_s is not None or self.result is not None:
            return start_unix_s
        try:
            return self.path.stat().st_mtime
        except OSError:
            return None

    def number(self, name: str) -> float | None:
        """Return a number of result.json, or None."""
        value = (self.result or {}).get(name)
        return value if type(value) in NUMBERS else None

    def text(self, name: str) -> str | None:
        """Return a text of result.json, or None."""
        value = (self.result or {}).get(name)
        return value if isinstance(value, str) else None

    @property
    def nodes(self) -> tuple[str, ...]:
        """Return the nodes in result.json."""
        value = (self.result or {}).get("nodes")
        return tuple(str(node) for node in value) if isinstance(value, list) else ()

    @property
    def tries(self) -> int | None:
        """Return how often the run was started; None: result.json does not have it."""
        failed = (self.result or {}).get("tries")
        return 1 + len(failed) if isinstance(failed, list) else None

    @property
    def exit_codes(self) -> tuple[int | None, ...]:
        """Return one exit code per client; None: the client left none."""
        value = (self.result or {}).get("exit_codes")
        codes = value if isinstance(value, list) else []
        return tuple(code if isinstance(code, int) else None for code in codes)


def check_format(document: object, path: Path | str, name: str, version: int) -> dict[str, Any]:
    """Return the document if it has this format and version; raise UsageError otherwise."""
    if not isinstance(document, dict) or document.get("format") != name:
        raise UsageError(f"{path}: expected a document of format '{name}'", str(path))
    if document.get("version") != version:
        raise UsageError(
            f"{path}: version {document.get('version')!r} of '{name}'; this Steelyard knows "
            f"version {version}. Use the Steelyard that wrote it, or a newer one",
            str(path),
        )
    return document


def read_json(path: Path | str, most_bytes: int) -> object:
    """Return the content of a JSON file; raise UsageError with the position if it is invalid."""
    try:
        return parse_json(read_regular(path, most_bytes))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}", str(path)) from None


def read_plan(study_dir: Path) -> Plan:
    """Return the content of plan.json; raise MissingError if it does not exist."""
    study, runs = read_plan_as(study_dir, PlannedRun)
    return Plan(study, tuple(runs))


def read_plan_as(study_dir: Path, kind: type[AnyRun]) -> tuple[dict[str, Any], list[AnyRun]]:
    """Return the study of plan.json, and its runs as instances of `kind`."""
    path = study_dir / PLAN_FILE
    if not path.is_file():
        raise MissingError(
            f"{path} is missing: this is no study folder, or nothing was submitted yet "
            f"(steelyard submit STUDY.toml)"
        )
    try:
        document = check_format(read_json(path, PLAN_BYTES), path, PLAN_FORMAT, PLAN_VERSION)
        runs = [kind(**read_fields(run, RUN_FIELDS)) for run in document["runs"]]
        return dict(document["study"]), runs
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", str(path)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path}: a run or the study lacks {error}", str(path)) from None


def read_fields(document: Any, kinds: Mapping[str, Kinds]) -> dict[str, Any]:
    """Return the fields in `kinds`; raise KeyError or TypeError for missing or mistyped ones.

    Types must match exactly: true is no number.
    """
    for name, kind in kinds.items():
        value = document[name]
        if type(value) not in kind:
            raise TypeError(f"a right '{name}': {str(value)[:40]}")
    return {name: document[name] for name in kinds}


def read_submissions(study_dir: Path) -> list[Submission]:
    """Return the content of submissions.jsonl, or [] if it does not exist.

    A truncated line is ignored. Only the end of a line can be missing, so that it is no JSON.
    Complete lines may follow it, since every writer ends it first.
    """
    path = study_dir / SUBMISSIONS_FILE
    try:
        lines = read_regular(path, PLAN_BYTES).split(b"\n")
    except FileNotFoundError:
        return []
    found = [parse_submission(line, path, n) for n, line in enumerate(lines, 1) if line.strip()]
    return [one for one in found if one is not None]


def parse_submission(line: bytes, path: Path, number: int) -> Submission | None:
    """Parse one line of submissions.jsonl; None: the line is truncated."""
    try:
        document = parse_json(line)
    except (ValueError, RecursionError):
        return None
    try:
        known = read_fields(document, SUBMISSION_FIELDS)
    except (KeyError, TypeError) as error:
        raise UsageError(f"{path} line {number} is not understood: {error}", str(path)) from None
    lists = {name: tuple(map(str, known[name])) for name in ("options", "run_ids")}
    return Submission(**{**known, **lists, "cluster": known["cluster"] or None})


def find_running_submission(study_dir: Path, submissions: Sequence[Submission]) -> str | None:
    """Return the submission of a running local submit, which locks the study; else None."""
    local_ids = [s.submission_id for s in submissions if s.job_id is None]
    try:
        fd = os.open(study_dir / LOCK_FILE, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return local_ids[-1] if local_ids and locks.is_locked(fd) else None
    finally:
        os.close(fd)


def find_output(study_dir: Path, submission: Submission, run_id: str) -> Path:
    """Return the file with the run's output of the time before the run had its folder.

    It is the submission's, or the task's own if each array task has a file.
    """
    common = study_dir / "submissions" / f"{submission.submission_id}.out"
    own = common.with_name(f"{common.name}-{submission.run_ids.index(run_id)}")
    return own if own.is_file() else common


def read_run_folders(study_dir: Path, run_id: str) -> Iterator[RunFolder]:
    """Yield the attempts of a run that have a folder, in the order of their names."""
    for entry in list_run_entries(study_dir, run_id):
        if entry.is_dir():
            yield read_run_folder(run_id, entry.path)


def list_run_entries(study_dir: Path, run_id: str) -> list[os.DirEntry[str]]:
    """Return the entries of a run's folder that are named as attempts, in the order of names."""
    try:
        with os.scandir(f"{study_dir}/runs/{run_id}") as entries:
            found = [entry for entry in entries if ATTEMPT.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(found, key=lambda entry: entry.name)


def find_last_attempt(folders: Iterable[RunFolder]) -> RunFolder | None:
    """Return the attempt of a run that started last, or None. Ties go to the later in order."""
    return max(enumerate(folders), key=attempt_sort_key, default=(0, None))[1]


def attempt_sort_key(entry: tuple[int, RunFolder]) -> tuple[float, int]:
    """Return the start of an attempt, or 0 if it is unknown, and its index."""
    index, folder = entry
    return folder.number("start_unix_s") or 0, index


def read_run_folder(run_id: str, path: Path | str) -> RunFolder:
    """Read one attempt's folder with its result.json, or what is wrong with it."""
    where = str(path)
    file, attempt = f"{where}/{RESULT_FILE}", where.rpartition("/")[2]
    try:
        result = check_format(read_json(file, NOTE_BYTES), file, RUN_FORMAT, RUN_VERSION)
        check_numbers(result, file)
        return RunFolder(run_id, attempt, where, result, None)
    except FileNotFoundError:
        problem = "the job left no result.json: its script did not begin, or could not write"
        return RunFolder(run_id, attempt, where, None, problem, has_result=False)
    except OSError as error:
        problem = f"{file} cannot be read: {error.strerror}"
    except UsageError as error:
        problem = str(error)
    return RunFolder(run_id, attempt, where, None, problem)


def check_numbers(result: Mapping[str, Any], path: Path | str) -> None:
    """Raise UsageError for a number of result.json that is impossible and fits no table."""
    codes = result.get("exit_codes")
    found = [(name, result.get(name), most) for name, most in MOST.items()]
    found += [("exit_codes", code, INT32) for code in codes] if isinstance(codes, list) else []
    for name, value, most in found:
        if isinstance(value, NUMBERS) and not abs(value) < most:
            raise UsageError(f"{path}: '{name}' is {str(value)[:40]}, that cannot be", str(path))


# Messages of steelyard.sh. PBS signals the clients as well, which may end first.
STOPPED = re.compile(r"stopped by SIG|client \d+ .*exited with 143\b")


@dataclass(frozen=True, slots=True)
class SchedulerReport:
    """What the accounting reports about a job; `begun`: it has the job's start."""

    state: str
    reason: str | None
    begun: bool


def decide_outcome(report: SchedulerReport, folder: RunFolder | None) -> tuple[str, str | None]:
    """Return state and reason of an attempt.

    The accounting states how the job ended. result.json states whether the run in it ended, and has
    a more precise reason.
    """
    state = folder.text("state") if folder is not None else None
    why = folder.text("reason") if folder is not None else None
    if report.state == "failed":
        return ("timeout" if state == "timeout" else "failed"), why or report.reason
    # The job was purged before its end was queried, or qstat forgot it with its array. A job with a
    # result has started.
    is_guess = report.state == "lost" or (report.state == "cancelled" and not report.begun)
    was_stopped = report.state == "cancelled" and STOPPED.match(why or "")
    if is_guess and state in RESULT_STATES and not was_stopped:
        return state, why
    if report.state != "completed" or state == "completed":
        return report.state, report.reason
    if state in ("failed", "timeout"):
        return state, why or "the run's own script says so"
    if state == "started":
        return "failed", "the job ended, but the run in it did not: result.json says 'started'"
    problem = folder.problem if folder is not None else None
    return "failed", problem or "the job ended, but left no folder: did its script begin?"
