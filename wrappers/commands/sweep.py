"""Pack old records into Parquet files and remove the oldest; for a timer or a cron line.

A day's records and samples are packed into a few files one week after the day (--pack-after). show,
collect and publish read packs like loose files. Nothing is removed without --older-than or --quota.
They remove the oldest days first, with those files that are never packed: larger than 64 MB, or not
readable for their group. Records that are not packed yet stay, unless --unpacked is given.

--samples 30s keeps one sample in 30 s. This cannot be reversed. Totals do not change, and every
reader reports the interval. Leftover temporary files and week-old empty folders are removed, too.

Run it as the owner of the folder, on one machine. It can be interrupted and run again safely.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING

from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console, errors, options

if TYPE_CHECKING:
    from steelyard.wrappers.sweep.sweep import SweepReport

AGE_S = {"h": 3600, "d": 86400, "w": 7 * 86400}
SIZE_BYTES = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_age(text: str) -> float:
    """Return the seconds of `90d`."""
    match = re.fullmatch(r"(\d{1,6})([hdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected hours, days or weeks: 12h, 90d, 8w")
    return int(match[1]) * float(AGE_S[match[2]])


def parse_size(text: str) -> int:
    """Return the bytes of `5G`, in powers of 1024."""
    match = re.fullmatch(r"(\d{1,6})([MGT])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected a size: 500M, 5G, 1T")
    return int(match[1]) * SIZE_BYTES[match[2]]


def parse_interval(text: str) -> int | None:
    """Return the seconds of `30s`; 0 for `ends`, None for `all`."""
    if text in ("all", "ends"):
        return 0 if text == "ends" else None
    match = re.fullmatch(r"([1-9]\d{0,5})([smh])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}': expected all, 30s, 5m, 1h or ends")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard sweep`."""
    parser.add_argument(
        "--pack-after", type=parse_age, default="7d", metavar="AGE",
        help="pack a day once all its records are this old: 12h, 7d (the default), 2w",
    )  # fmt: skip
    parser.add_argument(
        "--older-than",
        type=parse_age,
        metavar="AGE",
        help="remove packed days that are this old: 90d, 8w",
    )
    parser.add_argument(
        "--quota", type=parse_size, metavar="SIZE",
        help="remove the oldest days until the folder is no larger than this: 500M, 5G, 1T",
    )  # fmt: skip
    parser.add_argument(
        "--samples", type=parse_interval, metavar="WHICH",
        help="pack one sample per interval: 30s, 5m; only the first and the last: ends (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--unpacked", action="store_true",
        help="with --older-than: also remove records that are not packed yet",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be done and change nothing"
    )
    options.add_record_dir(parser)
    options.add_json(parser)


def main(args: argparse.Namespace) -> int:
    """Sweep each folder and print a line about it; exit code 3 if something could not be done."""
    import dataclasses

    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.wrappers.base.cron_command_lock import hold_command_lock
    from steelyard.wrappers.sweep import sweep
    from steelyard.wrappers.sweep.sweep import SweepRequest

    if args.unpacked and args.older_than is None:
        raise errors.UsageError("--unpacked extends what --older-than removes: give both")
    has_failed = False
    for record_dir in args.record_dir or find_default_record_dirs():
        request = SweepRequest(
            record_dir, args.pack_after, args.older_than, args.quota, args.unpacked, args.dry_run,
            args.samples,
        )  # fmt: skip
        with hold_command_lock("sweep", [record_dir]):
            done = sweep.sweep(request)
        has_failed |= bool(done.failed)
        if args.json:
            console.print_json({"record_dir": str(record_dir)} | dataclasses.asdict(done))
        else:
            console.print_line(f"{record_dir}: {format_report(done, args.dry_run)}")
        for why in done.failed:
            print(f"steelyard sweep: {record_dir}: {why}", file=sys.stderr)
    return errors.MISSING if has_failed else errors.DONE


def format_report(done: SweepReport, is_dry: bool) -> str:
    """Return a line on what was done, for cron's mail."""
    would = "to be " if is_dry else ""
    counts = [
        f"{counted(done.packed_jobs, 'job')} ({counted(done.packed_files, 'file')}) {would}packed",
        f"{counted(len(done.removed_days), 'day')} {would}removed",
        f"{counted(done.temporary_files, 'temporary file')} {would}removed",
    ]
    more = (
        (done.thinned_files, "file of samples thinned", "files of samples thinned"),
        (done.empty_folders, f"empty folder {would}removed", f"empty folders {would}removed"),
        (
            done.removed_files,
            f"file that is never packed {would}removed",
            f"files that are never packed {would}removed",
        ),
        (
            done.removed_jobs,
            f"job that was not packed yet {would}removed",
            f"jobs that were not packed yet {would}removed",
        ),
        (
            done.left_jobs,
            "old job is not packed yet and stays",
            "old jobs are not packed yet and stay",
        ),
        (
            done.waiting_jobs,
            "job waits, without an end or touched since",
            "jobs wait, without an end or touched since",
        ),
    )
    counts += [counted(number, one, several) for number, one, several in more if number]
    if done.stay_files:
        counts.append(format_unpacked(done))
    return f"{', '.join(counts)}; {done.used_bytes / (1 << 20):.1f} MiB used"


def format_unpacked(done: SweepReport) -> str:
    """Return text on the files that only --older-than or --quota removes."""
    kinds = ", ".join(f"{number} {why}" for why, number in sorted(done.stay_files.items()))
    total, size = sum(done.stay_files.values()), done.stay_bytes / (1 << 20)
    return f"{counted(total, 'file')} {inflect(total, 'is', 'are')} never packed ({kinds}; {size:.1f} MiB)"
