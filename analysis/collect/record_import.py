"""Copies records into the study, reads them, and assigns them to their attempts."""

from __future__ import annotations

import errno
import os
import shutil
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from steelyard.analysis.collect.job_index import CLOCK_SLACK_S
from steelyard.analysis.sources import sample_csv
from steelyard.analysis.sources.accounting_readers import READERS
from steelyard.analysis.sources.pbs import record_dir
from steelyard.analysis.sources.record_folders import DAY_S, MANY_DAYS, Window, find_job_folders
from steelyard.analysis.sources.records import Record, RecordError, parse_record_name, read_record
from steelyard.analysis.store.row_files import NO_ROOM
from steelyard.jobscripts.regular_files import (
    BULK_BYTES,
    RECORD_BYTES,
    WRITABLE,
    OddFileError,
    create_beside,
    open_regular,
)

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempt_building import Attempt

DEFAULT_RECORD_DIR = "/var/lib/steelyard/records"
COPIES_AT_ONCE = 8
COPY_BYTES = 1 << 20
JOBS_AHEAD = 32  # copied before their turn; more would be evicted from the page cache


def find_default_record_dirs() -> list[Path]:
    """Return the folders into which nodes write records.

    STEELYARD_RECORD_DIR comes first, then this host's PBS settings, then the default.
    """
    setting = os.environ.get("STEELYARD_RECORD_DIR")
    return [Path(setting) if setting else record_dir.read_record_dir() or Path(DEFAULT_RECORD_DIR)]


@dataclass(frozen=True, slots=True)
class Gap:
    """A row of the table `gaps`."""

    run_id: str | None
    attempt: str | None
    node: str | None
    kind: str
    reason: str


def is_same_file(source: Path, target: Path) -> bool:
    """Whether the copy has the size and modification time of its source."""
    try:
        a, b = source.stat(), target.stat()
    except OSError:
        return False
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def has_more_samples(copy: Path, source: Path) -> bool:
    """Whether the copy is complete while a sweep has thinned its source of the same time."""
    try:
        is_old = copy.stat().st_mtime_ns == source.stat().st_mtime_ns
    except OSError:
        return False
    return (
        is_old
        and sample_csv.read_thinning_note(source) is not None
        and sample_csv.read_thinning_note(copy) is None
    )


