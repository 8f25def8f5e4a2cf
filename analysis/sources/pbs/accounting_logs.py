"""Reads the server's accounting logs: a file per day, `YYYYMMDD`, in
PBS_HOME/server_priv/accounting.
"""

from __future__ import annotations

import bz2
import calendar
import contextlib
import errno
import gzip
import lzma
import os
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from steelyard.analysis.sources.pbs.accounting_lines import (
    Line,
    LineReader,
    Unreadable,
    join_broken_lines,
)
from steelyard.analysis.sources.pbs.field_values import JobId, split_job_id
from steelyard.analysis.sources.pbs.job_starts import History, read_history

BELOW_HOME = Path("server_priv/accounting")
HOMES = ("/var/spool/pbs", "/var/spool/torque", "/var/lib/torque", "/var/spool/PBS")
NAME = re.compile(r"\d{8}(?:\.\w+)?", re.ASCII)
OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
UNREAD = (".zst", ".lz4", ".lz", ".Z", ".zip")

LinesWithTimes = list[tuple[Line | Unreadable, float | None]]

# The field of a record that states, in seconds since 1970, about when it was written.
WRITTEN = re.compile(r"^.{20}(?:S;.* start|E;.* end)=(\d{9,11})\b", re.ASCII | re.DOTALL)
MARGIN_S = 2 * 86400
QUARTER_S = 900  # zones differ by quarters of an hour
TURNED_S = 600  # a stamp that is earlier by more than this shows the end of summer time


def find_log_folder() -> Path | None:
    """Return the folder of this machine's server logs, if this user may read it."""
    named = os.environ.get("STEELYARD_PBS_ACCOUNTING")
    homes = [os.environ.get("PBS_HOME"), read_configured_home(), *HOMES]
    places = [Path(named)] if named else [Path(home) / BELOW_HOME for home in homes if home]
    return next((folder for folder in places if is_readable(folder)), None)


def is_readable(folder: Path) -> bool:
    """Whether the path is a folder whose names can be listed."""
    try:
        return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)
    except OSError:
        return False


