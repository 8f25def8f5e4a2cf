"""What a sweep is requested to do, and what it has done."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What is to be done to a folder of records."""

    record_dir: Path
    pack_after_s: float
    older_than_s: float | None = None
    quota_bytes: int | None = None
    unpacked: bool = False  # remove what is not packed yet, too
    dry_run: bool = False
    every_s: int | None = None  # of samples one line in so many seconds is packed; None: all


@dataclass(slots=True)
class SweepReport:
    """What was done, or in a dry run would be."""

    packed_jobs: int = 0
    packed_files: int = 0
    packs: int = 0
    thinned_files: int = 0  # of samples, in these packs
    removed_days: list[str] = field(default_factory=list)  # of which there were packs
    removed_files: int = 0  # that are never packed
    removed_jobs: int = 0  # that were not packed yet
    removed_bytes: int = 0  # of the disk: by age and quota, all of these; no folders in a dry run
    temporary_files: int = 0
    empty_folders: int = 0
    left_jobs: int = 0  # older than what is to be removed, and not packed yet
    waiting_jobs: int = 0  # of days that are packed: without an end, or touched since
    stay_files: dict[str, int] = field(default_factory=dict)  # never packed, by reason
    stay_bytes: int = 0  # of the disk, of these
    used_bytes: int = 0  # of the disk, by all
    no_room: list[str] = field(default_factory=list)  # days whose packs did not fit the disk
    failed: list[str] = field(default_factory=list)

    def fail(self, day: str, error: OSError) -> None:
        """A day that could not be packed: one line for all that met a full disk."""
        if error.errno in NO_ROOM:
            self.no_room.append(day)
        else:
            self.failed.append(f"{day}: {error.strerror or error}")
