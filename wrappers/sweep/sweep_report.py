"""The request to a sweep, and its report."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What to do to a folder of records."""

    record_dir: Path
    pack_after_s: float
    older_than_s: float | None = None
    quota_bytes: int | None = None
    unpacked: bool = False  # remove what is not packed yet, too
    dry_run: bool = False
    every_s: int | None = None  # packed samples have a line every so many seconds; None: all lines


@dataclass(slots=True)
class SweepReport:
    """What was done, or in a dry run would be done."""

    packed_jobs: int = 0
    packed_files: int = 0
    packs: int = 0
    thinned_files: int = 0  # of samples, in these packs
    removed_days: list[str] = field(default_factory=list)  # whose packs were removed
    removed_files: int = 0  # files that are never packed
    removed_jobs: int = 0  # that were not packed yet
    removed_bytes: int = 0  # on disk, by age and quota; a dry run counts no folders
    temporary_files: int = 0
    empty_folders: int = 0
    left_jobs: int = 0  # older than the limit, but not packed yet
    waiting_jobs: int = 0  # of packed days: without an end, or changed recently
    stay_files: dict[str, int] = field(default_factory=dict)  # never packed, by reason
    stay_bytes: int = 0  # on disk, of these files
    used_bytes: int = 0  # on disk, of all files
    no_room: list[str] = field(default_factory=list)  # days whose packs did not fit on the disk
    failed: list[str] = field(default_factory=list)

    def fail(self, day: str, error: OSError) -> None:
        """Record a day that could not be packed. Days that met a full disk are reported in one
        line."""
        if error.errno in NO_ROOM:
            self.no_room.append(day)
        else:
            self.failed.append(f"{day}: {error.strerror or error}")
