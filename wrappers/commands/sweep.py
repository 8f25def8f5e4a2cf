"""A folder of records swept: old records packed, older ones removed; for a timer or a cron line.

Of a day that is past for a week every job's records and samples go into a few Parquet files, which
show, collect and publish read as before. With --older-than and --quota packs are removed, the oldest
day's first, and with them what is never packed: files over 64 MB, files that their group
may not read. What is not packed yet stays, unless --unpacked is said. --samples 30s packs one sample in 30 s, for ever:
totals stay what they are, and every reader tells it. Temporary files of killed writers go, and empty
folders that are a week old. Run by the folder's owner, on one machine; again, or after a kill: nothing
is lost and nothing done twice.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.sweep.sweep_report import SweepReport

AGE_S = {"h": 3600, "d": 86400, "w": 7 * 86400}
SIZE_BYTES = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def age_s(text: str) -> float:
    """Seconds of `90d`."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected hours, days or weeks: 12h, 90d, 8w")
    return int(match[1]) * float(AGE_S[match[2]])


def size_bytes(text: str) -> int:
    """Bytes of `5G`, in powers of 1024."""
    match = re.fullmatch(r"(\d{1,6})([MGT])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected a size: 500M, 5G, 1T")
    return int(match[1]) * SIZE_BYTES[match[2]]


def every_s(text: str) -> int | None:
    """Seconds of `30s`; 0 of `ends`, None of `all`."""
    if text in ("all", "ends"):
        return 0 if text == "ends" else None
    match = re.fullmatch(r"([1-9]\d{0,5})([smh])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected all, 30s, 5m, 1h or ends")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `steelyard sweep`."""
    parser.add_argument(
        "--pack-after", type=age_s, default="7d", metavar="AGE",
        help="pack days of which all is at least so old: 12h, 7d (the default), 2w",
    )  # fmt: skip
    parser.add_argument(
        "--older-than", type=age_s, metavar="AGE", help="remove days that are so old"
    )
    parser.add_argument(
        "--quota", type=size_bytes, metavar="SIZE",
        help="remove the oldest days, until no more of the disk is used: 500M, 5G, 1T",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=every_s, metavar="WHICH",
        help="of the samples pack one line in so long: 30s, 5m; or their ends alone: ends (all)",
    )  # fmt: skip
    parser.add_argument(
        "--unpacked", action="store_true",
        help="with --older-than: also remove what is not packed yet",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done, and do nothing"
    )
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Sweep each folder, and tell it in a line; 3 when something could not be done."""
    import dataclasses

    from steelyard.analysis.collect.record_import import default_record_dirs
    from steelyard.wrappers.sweep import sweep
    from steelyard.wrappers.sweep.sweep_report import SweepRequest

    if args.unpacked and args.older_than is None:
        raise errors.UsageError("--unpacked extends what --older-than removes: give both")
    has_failed = False
    for record_dir in args.record_dir or default_record_dirs():
        asked = SweepRequest(
            record_dir, args.pack_after, args.older_than, args.quota, args.unpacked, args.dry_run,
            args.samples,
        )  # fmt: skip
        done = sweep.sweep(asked)
        has_failed |= bool(done.failed)
        if args.json:
            console.print_json({"record_dir": str(record_dir)} | dataclasses.asdict(done))
        else:
            console.print_line(f"{record_dir}: {words(done, args.dry_run)}")
        for why in done.failed:
            print(f"steelyard sweep: {record_dir}: {why}", file=sys.stderr)
    return errors.MISSING if has_failed else errors.DONE


def words(done: SweepReport, is_dry: bool) -> str:
    """What was done, for cron's mail."""
    would = "to be " if is_dry else ""
    told = [
        f"{done.packed_jobs} jobs ({done.packed_files} files) {would}packed",
        f"{len(done.removed_days)} days {would}removed",
        f"{done.temporary_files} temporary files {would}removed",
    ]
    more = {
        "files of samples thinned": done.thinned_files,
        f"empty folders {would}removed": done.empty_folders,
        f"files that are never packed {would}removed": done.removed_files,
        f"jobs that were not packed yet {would}removed": done.removed_jobs,
        "old jobs are not packed yet and stay": done.left_jobs,
        "jobs wait, without an end or touched since": done.waiting_jobs,
    }
    told += [f"{number} {what}" for what, number in more.items() if number]
    if done.stay_files:
        told.append(what_stays(done))
    return f"{', '.join(told)}; {done.used_bytes / (1 << 20):.1f} MiB used"


def what_stays(done: SweepReport) -> str:
    """Files that only --older-than or --quota takes."""
    kinds = ", ".join(f"{number} {why}" for why, number in sorted(done.stay_files.items()))
    total, size = sum(done.stay_files.values()), done.stay_bytes / (1 << 20)
    return f"{total} files are never packed ({kinds}; {size:.1f} MiB)"
