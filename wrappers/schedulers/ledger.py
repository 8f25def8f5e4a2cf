"""submissions.jsonl: the accepted submissions. It is only appended to, and each entry is synced."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.study.folder import StudyDir


def append_submission(study: StudyDir, submission: Submission) -> None:
    """Append one submission and wait until it is on disk. A truncated last line is ended first."""
    fd = os.open(study.submissions, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        size = os.fstat(fd).st_size
        cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        line = json.dumps(asdict(submission), ensure_ascii=False) + "\n"
        os.lseek(fd, 0, os.SEEK_END)
        write_all(fd, (b"\n" if cut else b"") + line.encode())
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes. Raises OSError, with the file's name, if that fails."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except OSError as error:
            error.filename = str(Path(f"/proc/self/fd/{fd}").readlink())
            raise


def read_submissions(study: StudyDir) -> list[Submission]:
    """Return all accepted submissions. Truncated lines are skipped: find_submission() finds their
    jobs."""
    return study_files.read_submissions(study.path)


def find_orphans(study: StudyDir, known: list[Submission]) -> list[Path]:
    """Return the run lists of submissions that began but were not recorded."""
    ids = {submission.submission_id for submission in known}
    lists = (study.path / "submissions").glob("*.runs")
    return sorted(path for path in lists if path.stem not in ids)


def record_cancelled(study: StudyDir, run_ids: Collection[str]) -> None:
    """Record which runs of which submissions were cancelled: until the accounting reports them,
    this file is the only source."""
    lines = [
        json.dumps({"submission_id": entry.submission_id, "run_ids": cancelled}) + "\n"
        for entry in read_submissions(study)
        if (cancelled := [run_id for run_id in entry.run_ids if run_id in run_ids])
    ]
    fd = os.open(study.cancelled, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        write_all(fd, "".join(lines).encode())
    finally:
        os.close(fd)


def read_cancelled(study: StudyDir) -> set[tuple[str, str]]:
    """Return (submission, run) of every run that `steelyard cancel` stopped; truncated lines are
    skipped."""
    found = set()
    for line in read_text(study.cancelled).splitlines():
        try:
            entry = json.loads(line)
            found |= {(str(entry["submission_id"]), str(run_id)) for run_id in entry["run_ids"]}
        except (ValueError, LookupError, TypeError):
            continue
    return found


def read_text(path: Path) -> str:
    """Read a file; empty if it does not exist."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def write_atomically(
    path: Path, text: str | bytes, durable: bool = True, mode: int = 0o644
) -> None:
    """Write a file atomically. If not `durable`, a power failure may still lose it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    data = text.encode() if isinstance(text, str) else text
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        write_all(fd, data)
        if durable:
            os.fsync(fd)
    finally:
        os.close(fd)
    temporary.rename(path)