def copy_into_study(source: Path, target: Path) -> None:
    """Copy or link a file into the study, completely or not at all, with its modification time."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.part")
    most_bytes = RECORD_BYTES if source.suffix == ".json" else BULK_BYTES
    with open_regular(source, most_bytes) as file:
        if not link_file(source, os.fstat(file.fileno()), temporary):
            copy_file(file, temporary)
    temporary.replace(target)


def can_be_linked(name: str, mode: int) -> bool:
    """Whether collect may link a file instead of copying it: samples without write permission.

    Records are copied. A link changes the inode's time, by which a cluster's database detects that
    the user touched a record.
    """
    return not name.endswith(".json") and not mode & WRITABLE


def link_file(source: Path, status: os.stat_result, temporary: Path) -> bool:
    """Link the file, which takes no disk space; return whether that succeeded.

    It fails for other kinds of files, across file systems, and if the kernel refuses it to this
    user.
    """
    if not can_be_linked(source.name, status.st_mode):
        return False
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(status, temporary.lstat())


def copy_file(file: BinaryIO, temporary: Path) -> None:
    """Copy content and modification time of an open file."""
    status = os.fstat(file.fileno())
    with create_beside(temporary) as copy:
        copy_bytes(file, copy)
    os.utime(temporary, ns=(status.st_atime_ns, status.st_mtime_ns))


def copy_bytes(source: BinaryIO, target: BinaryIO) -> None:
    """Copy an open file, by sendfile if the kernel can: samples are most of what collect copies."""
    sent = 0
    try:
        while more := os.sendfile(target.fileno(), source.fileno(), sent, COPY_BYTES):
            sent += more
    except OSError as error:
        if sent or error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
        shutil.copyfileobj(source, target, COPY_BYTES)


def group_attempts_by_job(attempts: Iterable[Attempt]) -> dict[str, list[Attempt]]:
    """Return the attempts of each job that started."""
    jobs = defaultdict(list)
    for attempt in attempts:
        if attempt.job_id is not None and attempt.job_window is not None:
            jobs[attempt.job_id].append(attempt)
    return jobs


def copy_records(
    study_dir: Path,
    record_dirs: Sequence[Path],
    attempts: Iterable[Attempt],
    progress: Callable[[str, int, int], None],
    before_reading: Callable[[Sequence[Attempt]], None],
) -> Iterator[tuple[Sequence[Attempt], list[Gap]]]:
    """Copy the nodes' records before a cleanup removes them, and assign them to attempts.

    Calls `before_reading` for the attempts of each job when its records are copied. Yields the
    attempts of each job and the gaps found, while its files are still in the page cache. Attempts
    that never started are not yielded.
    """
    attempts = list(attempts)
    jobs = list(group_attempts_by_job(attempts).items())

    def copied(job: tuple[str, list[Attempt]]) -> list[Gap]:
        window = compute_window(job[1])
        folders = (f for path in record_dirs for f in find_job_folders(path, job[0], window))
        gaps = [gap for folder in folders for gap in try_copy(study_dir, folder, job[1])]
        before_reading(job[1])
        return gaps

    progress("records", 0, len(jobs))
    # Most of the time is spent waiting for (network) file systems.
    with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
        ahead = deque(pool.submit(copied, job) for job in jobs[:JOBS_AHEAD])
        for done, (job_id, mine) in enumerate(jobs, 1):
            gaps = ahead.popleft().result()
            for job in jobs[done + JOBS_AHEAD - 1 : done + JOBS_AHEAD]:
                ahead.append(pool.submit(copied, job))
            yield mine, [*gaps, *join_records(study_dir / "records" / job_id, mine)]
            progress("records", done, len(jobs))
    for attempt in attempts:
        # Local runs have records in their own folders.
        if attempt.folder is not None and attempt.has_no_job:
            before_reading([attempt])
            paths = sorted((attempt.folder.path / "record").rglob("*.json"))
            yield (
                [attempt],
                [g for p in paths if parse_record_name(p) for g in add_record(attempt, p)],
            )


def try_copy(study_dir: Path, folder: Path, attempts: Sequence[Attempt]) -> list[Gap]:
    """Call `copy_job` and return its errors as gaps; raise OSError when the disk is full."""
    try:
        return list(copy_job(study_dir, folder, attempts))
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        return [make_copy_gap(attempts[0], None, error)]


def make_copy_gap(attempt: Attempt, node: str | None, error: OSError) -> Gap:
    """Return the gap for a record or samples that could not be copied."""
    reason = f"{error.filename or 'a file of it'} cannot be copied: {error.strerror}"
    return Gap(attempt.run_id, attempt.attempt, node, "record", reason)


def copy_job(study_dir: Path, folder: Path, attempts: Sequence[Attempt]) -> Iterator[Gap]:
    """Copy the records of one job with their samples; yield files that cannot be copied."""
    if not folder.is_dir():
        return
    for source in folder.iterdir():
        parts = parse_record_name(source)
        attempt = find_nearest_attempt(attempts, parts[1]) if parts else None
        # The record of a running job is left to the next collect.
        if attempt is None or not attempt.is_over:
            continue
        # Copy the record last: without its samples it would look complete.
        for file in (source.with_suffix(".csv"), source):
            target = study_dir / "records" / folder.name / file.name
            try:
                if os.path.lexists(file) and not (
                    is_same_file(file, target) or has_more_samples(target, file)
                ):
                    copy_into_study(file, target)
            except OddFileError as error:
                yield make_copy_gap(attempt, parts[0] if parts else None, error)


def join_records(folder: Path, attempts: Sequence[Attempt]) -> Iterator[Gap]:
    """Add a job's records to its attempts; yield problems with records."""
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        parts = parse_record_name(path)
        attempt = find_nearest_attempt(attempts, parts[1]) if parts else None
        if attempt is not None and attempt.is_over:
            yield from add_record(attempt, path)