def read_configured_home() -> str | None:
    """Return PBS_HOME of OpenPBS' configuration, or None."""
    path = Path(os.environ.get("PBS_CONF_FILE") or "/etc/pbs.conf")
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search(r"^\s*PBS_HOME\s*=\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else None


def parse_local_s(stamp: str) -> float | None:
    """Convert `11/21/2026 05:46:50` to seconds since 1970 as if it were UTC."""
    try:
        return float(calendar.timegm(time.strptime(stamp, "%m/%d/%Y %H:%M:%S")))
    except (ValueError, OverflowError):
        return None


@dataclass(slots=True)
class Clock:
    """The server's local time, derived from records that have local and Unix time."""

    reference: str = ""  # the last such record
    offset_s: float | None = None
    last_stamp: str = ""
    turned: int = 0  # how often stamps went back since then

    def update(self, record: str) -> None:
        """Add the next record of the log. This is cheap, since it is called for every record."""
        stamp = record[:19]
        if stamp < self.last_stamp and stamp[:10] == self.last_stamp[:10]:
            self.turned += is_set_back(self.last_stamp, stamp)
        self.last_stamp = stamp
        if record[20:22] in ("S;", "E;"):
            self.reference, self.turned, self.offset_s = record, 0, None

    def unix_s(self, stamp: str) -> float | None:
        """Return the Unix time of a stamp of the last record."""
        local = parse_local_s(stamp)
        if local is None:
            return None
        if self.offset_s is None:
            self.offset_s = read_utc_offset(self.reference)
        if self.offset_s is not None:
            return local - self.offset_s + 3600 * self.turned
        # Without such a record, use this machine's zone; a repeated hour is summer time first.
        return time.mktime((*time.gmtime(local)[:8], 0 if self.turned else -1))


def is_set_back(before: str, stamp: str) -> bool:
    """Whether the stamp is earlier by more than servers write out of order."""
    a, b = parse_local_s(before), parse_local_s(stamp)
    return a is not None and b is not None and a - b > TURNED_S


def read_utc_offset(record: str) -> float | None:
    """Return how far local time was ahead of UTC in seconds, from a record that has both."""
    match = WRITTEN.match(record)
    local = parse_local_s(record[:19])
    if match is None or local is None:
        return None
    ahead = local - float(match[1])
    return round(ahead / QUARTER_S) * QUARTER_S if abs(ahead) < 16 * 3600 else None


@dataclass(slots=True)
class Scan:
    """The lines of the logs about some jobs."""

    wanted: dict[str, list[JobId]]  # by number
    found: dict[str, LinesWithTimes] = field(default_factory=dict)
    headless: list[tuple[Path, Unreadable]] = field(default_factory=list)
    dialect: str | None = None

    def read_file(self, path: Path) -> None:
        """Read the log of one day. Later days must be read first."""
        lines_by_job: dict[str, LinesWithTimes] = defaultdict(list)
        clock, reader = Clock(), LineReader(self.dialect)
        with open_log(path) as file:
            for record in join_broken_lines(file):
                parts = record.split(";", 3)
                if len(parts) < 4:
                    self.headless.append((path, Unreadable(record, "it has fewer than three ';'")))
                    continue
                clock.update(record)
                if self.is_requested(parts[2]):
                    line = reader.read(record)
                    lines_by_job[parts[2]].append((line, clock.unix_s(record[:19])))
        self.dialect = reader.dialect or self.dialect
        for job_id, lines in lines_by_job.items():
            self.found[job_id] = lines + self.found.get(job_id, [])

    def is_requested(self, text: str) -> bool:
        """Whether the record is of a requested job."""
        requests = self.wanted.get(text.partition(".")[0].partition("[")[0])
        if requests is None:
            return False
        job = split_job_id(text)
        return job is not None and any(one.matches(job) for one in requests)

    def is_complete(self) -> bool:
        """Whether every job's first line has been read.

        Earlier days may have other jobs with the id.
        """
        begun = {
            number.partition(".")[0].partition("[")[0]
            for number, lines in self.found.items()
            if any(isinstance(line, Line) and line.kind == "Q" for line, _ in lines)
        }
        return begun >= self.wanted.keys()


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[IO[str]]:
    """Open a day's file as text, and decompress it; raise OSError when it cannot be read."""
    if path.suffix in UNREAD:
        why = f"it is packed by a program whose files are not read ({path.suffix}): unpack it"
        raise OSError(errno.ENOTSUP, why, str(path))
    open_it = OPEN.get(path.suffix, open)
    try:
        with open_it(path, "rt", encoding="utf-8", errors="replace", newline="\n") as file:
            yield file
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise OSError(errno.EIO, f"it is damaged: {error}", str(path)) from error


def list_log_files(log_folder: Path) -> list[Path]:
    """Return the files of the folder, the latest first."""
    try:
        with os.scandir(log_folder) as entries:
            return sorted((Path(e.path) for e in entries if NAME.fullmatch(e.name)), reverse=True)
    except OSError:
        return []


def find_first_day(since_unix_s: float) -> str:
    """Return the name of the oldest day that may have records since then, in any time zone."""
    return time.strftime("%Y%m%d", time.gmtime(max(0.0, since_unix_s - MARGIN_S)))


def scan_logs(log_folder: Path, job_ids: Iterable[JobId], since_unix_s: float = 0.0) -> Scan:
    """Return the lines of these jobs, whose oldest record may be at `since_unix_s`.

    Raises OSError when a file cannot be read. Without that time, a job whose first line is missing
    has all days read.
    """
    first = find_first_day(since_unix_s)
    wanted: dict[str, list[JobId]] = defaultdict(list)
    for job in job_ids:
        wanted[job.number].append(job)
    found = Scan(dict(wanted))
    for path in list_log_files(log_folder):
        if path.name[:8] < first:
            break
        found.read_file(path)
        if found.is_complete():
            break
    return found


def list_user_jobs(log_folder: Path, user: str, since_unix_s: float) -> Iterator[str]:
    """Yield ids of the user's jobs in the logs since that time, with a margin of days.

    Raises OSError when a file cannot be read.
    """
    first = find_first_day(since_unix_s)
    for path in list_log_files(log_folder):
        if path.name[:8] < first:
            return
        with open_log(path) as file:
            for record in join_broken_lines(file):
                parts = record.split(";", 3)
                if len(parts) == 4 and parts[3].startswith(f"user={user} "):
                    yield parts[2]


def build_histories(found: Scan) -> list[History]:
    """Return the history of each job that was found."""
    return [read_history(job_id, lines, found.dialect) for job_id, lines in found.found.items()]
