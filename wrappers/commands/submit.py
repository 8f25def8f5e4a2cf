"""Turn a study into jobs. Run again, it adds only what is missing.

One array submission per block and set of scheduler options; `--scheduler local` runs the study on
this machine, one run after another. The study file is described in docs/study.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from steelyard.wrappers.base import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `steelyard submit`."""
    add = parser.add_argument
    add("study", metavar="STUDY.toml", type=Path, help="the study file")
    add(
        "--scheduler",
        metavar="NAME",
        help="slurm, pbs (Torque, OpenPBS), or local: this machine (default: the batch system whose commands are here)",
    )
    add(
        "--dir",
        type=Path,
        metavar="DIR",
        help="make the folder NAME.study in DIR instead of next to the study file; "
        "a DIR that ends in .study is the folder itself",
    )
    add(
        "--session",
        metavar="NAME",
        nargs="?",
        const=options.TODAY,
        help="run the study once more, as a session of its own in NAME.sessions/ next to the study file "
        "(default NAME: today's date); the same session again adds what is missing of it",
    )
    add(
        "--dry-run",
        action="store_true",
        help="print the exact batch scripts; write and submit nothing",
    )
    add("--retry-failed", action="store_true", help="submit failed runs again too")
    add("--json", action="store_true", help="print what was done as JSON")


def main(args: argparse.Namespace) -> int:
    """Submit; exit code 5 if local runs failed."""
    from dataclasses import asdict

    from steelyard.wrappers.base import console, errors
    from steelyard.wrappers.schedulers import registry
    from steelyard.wrappers.study import sessions, study
    from steelyard.wrappers.submit import submit

    session = sessions.session_name(args.session)
    checked, folder = study.load_with_folder(args.study, args.dir, session)
    scripts: list[tuple[str, str]] | None = [] if args.dry_run else None
    scheduler = args.scheduler or registry.detect_scheduler()
    done = submit.submit(checked, folder, scheduler, args.retry_failed, scripts)
    if args.json:
        console.print_json(asdict(done) | ({"scripts": dict(scripts)} if scripts else {}))
    elif scripts:
        for submission_id, text in scripts:
            print(f"# ---- submissions/{submission_id}.sh\n{text}")
    else:
        print(submit.format_outcome(done))
    return errors.RUNS_FAILED if done.failed else errors.DONE