def find_nearest_attempt(attempts: Sequence[Attempt], start: int) -> Attempt | None:
    """Return the attempt that started nearest to the record's start, among the possible ones.

    None: the record belongs to an earlier job with the same id.
    """
    off = [
        (abs(begun - start), number)
        for number, attempt in enumerate(attempts)
        for begun, first, last in compute_windows(attempt)
        if first <= start <= last
    ]
    return attempts[min(off)[1]] if off else None


def compute_windows(attempt: Attempt) -> Iterator[tuple[float, float, float]]:
    """Yield (best, first, last) start times of a record of this attempt, in seconds since 1970.

    There is one by the scheduler's clock, and one by the node's clock, which result.json has and
    which may differ.
    """
    if attempt.job_window is None:
        return
    yield compute_job_start(attempt), *attempt.job_window
    if attempt.folder is None or (start := attempt.folder.number("start_unix_s")) is None:
        return
    elapsed = attempt.folder.number("elapsed_s")
    last = float("inf") if elapsed is None else start + elapsed
    yield start, start - CLOCK_SLACK_S, last + CLOCK_SLACK_S


def compute_window(attempts: Iterable[Attempt]) -> Window | None:
    """Return the time range in which records of these attempts can have started; None: unknown.

    A job without a known end gets a range that starts with it, since its record does too.
    """
    spans = [
        (first, first + MANY_DAYS * DAY_S if last == float("inf") else last)
        for a in attempts
        for _, first, last in compute_windows(a)
    ]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def compute_job_start(attempt: Attempt) -> float:
    """Return the job's start. The record starts with it; the run in it starts later."""
    if attempt.row is not None and attempt.row.start_unix_s is not None:
        return attempt.row.start_unix_s
    return attempt.start_unix_s or 0.0


def add_record(attempt: Attempt, path: Path) -> Iterator[Gap]:
    """Read a record for an attempt; yield problems.

    If a node has two records, a complete one counts more, and otherwise the later one.
    """
    try:
        record = read_record(path)
    except RecordError as error:
        parts = parse_record_name(path)
        yield Gap(
            attempt.run_id, attempt.attempt, parts[0] if parts else None, error.kind, str(error)
        )
        return
    cluster = record.get("job.cluster")
    # slurmdbd stores cluster names in lower case.
    if cluster and attempt.cluster and str(cluster).casefold() != attempt.cluster.casefold():
        reason = f"{path.name} is of job {attempt.job_id} of the cluster {cluster}, left out: this "
        reason += f"one ran on {attempt.cluster}"
        yield Gap(attempt.run_id, attempt.attempt, record.node, "record", reason)
        return
    if is_of_another_start(record, attempt):
        reason = (
            f"{path.name} is of start {record.get('job.restart_count')} of the job, left out: by "
        )
        reason += f"its time it would be of this one. Was the clock of {record.node} set?"
        yield Gap(attempt.run_id, attempt.attempt, record.node, "record", reason)
        return
    other = attempt.records.get(record.node)
    if other is None:
        attempt.records[record.node] = record
        return
    best = max(other, record, key=lambda r: (r.complete, r.get("start_unix_s") or 0.0))
    attempt.records[record.node] = best
    rejected = record if best is other else other
    reason = (
        f"{rejected.path.name} is a second record of this job and node; {best.path.name} counts"
    )
    yield Gap(attempt.run_id, attempt.attempt, record.node, "record", reason)


def is_of_another_start(record: Record, attempt: Attempt) -> bool:
    """Whether the record names another start of the job.

    Slurm 22.05 reports 0 to its plugins for every start, so that 0 proves nothing.
    """
    restart_count = record.get("job.restart_count")
    reader = READERS.get(str(record.get("job.scheduler")))
    if reader is None or not reader.counts_starts or restart_count in (None, "0"):
        return False
    return attempt.restart_count is not None and str(restart_count) != str(attempt.restart_count)


