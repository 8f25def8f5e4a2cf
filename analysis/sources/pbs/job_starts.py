"""Builds the history of one job: its starts, from the lines of its accounting in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from steelyard.analysis.sources.pbs.accounting_lines import Line, Unreadable
from steelyard.analysis.sources.pbs.field_values import (
    NOT_BEGUN,
    OPENPBS,
    TORQUE,
    parse_count,
    parse_epoch,
)

SERVER_LOG = "server log"  # a source of rows, as is qstat
Fields = dict[str, str]


@dataclass(slots=True)
class Start:
    """One start of the job's script; `fields` are those of its latest record."""

    fields: Fields
    tries: int = 1  # starts that failed (by the prologue or a hook), and this one
    ended: bool = False
    requeued: bool = False
    end_unix_s: float | None = None
    status: int | None = None
    doubts: frozenset[str] = frozenset()

    @property
    def start_unix_s(self) -> float | None:
        """Return the start in seconds since 1970, as the server recorded it."""
        return parse_epoch(self.fields.get("start"))


@dataclass(slots=True)
class History:
    """Everything the lines contain about a job."""

    job_id: str
    dialect: str = OPENPBS
    queued: Fields = field(default_factory=dict)
    submit_unix_s: float | None = None
    starts: list[Start] = field(default_factory=list)
    deleted_by: str | None = None
    deleted_unix_s: float | None = None
    aborted: str | None = None
    waits_again: bool = False  # sent back to the queue after its last start
    unreadable: list[Unreadable] = field(default_factory=list)
    source: str = SERVER_LOG

    def add(self, line: Line, unix_s: float | None) -> None:
        """Add the next line, which was written at `unix_s`."""
        fields = {name: value for name, value in line.fields.items() if name}
        step = {"Q": self.queue, "S": self.begin, "E": self.end, "R": self.requeue}.get(line.kind)
        if step is not None:
            step(fields, unix_s)
        elif line.kind == "D" and not self.is_over:
            self.deleted_by = fields.get("requestor") or "somebody"
            self.deleted_unix_s = unix_s
        elif line.kind == "A":
            self.aborted = " ".join(line.fields.values())[:200] or "by the server"
            self.deleted_unix_s = unix_s
            if self.open_start is not None:
                self.open_start.end_unix_s = unix_s
        if self.starts and line.kind in "SE":
            self.starts[-1].doubts |= line.doubts

    @property
    def is_over(self) -> bool:
        """Whether the last start has ended.

        A later deletion only removes it from the server's memory.
        """
        return bool(self.starts) and self.open_start is None and not self.waits_again

    @property
    def open_start(self) -> Start | None:
        """Return the start that has not ended, or None."""
        last = self.starts[-1] if self.starts else None
        return None if last is None or last.ended else last

    def queue(self, fields: Fields, unix_s: float | None) -> None:
        """Add a record Q. A job that is routed or moved passes several queues."""
        self.queued |= fields
        submitted = parse_epoch(fields.get("ctime")) or unix_s
        if self.submit_unix_s is None:
            self.submit_unix_s = submitted

    def begin(self, fields: Fields, unix_s: float | None) -> None:
        """Add a record S. Directly after another S it is a new try, since no script has started."""
        fields.setdefault("start", "" if unix_s is None else f"{unix_s:.0f}")
        self.waits_again = False
        last = self.starts[-1] if self.starts else None
        if last is not None and (not last.ended or self.is_failed_start(last)):
            last.tries += 1
            last.fields, last.ended, last.requeued, last.status = fields, False, False, None
            last.end_unix_s = None
        else:
            self.starts.append(Start(fields))
        # An earlier deletion did not end this start.
        self.deleted_by = self.deleted_unix_s = None

    def is_failed_start(self, start: Start) -> bool:
        """Whether the start was sent back before its script started."""
        return start.requeued and start.status in NOT_BEGUN[self.dialect]

    def end(self, fields: Fields, unix_s: float | None) -> None:
        """Add a record E. If its S is missing (in a lost log), it implies a start."""
        last = self.starts[-1] if self.starts else None
        same = last is not None and last.fields.get("start") == fields.get("start")
        if last is None or not (same or not last.ended):
            last = Start(fields)
            self.starts.append(last)
        last.fields = last.fields | fields
        last.ended, last.requeued = True, False
        last.end_unix_s = parse_epoch(fields.get("end")) or unix_s
        last.status = parse_count(fields.get("Exit_status"))
        self.waits_again = False

    def requeue(self, fields: Fields, unix_s: float | None) -> None:
        """Add a record R: the job returns to the queue, even if it had ended."""
        self.waits_again = True
        start = self.open_start
        if start is not None:
            start.fields = start.fields | fields
            start.ended = start.requeued = True
            start.end_unix_s = parse_epoch(fields.get("end")) or unix_s
            start.status = parse_count(fields.get("Exit_status"))


def read_history(
    job_id: str, lines: Iterable[tuple[Line | Unreadable, float | None]], dialect: str | None
) -> History:
    """Return a job's history from its lines with their times."""
    lines = list(lines)
    history = History(job_id, dialect or detect_dialect(lines))
    for line, unix_s in lines:
        if isinstance(line, Line):
            history.add(line, unix_s)
        else:
            history.unreadable.append(line)
            history.submit_unix_s = history.submit_unix_s or unix_s
    return history


def detect_dialect(lines: Iterable[tuple[Line | Unreadable, float | None]]) -> str:
    """Return the dialect, by fields that only Torque writes."""
    names = {name for line, _ in lines if isinstance(line, Line) for name in line.fields}
    return TORQUE if names & {"owner", "start_count", "total_execution_slots"} else OPENPBS