def find_record_gaps(
    attempts: Iterable[Attempt], record_dirs: Sequence[Path], known: set[tuple[str, str, str]]
) -> Iterator[Gap]:
    """Yield nodes without a record, and truncated records.

    `known`: (run, attempt, node) of gaps that have been reported.
    """
    where = ", ".join(str(path) for path in record_dirs) or "no folder"
    absent = [str(path) for path in record_dirs if not path.is_dir()]
    hint = f" ({', '.join(absent)} does not exist here)" if absent else ""
    for attempt in attempts:
        for record in attempt.records.values():
            reasons = {
                "incomplete_record": find_incomplete_reason(record),
                "clock": describe_clock_set(record),
            }
            for kind, reason in reasons.items():
                if reason:
                    yield Gap(attempt.run_id, attempt.attempt, record.node, kind, reason)
        for node in find_missing_nodes(attempt):
            if (attempt.run_id, attempt.attempt, node) not in known:
                location = "its own folder" if attempt.has_no_job else f"{where}{hint}"
                reason = (
                    f"no record of job {attempt.job_id or attempt.attempt} on {node} in {location}"
                    f"{describe_stray_record(attempt, node, record_dirs)}"
                )
                yield Gap(attempt.run_id, attempt.attempt, node, "record", reason)


def describe_stray_record(attempt: Attempt, node: str, record_dirs: Sequence[Path]) -> str:
    """Describe a record of this job id and node whose start does not fit; empty: there is none."""
    job_id, window = attempt.job_id or "-", compute_window([attempt])
    folders = (folder for path in record_dirs for folder in find_job_folders(path, job_id, window))
    paths = [path for folder in folders for path in folder.glob("*.json")]
    return format_stray_record(paths, node, compute_job_start(attempt))


def format_stray_record(paths: Iterable[Path], node: str, begun: float) -> str:
    """Describe the node's record that started nearest to the job; empty: there is none."""
    found = {
        parts[1]: path for path in paths if (parts := parse_record_name(path)) and parts[0] == node
    }
    if not found:
        return ""
    start = min(found, key=lambda one: abs(one - begun))
    off = start - begun
    return (
        f" that fits: {found[start].name} begins {abs(off):.0f} s "
        f"{'after' if off > 0 else 'before'} the job did. Is the clock of {node} off, or had "
        f"another job this id?{describe_clock_step(found[start])}"
    )


def describe_clock_step(path: Path) -> str:
    """Return what a record states about its node's clock, or an empty string."""
    try:
        note = describe_clock_set(read_record(path))
    except RecordError:
        return ""
    return f" It says: {note}" if note else ""


def describe_clock_set(record: Record) -> str | None:
    """Describe a change of the node's wall clock during the job; None: no change is known."""
    steps, step_s = record.get("clock.steps"), record.get("clock.step_s")
    if not steps:
        return None
    times = "once" if steps == 1 else f"{steps} times"
    return (
        f"the clock of {record.node} was set {times} while the job ran, by {step_s or 0.0:+.0f} s in "
        "all: what was counted, and elapsed_s, hold; times of day of its other files may not"
    )


def find_incomplete_reason(record: Record) -> str | None:
    """Return what an incomplete record is missing; None: it is complete."""
    if record.complete:
        return None
    why = record.get("incomplete_reason") or "the sampler did not come to its end"
    if record.get("incomplete_of") == "processes":
        return f"{record.path.name}: {why}"
    return f"{record.path.name} was cut short: {why}; its totals are those of the last sample"


def find_missing_nodes(attempt: Attempt) -> list[str]:
    """Return the nodes of an ended attempt that have no record."""
    if not attempt.is_over:
        return []
    if attempt.has_no_job:
        return [] if attempt.records else list(attempt.nodes)
    return [node for node in attempt.nodes if node not in attempt.records]
